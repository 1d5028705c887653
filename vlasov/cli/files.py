"""Commands that make files for readers and for other programs of runs and studies: report, export, cite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlasov.cli.options import ForceOption, JsonOption, command
from vlasov.cli.pictures import Target, beside, claim, sources_of, write_text
from vlasov.cli.printing import print_result
from vlasov.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

_SUFFIX = ".bib"


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
    from vlasov.solvers.progress import waiting

    if bool(paths) == (every is not None):
        raise InputError("needs files to show, or --all-cases DIR, and not both", "report")
    if every is not None:
        pages = gallery(every, output or every / "report", overwrite=force, say=(lambda _: None) if as_json else print)
        print_result({"reports": [str(page) for page in pages[1:]]}, [], {"output": pages[0]}, as_json=as_json)
        return
    first, files = (paths or [])[0], [file_of(path) for path in paths or []]
    target = claim(checked_target(output or _page(first)), sources_of(files), *files, force=force)
    with waiting("writing the report"):
        path = of_sources(opened(paths), target.origin).save(target.path)
    print_result({"bytes": path.stat().st_size}, [], {"output": path}, as_json=as_json)


def _page(first: Path) -> Path:
    """The report's name where none is given: that of the file, or that of a study in its folder."""
    return first / "study.html" if first.name in ("", "..") else first.with_suffix(".html")


@command()
def export(
    path: Annotated[Path, typer.Argument(metavar="RUN.nc", help="What vlasov run wrote; for .npz any file of ours.")],
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A .csv file, or .npz; RUN.csv beside it if not given.")
    ] = None,
    at: Annotated[
        float | None, typer.Option("--at", metavar="T", help="The state at this output time, not the statistics.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write numbers for other programs: a .csv table, or a .npz file with all arrays by name.

    A row of the table is an output time with mean, covariance, radius and errors; with --at it is a token with its
    place and weight, or a cell of the density with its centre and its value.
    """
    from vlasov.solvers.dataset import RUN, open_run, require, time_index

    target = beside(path, "{}.csv") if output is None else output
    if target.suffix not in (".csv", ".npz"):
        raise InputError(f'"{target}" ends in neither .csv nor .npz; name such a file', "output")
    place = claim(target, [*sources_of([path]), at], path, force=force) if target.suffix == ".npz" else None
    dataset = open_run(path)
    if at is not None:
        require(dataset, RUN, "path")
    elif place is None and (kind := dataset.attrs.get("kind", RUN.name)) != RUN.name:
        raise InputError(f'is of kind "{kind}", which is no table over time; write its arrays by "-o NAME.npz"', "path")
    try:
        if place is None:
            write_text(target, _table(dataset, at), path, force=force)
        else:
            _write_arrays(dataset if at is None else dataset.isel(time=[time_index(dataset, float(at))]), place)
    except InputError as mistake:
        raise InputError(mistake.sentence, "--at") if mistake.field == "time" else mistake from None
    print(target)


def _table(run: xr.Dataset, at: float | None) -> str:
    """Return names and rows with commas between them; numbers are exact."""
    from vlasov.postprocess.columns import state, statistics

    columns = statistics(run) if at is None else state(run, at)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows), ""])


def _write_arrays(dataset: xr.Dataset, target: Target) -> None:
    """Write all variables; the file says its origin."""
    import zipfile

    import numpy as np

    from vlasov.solvers.files import written_whole
    from vlasov.solvers.targets import signature

    arrays = {str(name): values.to_numpy() for name, values in dataset.variables.items()}
    plain = {name: values.astype(str) if values.dtype.kind == "O" else values for name, values in arrays.items()}
    try:
        with written_whole(target.path) as unfinished:
            np.savez(unfinished, **plain)  # type: ignore[arg-type]
            with zipfile.ZipFile(unfinished, "a") as archive:
                archive.comment = signature(target.origin).encode()
    except OSError as error:
        raise InputError(f'"{target.path}" cannot be written: {error.strerror}', "output") from None


@command()
def cite(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN.nc|CASE...", help="Runs, studies or their folders, cases, or .toml files; one list for all."
        ),
    ],
    *,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A .bib file to write.")] = None,
    force: ForceOption = False,
) -> None:
    """Print BibTeX of this software, and of the theorems and methods that runs used, each with the reason why."""
    from vlasov.postprocess.citing import cite_all

    if output is None:
        print(cite_all(paths))
        return
    if output.suffix.lower() != _SUFFIX:
        raise InputError(f'"{output}" must end in {_SUFFIX}', "output")
    write_text(output, cite_all(paths) + "\n", *paths, force=force)
    print(output)
