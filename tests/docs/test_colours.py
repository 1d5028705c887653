"""Pages and programs of the manual draw in our colours, whose palette is tested: none has its own."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
OWN = re.compile(r"""["']#[0-9a-fA-F]{3,8}["']|\btab:[a-z]+|["']C[0-9]["']""")
PAGES = [*DOCS.rglob("*.md"), *(DOCS / "examples").glob("*.py"), *(DOCS / "_ext").rglob("*.py")]


def own(text):
    """Colours that a text writes down itself."""
    return OWN.findall(text)


def test_no_page_has_colours_of_its_own():
    found = {str(path.relative_to(DOCS)): own(path.read_text(encoding="utf-8")) for path in PAGES if _ours(path)}
    assert len(found) > 60
    assert not {name: colours for name, colours in found.items() if colours}


def _ours(path):
    return not {"_build", "_made", "_static", "jupyter_execute"} & set(path.parts)


@pytest.mark.parametrize("line", ['color="#2a7f9e"', "c='#fff'", 'color="tab:blue"', 'color="C1"'])
def test_own_colours_are_seen(line):
    assert own(line)
