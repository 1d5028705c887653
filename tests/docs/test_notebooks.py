"""Tutorials and how-to pages are notebooks for readers who have Jupyter and vlasov, and nothing else of ours."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for folder in ("tutorials", "howto") for path in (ROOT / "docs" / folder).glob("*.md"))
NOTEBOOKS = [path for path in PAGES if path.stem != "index"]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    """The cells that the manual's reader makes of a page, with the page's own header, which jupytext does not mend."""
    read, yaml = pytest.importorskip("myst_nb.core.read"), pytest.importorskip("yaml")
    text = request.param.read_text(encoding="utf-8")
    cells = read.read_myst_markdown_notebook(text, add_source_map=False, path=request.param)
    cells.metadata["kernelspec"] = yaml.safe_load(text.split("---")[1])["kernelspec"]
    return cells


@pytest.mark.quick
def test_jupyter_takes_it(notebook):
    import nbformat

    nbformat.validate(notebook)
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    assert sum(cell.cell_type == "code" for cell in notebook.cells) > 1


def imported(code):
    """Modules that a cell imports, of which magics and commands have none."""
    plain = "\n".join(line for line in code.splitlines() if not line.startswith(("%", "!")))
    for node in ast.walk(ast.parse(plain)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def test_it_imports_what_comes_with_vlasov_and_jupyter(notebook):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = project["dependencies"] + project["optional-dependencies"]["distributed"]  # pages that use it say so
    packages = {re.split(r"[\[<>=~]", name)[0].replace("-", "_") for name in asked} | {"dask", "distributed"}
    there = packages | set(sys.stdlib_module_names) | {"vlasov", "IPython"}
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code" and not cell.source.startswith("%%")]
    assert {module for cell in cells for module in imported(cell)} <= there
