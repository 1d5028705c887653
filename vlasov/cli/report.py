"""The command about reports: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vlasov.cli.options import ForceOption, JsonOption, command
from vlasov.cli.pictures import claim, sources_of
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
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show runs, studies and comparisons on one HTML page that opens without a network; several runs side by side."""
    from vlasov.postprocess.report import checked_target, of_sources
    from vlasov.postprocess.report.gallery import gallery
    from vlasov.postprocess.report.sources import file_of, opened

    if bool(paths) == (every is not None):
        raise InputError("needs files to show, or --all-cases DIR, and not both", "report")
    if every is not None:
        pages = gallery(every, output or every / "report", overwrite=force, say=(lambda _: None) if as_json else print)
        if as_json:
            print_json({"output": str(pages[0]), "reports": [str(page) for page in pages[1:]]})
        else:
            print(pages[0])
        return
    first, files = (paths or [])[0], [file_of(path) for path in paths or []]
    target = claim(checked_target(output or _beside(first)), sources_of(files), *files, force=force)
    path = of_sources(opened(paths), target.origin).save(target.path)
    if as_json:
        print_json({"output": str(path), "bytes": path.stat().st_size})
    else:
        print(path)


def _beside(first: Path) -> Path:
    """The report's name where none is given: that of the file, or that of a study in its folder."""
    return first / "study.html" if first.name in ("", "..") else first.with_suffix(".html")
