"""Commands about cases: list, show, copy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.cli.options import CaseArgument, ForceOption, JsonOption, command
from vlasov.cli.pictures import write_text
from vlasov.cli.printing import cut, describe, print_json, print_rows, width
from vlasov.errors import choose

if TYPE_CHECKING:
    from vlasov.cases import Case


@dataclass(frozen=True)
class Filter:
    """Which cases are listed: those that have all of this."""

    words: Annotated[list[str] | None, typer.Argument(metavar="WORD...", help="Of names and titles of cases.")] = None
    subject: Annotated[str | None, typer.Option("--subject", help="One of the headings of the list.")] = None
    solver: Annotated[str | None, typer.Option("--solver", help="A solver that the case has options for.")] = None
    attention: Annotated[str | None, typer.Option("--attention", help="A kind, in a head or under a mask too.")] = None
    dimension: Annotated[int | None, typer.Option("--dimension", help="d, of the space where tokens move.")] = None

    def chosen(self) -> list[Case]:
        """Return the cases, by name."""
        from vlasov.cases import case_names, load_case
        from vlasov.cases.equations import VELOCITY, seen
        from vlasov.cases.subjects import SUBJECTS, subject
        from vlasov.solvers import SOLVERS

        about = None if self.subject is None else choose(self.subject.capitalize(), SUBJECTS, "--subject")
        solver = self.solver and choose(self.solver, SOLVERS, "--solver")
        kind = self.attention and choose(self.attention, (*VELOCITY, "masked", "multi-head"), "--attention")
        return [
            case
            for case in map(load_case, case_names())
            if about in (None, subject(case))
            and (solver is None or solver in case.solvers)
            and (kind is None or kind in re.findall(r"[\w-]+", seen(case.problem.attention)))
            and self.dimension in (None, case.problem.dimension)
            and all(word.lower() in f"{case.name} {case.title}".lower() for word in self.words or ())
        ]


@command(name="list")
def list_cases(*, which: Filter, as_json: JsonOption = False) -> None:
    """List the named cases by subject, a line each, with dimension and title: all, or those that have what is asked."""
    from vlasov.cases.subjects import SUBJECTS, subject

    cases = which.chosen()
    if as_json:
        print_json([listed(case) for case in cases])
        return
    if not cases:
        print("No case has all of this; leave out a word or an option.")
    names = max((len(case.name) for case in cases), default=0)
    for title, says in SUBJECTS.items():
        lines = [
            f"  {case.name:<{names}}  {case.problem.dimension:>2}D  {cut(case.title, width() - names - 9)}".rstrip()
            for case in cases
            if subject(case) == title
        ]
        if lines:
            print(f"{title}. {cut(says, width() - len(title) - 2)}".rstrip(), *lines, sep="\n")


def listed(case: Case) -> dict[str, Any]:
    """Return a case in a line, for programs: how its description begins says what it shows."""
    from vlasov.cases.equations import around, seen
    from vlasov.cases.subjects import subject

    return {
        "name": case.name,
        "title": case.title,
        "subject": subject(case),
        "d": case.problem.dimension,
        "attention": case.problem.attention.kind,
        "sees": seen(case.problem.attention) + around(case.problem),
        "solvers": list(case.solvers),
        "shows": cut(case.description, 160),
    }


@command()
def show(case: CaseArgument, as_json: JsonOption = False) -> None:
    """Say what a case shows, its problem, its solvers and the facts it is checked against."""
    from vlasov.cases import load_case
    from vlasov.cases.equations import in_words

    loaded = load_case(case)
    if as_json:
        print_json(describe(loaded))
        return
    print(f"{loaded.name}: {loaded.title}\n")
    rows = [("Shows", loaded.description), *in_words(loaded.problem)]
    ways = ([solver, *(f"{key}={value}" for key, value in own.items())] for solver, own in loaded.solvers.items())
    rows += [("Solver", " ".join(way)) for way in ways]
    rows += [("Fact", fact.says) for fact in loaded.facts]
    print_rows([*rows, ("Source", loaded.paper)])


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
