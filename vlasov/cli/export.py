"""The command that writes numbers for other programs: export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlasov.cli.options import ForceOption, command
from vlasov.cli.pictures import Target, beside, claim, sources_of, write_text
from vlasov.errors import InputError

if TYPE_CHECKING:
    import xarray as xr


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
