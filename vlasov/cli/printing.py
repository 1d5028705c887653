"""What commands print: tables, JSON, runs and what they doubt of themselves."""

from __future__ import annotations

import json
import math
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlasov.remedies import respelt

if TYPE_CHECKING:
    import xarray as xr

    from vlasov.cases import Case

#: Whether this command has printed its answer for programs, of which there is one.
answered: ContextVar[bool] = ContextVar("answered", default=False)
_WIDTH = 160  # of tables that go into a file


def width() -> int:
    """Columns of the terminal, or those of tables that go into a file."""
    from rich.console import Console

    return Console().width if sys.stdout.isatty() else _WIDTH


def print_table(table: Any) -> None:
    """Print a table of rich."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else _WIDTH).print(table)


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
