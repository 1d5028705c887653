"""The command about reports: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vlasov.cli.options import JsonOption, command
from vlasov.cli.printing import print_json
from vlasov.errors import InputError


@command()
def report(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|STUDY|COMPARISON...", help="Files of runs, studies and comparisons, or folders of studies."
        ),
    ] = None,
    *,
    every: Annotated[
        Path | None,
        typer.Option("--all-cases", metavar="DIR", help="A report for each case file in a folder, and a page of all."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="The .html file, or the folder of --all-cases; beside the first if not given."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show runs, studies and comparisons on one HTML page that opens without a network; several runs side by side."""
    from vlasov.postprocess.report import checked_target, of_sources
    from vlasov.postprocess.report.gallery import gallery
    from vlasov.postprocess.report.page import check_ours
    from vlasov.postprocess.report.sources import opened
    from vlasov.solvers.files import check_apart

    if bool(paths) == (every is not None):
        raise InputError("needs files to show, or --all-cases DIR, and not both", "report")
    if every is not None:
        pages = gallery(every, output or every / "report", say=(lambda _: None) if as_json else print)
        if as_json:
            print_json({"output": str(pages[0]), "reports": [str(page) for page in pages[1:]]})
        else:
            print(pages[0])
        return
    first = (paths or [])[0]
    target = checked_target(output or _beside(first))
    check_apart(target, *(paths or []))
    if output is None:
        check_ours(target)
    target = of_sources(opened(paths)).save(target)
    if as_json:
        print_json({"output": str(target), "bytes": target.stat().st_size})
    else:
        print(target)


def _beside(first: Path) -> Path:
    """The report's name where none is given: that of the file, or that of a study in its folder."""
    return first / "study.html" if first.name in ("", "..") else first.with_suffix(".html")
