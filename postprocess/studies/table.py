"""Tables of studies: a row for each error, with the slope fitted to it; on a narrow terminal a line for each number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import xarray as xr

from vlasov.postprocess.drawing.listed import listed
from vlasov.postprocess.studies.rates import LEVEL

if TYPE_CHECKING:
    from rich.table import Table

Row = tuple[tuple[str, ...], dict[str, str]]  # what it is about, and its numbers by name
WIDE = 100  # letters that the wide table needs


def tabulated(title: str, caption: str, about: Sequence[str], found: Sequence[Sequence[Row]], width: int) -> Table:
    """Sections of rows; columns for what each is about, and for its numbers."""
    from rich.table import Table

    result = Table(title=title, caption=caption, caption_justify="left", title_style="bold")
    if width < WIDE:
        for names, numbers in (row for section in found for row in section):
            listed(result, ": ".join(names), [numbers])
        return result
    for name in about:
        result.add_column(name)
    for name in found[0][0][1]:
        result.add_column(name, justify="right")
    for section in found:
        for names, numbers in section:
            result.add_row(*names, *numbers.values())
        result.add_section()
    return result


def slopes(here: xr.Dataset) -> dict[str, str]:
    """The slope, its interval and that of the theory, as text, of a Dataset that has one of each."""
    slope, low, high, expected = (float(here[name]) for name in ("slope", "low", "high", "expected"))
    return {
        "slope": number(slope, ".3f"),
        f"{100 * LEVEL:.0f} % interval": f"{low:.3f} .. {high:.3f}" if math.isfinite(low) else "",
        "theory": number(expected, ".2f"),
    }


def number(x: float, form: str = ".3g") -> str:
    """A number as text; a dash where it is not known."""
    return f"{x:{form}}" if math.isfinite(x) else "-"
