"""Every status, and every sentence in which a run stops or doubts itself, is told in docs/howto/when-a-run-stops.md."""

import re
from pathlib import Path
from typing import get_args

import pytest

from vlasov.messages import MESSAGES, STATUSES_OF_GAUSSIANS, STATUSES_OF_RUNS, STATUSES_OF_SWEEPS
from vlasov.postprocess.sweep import FAILED, NOT_RUN
from vlasov.solvers.covariances.batch import STATUS
from vlasov.solvers.record import Status

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/when-a-run-stops.md").read_text(encoding="utf-8")
SECTIONS = {
    re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-"): " ".join(text.split())
    for title, text in re.findall(r"^##+ (.+?)\n(.*?)(?=^##|\Z)", PAGE, flags=re.M | re.S)
}


@pytest.mark.parametrize("name", MESSAGES)
def test_every_sentence_stands_in_its_section(name):
    section, template = MESSAGES[name]
    pieces = re.split(r"\{[^}]*\}", template)
    assert re.search(".{1,80}?".join(map(re.escape, pieces)), SECTIONS[section])


def test_every_sentence_is_said():
    code = "".join(
        path.read_text(encoding="utf-8")
        for room in ("vlasov", "solvers", "postprocess")
        for path in (ROOT / room).rglob("*.py")
    )
    assert [name for name in MESSAGES if f"messages.{name}" not in code] == []


@pytest.mark.parametrize("status", sorted({*get_args(Status), *filter(None, STATUS), FAILED, NOT_RUN}))
def test_every_status_has_a_heading_and_its_meaning(status):
    """In the words of the reference and of reports."""
    sections = [part for part in re.split(r"^### ", PAGE, flags=re.M) if part.startswith(f'"{status}"')]
    assert len(sections) == 1
    text = " ".join(sections[0].split())
    for meanings in (STATUSES_OF_RUNS, STATUSES_OF_GAUSSIANS, STATUSES_OF_SWEEPS):
        assert meanings.get(status, "") in text
