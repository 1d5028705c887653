"""Commands about cases: list, show, copy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.cli.options import CaseArgument, ForceOption, JsonOption, command
from vlasov.cli.pictures import write_text
from vlasov.cli.printing import describe, print_json
from vlasov.postprocess.equations import around, seen

if TYPE_CHECKING:
    from vlasov.cases import Case

_SHOWN = 160  # characters of a description, in the list of cases


@command(name="list")
def list_cases(as_json: JsonOption = False) -> None:
    """List the named cases: dimension, attention and solvers of each, and what it shows."""
    from vlasov.cases import case_names, load_case

    cases = [listed(load_case(name)) for name in case_names()]
    if as_json:
        print_json(cases)
        return
    width = max(len(case["name"]) for case in cases)
    for case in cases:
        print(f"{case['name']:<{width}}  d = {case['d']}, {case['sees']}: {', '.join(case['solvers'])}")
        print(f"    {case['title']}: {case['shows']}")


def listed(case: Case) -> dict[str, Any]:
    """A case in a line: how its description begins says what it shows."""
    import textwrap

    return {
        "name": case.name,
        "title": case.title,
        "d": case.problem.dimension,
        "attention": case.problem.attention.kind,
        "sees": seen(case.problem.attention) + around(case.problem),
        "solvers": list(case.solvers),
        "shows": textwrap.shorten(case.description, _SHOWN, placeholder=" ..."),
    }


@command()
def show(case: CaseArgument, as_json: JsonOption = False) -> None:
    """Say what a case shows, its problem, its solvers and the facts it is checked against."""
    from vlasov.cases import load_case

    loaded = load_case(case)
    if as_json:
        print_json(describe(loaded))
        return
    print(f"{loaded.name}: {loaded.title}\n\n{loaded.description}\n\nsource     {loaded.paper}")
    problem = loaded.problem
    print(f"attention  {seen(problem.attention)}{around(problem)}, d = {problem.dimension}")
    print(f"initial    {problem.initial.kind}\nhorizon    {problem.horizon:g}")
    for solver, options in loaded.solvers.items():
        print(f"solver     {solver} " + " ".join(f"{key}={value}" for key, value in options.items()))
    for fact in loaded.facts:
        print(f"fact       {fact.says}")


@command()
def copy(
    case: CaseArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write; CASE.toml here if not given.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Copy a case's file, to change it and to run the copy."""
    from vlasov.cases.catalogue import case_path
    from vlasov.cases.load import copied

    source = case_path(case)
    target = output or Path(source.name)
    if target.is_dir():
        target = target / source.name
    write_text(target, copied(case, target.parent), source, force=force)
    print(target)
