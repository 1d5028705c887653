"""The reference is made from the code, and leaves out nothing of it."""

import sys
import tomllib
from pathlib import Path

import pytest

import vlasov as vl

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs/_ext"))

import plain_docstrings  # noqa: E402
import reference  # noqa: E402
from balanced import cost, dealt  # noqa: E402
from reference import cases, public, schema  # noqa: E402


@pytest.fixture(scope="module")
def texts():
    return reference.texts()


@pytest.mark.quick
def test_every_public_name_has_a_page_and_stands_in_the_list(texts):
    listed = texts["api/index.rst"].split()
    for name in dir(vl):
        if not name.startswith("_") and name in vl.__all__:
            assert f"api/{name}.rst" in texts
            assert name in listed


def test_a_public_name_without_a_group_is_an_error(monkeypatch):
    monkeypatch.setattr(public, "GROUPS", public.GROUPS[1:])
    with pytest.raises(LookupError, match=r"Problem.*name the module in a group"):
        public.grouped()


def test_every_estimate_of_the_theory_is_documented(texts):
    names = [name for name in dir(vl.estimates) if callable(getattr(vl.estimates, name)) and not name.startswith("_")]
    assert len(names) > 10
    for name in names:
        assert f"vlasov.estimates.{name}" in texts["api/estimates.rst"]


def test_every_option_of_every_command_is_there(texts):
    import typer

    from vlasov.cli import app

    commands = typer.main.get_command(app).commands
    page = texts["_made/commands.md"]
    for name, command in commands.items():
        section = page.partition(f"## `vlasov {name}`")[2].partition("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert f"`{parameter.opts[-1]}`" in section, (name, parameter.opts)


def keys(table, path=""):
    """Sections and keys of a case file; places in lists do not count."""
    for key, value in table.items():
        yield path, key
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from keys(inner, f"{path}.{key}".lstrip("."))


@pytest.mark.parametrize("name", vl.case_names())
def test_every_key_of_every_case_is_explained(name, texts):
    page = "".join(text for file, text in texts.items() if file.startswith("_made/case-"))
    for section, key in keys(tomllib.loads((ROOT / f"cases/{name}.toml").read_text())):
        written = f"[solvers.{key}]" if section == "solvers" else f"`{key}`"
        assert written in page or f'"{key}"' in page or key == "kind", (section, key)


def test_words_for_what_is_gone_or_new_are_an_error():
    with pytest.raises(LookupError, match="new, old"):
        cases.explained({"old": "...", "both": "..."}, ["both", "new"])


@pytest.mark.parametrize(
    ("case", "solver", "options"),
    [
        ("gaussian-collapse", "gaussian", {}),
        ("gaussian-collapse", "particles", {"n": 16}),
        ("gaussian-collapse", "layers", {"n": 16, "depth": 4}),
        ("gaussian-collapse", "finite-volume", {"cells": 24}),
        ("sinkhorn-collapse", "gaussian", {}),
        ("masked-two-topics", "particles", {"n": 16}),
    ],
)
def test_runs_hold_nothing_that_the_schema_does_not_explain(case, solver, options):
    problem = vl.load_case(case).problem
    run = vl.solve(problem, solver, times=[0.0, problem.horizon / 4], warn_above=float("inf"), **options)
    assert schema.unexplained(run) == set()


def test_what_is_not_explained_is_seen():
    problem = vl.load_case("gaussian-collapse").problem
    run = vl.solve(problem, "gaussian", times=[0.0])
    run["odd"], run.attrs["stray"] = 1.0, 2
    assert schema.unexplained(run) == {"odd", "stray"}


def test_sentences_of_runs_are_listed_with_their_place_in_the_manual(texts):
    page = texts["_made/advice.md"]
    for sentence in (
        "the grid is too coarse for this flow",
        "errors of steps of tolerance … are amplified",
        "pre-norm jumps at the origin, and flows that take tokens there do not go on",
        "its error is not known",
    ):
        assert sentence in page
    assert "[more](../howto/when-a-run-stops.md#too-few-tokens)" in page
    for typed in ('`sampling="quadrature"`', '`"finite-volume"`', "`tolerance=…`"):
        assert typed in page
    lines = page.splitlines()
    assert len(lines) == len(set(lines))


def test_the_list_says_how_examples_begin_once(texts):
    page = texts["api/index.rst"]
    assert page.count("    import numpy as np\n    import vlasov as vl\n") == page.count("import vlasov") == 1


def test_types_have_their_names_inside_of_others_too():
    inspecting = pytest.importorskip("sphinx.util.inspect")
    from sphinx.util.typing import stringify_annotation

    plain_docstrings._name_types()
    held = inspecting.TypeAliasForwardRef("Parameter")
    assert stringify_annotation(dict[str, held]) == "dict[str, Parameter]"
    assert stringify_annotation(held | None, "smart") == "Parameter | None"


DOCSTRING = """A_h mu_ with |x| <= 1 and 2 * 3.

    d_t mu = 0

Parameters
----------
Q, K
    Matrices A_ and ``A_``; see

        Q * K

Each may depend on t_.

Examples
--------
>>> 2 * 3  # |x|
6
"""


def test_formulas_become_literal_blocks_and_signs_mean_themselves():
    lines = plain_docstrings.converted(DOCSTRING.splitlines())
    assert lines[0] == r"A_h mu\_ with \|x\| <= 1 and 2 \* 3."
    assert lines[2:5] == ["::", "", "    d_t mu = 0"]
    assert r"    Matrices A\_ and ``A_``; see" in lines
    assert lines[lines.index("        Q * K") - 2] == "    ::"
    assert lines.index("Notes") > lines.index("Parameters")
    assert ">>> 2 * 3  # |x|" in lines


def test_docstrings_render_without_a_complaint():
    pytest.importorskip("docutils")
    from docutils.core import publish_doctree

    free = DOCSTRING.partition("Parameters")[0] + "* one_\n* two|\n"
    lines = plain_docstrings.converted(free.splitlines())
    tree = publish_doctree("\n".join(lines), settings_overrides={"halt_level": 2, "report_level": 2})
    assert [node.astext() for node in tree.findall() if node.tagname == "literal_block"] == ["d_t mu = 0"]


@pytest.mark.quick
def test_pages_that_run_are_dealt_evenly():
    costs = {f"page {k:02}": cost for k, cost in enumerate([9, 8, 7, 3, 2, 1, *[0] * 14])}
    pages = dealt(costs, [10, 10])
    assert sorted(pages) == sorted(costs)
    assert sum(costs[page] for page in pages[:10]) == 15


def test_cells_cost_in_notebooks_only():
    cell, block = "```{code-cell}\n1\n```\n", ":::{executed}\n1\n:::\n"
    head = "---\nkernelspec:\n  name: python3\n---\n"
    assert cost(head + cell + cell) == cost(head) + 2 > 2
    assert cost(cell) == 0
    assert cost(block + block) == 2


def test_quantities_of_facts_have_words(texts):
    from vlasov.cases.facts import QUANTITIES

    for name in QUANTITIES:
        row = next(line for line in texts["_made/case-facts.md"].splitlines() if f"`{name}`" in line)
        assert len(row.split(" | ")[1]) > 10, row
