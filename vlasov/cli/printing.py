"""What commands print: tables, JSON, runs and what they doubt of themselves."""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlasov.remedies import respelt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import xarray as xr

    from vlasov.cases import Case
    from vlasov.postprocess.panels import Table

#: Whether this command has printed its answer for programs, of which there is one.
answered: ContextVar[bool] = ContextVar("answered", default=False)
_WIDTH = 100  # of tables that go into a file
_ABOUT = ("doubt", "trouble", "metric", "blow_up_time", "predicted_blow_up_time")
_CUT = " ..."
_ARRAY = re.compile(r"\[\[.{,40}?\]\]|\[[^\[\]]{,40}\]")  # a matrix or a row of one, if it is short


def width() -> int:
    """Columns of the terminal, or those of tables that go into a file."""
    from rich.console import Console

    return Console().width if sys.stdout.isatty() else _WIDTH


def print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Print names with a text beside each, which goes on below itself where the line ends, but not inside an array."""
    indent = max(len(name) for name, _ in rows) + 2
    for name, text in rows:
        held = _ARRAY.sub(lambda array: array[0].replace(" ", "\xa0"), text)
        lines = textwrap.wrap(held, max(width() - indent, 20), break_long_words=False, break_on_hyphens=False)
        print(f"{name:<{indent}}" + f"\n{'':<{indent}}".join(lines).replace("\xa0", " "))


def cut(text: str, room: int) -> str:
    """Return the words of a text that fit, with dots where some do not."""
    said = textwrap.shorten(text, max(room, len(_CUT)), placeholder=_CUT, break_on_hyphens=False)
    return "" if said == _CUT.strip() else said


def print_tables(*datasets: xr.Dataset) -> None:
    """Print tables and notes of Datasets, as their kinds declare them, and below all each doubt once."""
    from rich.console import Console

    from vlasov.postprocess.panels import notes_of, tables_of

    for dataset in datasets:
        for table in tables_of(dataset):
            Console(width=width()).print(laid_out(table, width()))
            print()
        for note in notes_of(dataset):
            print(textwrap.fill(note, width()))
    for doubt in dict.fromkeys(str(dataset.attrs.get("doubt", "")) for dataset in datasets):
        print_doubt(doubt)


def laid_out(table: Table, columns: int) -> Any:
    """Return a table for rich, below its title: wide, or where there are fewer columns with a line for each number."""
    from rich import box
    from rich.console import Console, Group
    from rich.table import Table as RichTable
    from rich.text import Text

    look: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "show_edge": False}
    title = Text(table.title, style="bold")
    rows = [[_cell(value) for value in row] for row in table.rows]
    wide = RichTable(**look)
    for k, head in enumerate(table.heads):
        numeric = any(isinstance(row[k], int | float) for row in table.rows)
        wide.add_column(Text(head), justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        wide.add_row(*row)
    if Console(width=10**4).measure(wide).maximum <= columns:
        return Group(title, wide)
    narrow = RichTable(**look, show_header=False)
    narrow.add_column()
    narrow.add_column(justify="right")
    for row, (number, *_) in zip(rows, table.rows, strict=True):
        narrow.add_row(f"{table.heads[0]} = {row[0]}" if isinstance(number, int | float) else row[0], "")
        for head, text in zip(table.heads[1:], row[1:], strict=True):
            if text:
                narrow.add_row(Text(f"  {' '.join(head.split())}"), text)
        narrow.add_section()
    return Group(title, narrow)


def _cell(value: Any) -> str:
    if isinstance(value, float) or hasattr(value, "dtype"):
        return f"{float(value):.3g}" if math.isfinite(value) else "-" if math.isnan(value) else "infinite"
    return str(value)


def numbers_of(dataset: xr.Dataset) -> dict[str, Any]:
    """Return all variables and coordinates of a Dataset for programs, and the attributes that say something of it."""
    numbers = {
        str(name): finite(values.values) if values.dtype.kind in "iufb" else values.values.tolist()
        for name, values in dataset.variables.items()
    }
    about = {name: dataset.attrs[name] for name in _ABOUT if dataset.attrs.get(name)}
    return numbers | {name: finite(value) if isinstance(value, float) else value for name, value in about.items()}


def print_result(
    numbers: dict[str, Any], datasets: Iterable[xr.Dataset], files: dict[str, Path], *, as_json: bool
) -> None:
    """Print numbers for programs, or the tables of Datasets; and the files that were written, which have names."""
    if as_json:
        print_json(numbers | {name: str(path) for name, path in files.items()})
        return
    print_tables(*datasets)
    for path in files.values():
        print(path)


def print_json(value: Any) -> None:
    """Print the answer for programs; whatever goes wrong later is told on stderr alone."""
    answered.set(True)
    print(json.dumps(value, indent=1, allow_nan=False))


def finite(values: Any) -> Any:
    """Lists of numbers, with None for NaN and infinity, which JSON does not know."""
    if isinstance(values, list):
        return [finite(value) for value in values]
    return finite(values.tolist()) if hasattr(values, "tolist") else values if math.isfinite(values) else None


def describe(case: Case) -> dict[str, Any]:
    """A case for programs."""
    return {
        "name": case.name,
        "title": case.title,
        "description": case.description,
        "paper": case.paper,
        "problem": case.problem.to_dict(),
        "times": case.times,
        "solvers": case.solvers,
        "facts": [fact.says for fact in case.facts],
    }


def summary(result: xr.Dataset) -> dict[str, Any]:
    """A run for programs."""
    blow_up_time = result.attrs["blow_up_time"]
    return {
        **{key: result.attrs[key] for key in ("case", "solver", "status", "steps", "wall_seconds", "method")},
        "blow_up_time": blow_up_time if blow_up_time == blow_up_time else None,
        "options": json.loads(result.attrs["options"]),
        "final_time": float(result["time"][-1]),
        "mean": finite(result["mean"].values[-1]),
        "covariance": finite(result["covariance"].values[-1]),
        "error_estimate": finite(result.attrs["error_estimate"]),
    }


def print_run(result: xr.Dataset, target: Path) -> None:
    """Print what a run was and where it is."""
    attrs = result.attrs
    off = f" +- {attrs['blow_up_time_error']:.2g}" if "blow_up_time_error" in attrs else ""
    end = f"blow-up at t = {attrs['blow_up_time']:.10g}{off}" if attrs["status"] == "blow-up" else attrs["status"]
    print(
        f"{attrs['title']}, solver {attrs['solver']}: {end} after {attrs['steps']} steps, {attrs['wall_seconds']:.2g} s"
    )
    print(f"  written to {target}")
    if note := attrs.get("density_note"):
        print(f"  note: {note}")


def print_doubt(doubtful: str, solver: str = "", *, named: bool = False) -> None:
    """Print a doubt as a line in the colour of a warning, whole, on a terminal and elsewhere.

    ``solver`` is the solver that a command ran, by the options of which the doubt is dispelled; ``named``: say which.
    """
    if doubtful:
        from rich.console import Console
        from rich.text import Text

        if solver:
            from vlasov.solvers.driver import resolve

            doubtful = respelt(doubtful, vars(resolve(solver, {})[1]), solver)
        line = f"  warning: {f'{solver}: ' if named else ''}{doubtful}"
        Console(highlight=False).print(Text(line, style="bold yellow"), soft_wrap=True)
