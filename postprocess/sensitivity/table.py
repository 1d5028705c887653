"""Sensitivities as a table for the terminal, and numbers of any size as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import xarray as xr

from vlasov.postprocess.drawing.listed import listed
from vlasov.postprocess.stability import written
from vlasov.solvers.dataset import require

if TYPE_CHECKING:
    from rich.table import Table

_WIDE = 110  # letters that the wide table needs
_SMALL = 1e-4  # numbers below have an exponent
_DIGITS = 8  # at most
_OF = {"limit": "in the limit of many tokens", "tokens": "of these tokens"}


def table(found: xr.Dataset, width: int = 160) -> Table:
    """Growth and rates at each time; on a narrow terminal a line for each number."""
    from rich.table import Table

    from vlasov.postprocess.sensitivity import SENSITIVITY

    require(found, SENSITIVITY, "sensitivity")
    title = f"{found.attrs['title']}: growth of small changes {_OF[found.attrs['of']]}"
    result = Table(title=title, caption=notes(found) or None)
    result.caption_justify = "left"
    rows = [_numbers(found.isel(time=k)) for k in range(found.sizes["time"])]
    if width < _WIDE:
        listed(result, f"n = {found.attrs['n']}", rows)
        return result
    for name in rows[0]:
        result.add_column(name, justify="right")
    for row in rows:
        result.add_row(*row.values())
    return result


def _numbers(at: xr.Dataset) -> dict[str, str]:
    """What is known at one time, as text by its name."""
    value, error = float(at["growth"]), float(at["growth_error"])
    found = {
        "t": f"{float(at['time']):.4g}",
        "growth": _sure(value, error) + (" (this sample's)" if bool(at["sample"]) else ""),
    }
    if "log_norm" in at:
        found["exp int lambda"] = written(float(at["log_logarithmic_norm"]))
        found["exp int |J|"] = written(float(at["log_norm"]))
    found["carried by"] = f"{float(at['carriers']):.3g} ({_share(100 * float(at['participation']))} %)"
    return found


def _sure(value: float, error: float) -> str:
    """A number by the digits that its error leaves."""
    if math.isnan(value) or error > abs(value):
        return "unknown"
    if math.isnan(error):
        return f"{value:.8g}"
    if error == 0:
        return f"{value:.8g} ± 0"
    first = math.floor(math.log10(abs(value)))
    last = max(math.floor(math.log10(error)), first - _DIGITS + 1)
    off = f"{error:.0e}" if error < _SMALL or first >= _DIGITS else f"{float(f'{error:.0e}'):g}"
    if abs(value) < _SMALL or first >= _DIGITS:
        return f"{value:.{first - last}e} ± {off}"
    return f"{round(value, -last):.{max(0, -last)}f} ± {off}"


def _share(percent: float) -> str:
    """Whole per cents, or what there is of less than one."""
    return f"{percent:.0f}" if percent >= 1 else f"{percent:.1g}"


def notes(found: xr.Dataset) -> str:
    """How it was found, and why it may not be right."""
    attrs = found.attrs
    said = [
        f"{attrs['n']:,} {'nodes' if attrs['of'] == 'limit' else 'tokens'}, {attrs['steps']} steps, "
        f"{attrs['products']} products with the tangent flow or its adjoint."
    ]
    if attrs["status"] == "blow-up":
        whose = "solution blows" if attrs["of"] == "limit" else "tokens blow"  # a Gaussian may, where tokens do not
        said.append(f"The {whose} up at t = {attrs['blow_up_time']:.6g}, before which times end.")
    if (found["sample"].values).any():
        since = float(found["time"].values[found["sample"].values.argmax()])
        said.append(f"From t = {since:.4g} on a few tokens carry the growth: the number is theirs, not the limit's.")
    if attrs["doubt"]:
        said.append(f"doubtful: {attrs['doubt']}.")
    return "\n".join(said)
