"""A comparison as a table for the terminal: wide, or on a narrow one with a line for each number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from vlasov.postprocess.drawing.listed import listed
from vlasov.postprocess.stability import SETTLED, written
from vlasov.solvers.dataset import require

if TYPE_CHECKING:
    from rich.table import Table

_ROWS = 6  # times that are shown
_WIDE = 130  # letters that the wide table needs
_AMPLIFIED, _ROUNDING = "amplified", 1e-6
_RATES = ("log. norm", "log_logarithmic_norm"), ("exp int |J|", "log_norm")  # names, and logarithms


def table(comparison: xr.Dataset, width: int = _WIDE) -> Table:
    """Errors of each pair at a few times, the last among them."""
    from rich.table import Table

    from vlasov.postprocess.compare import COMPARISON

    require(comparison, COMPARISON, "comparison")
    different = comparison.attrs.get("initial") == "different"
    words = "from different starts" if different else "side by side"
    result = Table(title=f"{comparison.attrs['title']}: solutions {words}", caption=notes(comparison) or None)
    result.caption_justify = "left"
    count = comparison.sizes["time"]
    shown = np.unique(np.linspace(0, count - 1, min(count, _ROWS)).round().astype(int))
    rows = [
        (str(pair), [_numbers(own.isel(time=j), different=different) for j in shown])
        for pair, own in ((pair, comparison.isel(pair=i)) for i, pair in enumerate(comparison["pair"].values))
    ]
    if width < _WIDE:
        for pair, numbers in rows:
            listed(result, pair, numbers)
        return result
    result.add_column("pair", no_wrap=True)
    for name in rows[0][1][0]:
        result.add_column(name, justify="right", no_wrap=name.endswith(tuple("0123456789")))
    for pair, numbers in rows:
        for k, row in enumerate(numbers):
            result.add_row(pair if k == 0 else "", *row.values(), end_section=k == len(numbers) - 1)
    return result


def notes(comparison: xr.Dataset) -> str:
    """Where solutions have only parted by instability, and which of them are doubtful themselves."""
    said = []
    amplified = comparison["amplified"].values
    if amplified.any():
        since = float(comparison["time"].values[amplified.any(axis=0)].min())
        said.append(
            f"amplified: from t = {since:.4g} on the unstable mean has multiplied a small difference of the starts "
            "until it is as large as the measure; the distance there says nothing about the solvers."
        )
    different = comparison.attrs.get("initial") == "different"
    if "far" in comparison and not different:
        said += _possible(comparison.isel(pair=0))
    if different and "far" in comparison and comparison["far"].values.any():
        said.append(_far(comparison))
    said += _of_theory(comparison)
    if doubt := comparison.attrs.get("doubt", ""):
        said.append(f"doubtful: {doubt}.")
    return "\n".join(said)


def _far(comparison: xr.Dataset) -> str:
    """Since when numbers for small differences are local, and how much more was measured."""
    far = comparison["far"].values
    since = float(comparison["time"].values[far.any(axis=0)].min())
    with np.errstate(invalid="ignore"):
        excess = np.where(far, comparison["growth"].values[..., -1] / comparison["optimal_growth"].values, np.nan)
    text = (
        f"local: from t = {since:.4g} on solutions are too far apart for the derivative of the flow, which says how "
        "small differences grow along each of them; between them differences may grow more."
    )
    most = float(np.nanmax(excess, initial=0.0))
    return text if most <= 1 + _ROUNDING else f"{text} Measured was up to {most:.4g} times the local optimum."


def _of_theory(comparison: xr.Dataset) -> list[str]:
    """Why there is no estimate, or how well it is known."""
    logs, errors = (comparison[name].values for name in ("log_a_posteriori", "log_a_posteriori_error"))
    radii = comparison["radius"].isel(time=0)
    without = [str(name) for name in comparison["solution"].values[np.isnan(radii.values)]]
    if np.isnan(logs).all():
        why = f"the support is not bounded ({', '.join(without)})" if without else "none is known for this attention"
        return [f"?: no estimate holds, since {why}."]
    with np.errstate(invalid="ignore", divide="ignore"):
        open_to = float(np.nanmax(errors[:, 1:] / logs[:, 1:], initial=0.0, where=logs[:, 1:] > 0))
    if open_to <= SETTLED:
        return []
    exact = f"to {100 * open_to:.2g} %" if open_to < 1 else "to no digit"
    return [f"estimate, a posteriori: these output times tell its exponent {exact}; more of them tell more."]


def _possible(found: xr.Dataset) -> list[str]:
    """What small differences can become by the last time at which that is known."""
    known = np.flatnonzero(np.isfinite(found["optimal_growth"].values))
    if not known.size or known[-1] == 0:
        return []
    at = found.isel(time=known[-1])
    rates = [(words, float(at[name])) for words, name in _RATES]
    texts = ", ".join(f"{words} {written(value)}" for words, value in rates if not math.isnan(value))
    return [
        f"small differences of the starts grow at most {float(at['optimal_growth']):.4g} times by t = "
        f"{float(at['time']):.4g}{f' ({texts})' if texts else ''}."
    ]


def _numbers(at: xr.Dataset, *, different: bool) -> dict[str, str]:
    """What is known of a pair at one time, as text by its name."""
    amplified = bool(at["amplified"])
    orders = at["p"].values
    found = {"t": f"{float(at['time']):.4g}"}
    for k, order in enumerate(orders):
        value, error = float(at["wasserstein"][k]), float(at["wasserstein_error"][k])
        found[f"W_{order:g}"] = (
            _AMPLIFIED if amplified else f"{value:.2e} ± {error:.0e}" if math.isfinite(value) else ""
        )
    moments = max(float(at["moment_error"].sel(order=order)) for order in (3, 4))
    kinds = {"mean": "mean_error", "covariance": "covariance_error", "density L1": "density_error"}
    names = {name: float(at[variable]) for name, variable in kinds.items()}
    for name, number in ({} if different else {**names, "moments 3, 4": moments}).items():
        found[name] = (
            _AMPLIFIED if amplified and np.isfinite(number) else f"{number:.1e}" if np.isfinite(number) else ""
        )
    last, growth = f"W_{orders[-1]:g}", float(at["growth"][-1])
    found[f"{last}(t) / {last}(0)"] = (
        _AMPLIFIED if amplified else "unresolved" if math.isnan(growth) else f"{growth:.3g}"
    )
    if different and "optimal_growth" in at:
        where = " (local)" if bool(at["far"]) else ""
        optimal = float(at["optimal_growth"])
        found["optimal"] = f"{optimal:.4g}{where}" if math.isfinite(optimal) else ""
        for name, variable in _RATES:
            value = float(at[variable])
            found[name] = f"{written(value)}{where}" if not math.isnan(value) else ""
    known = "bounded" not in at or bool(at["bounded"].values[-1])
    for name, variable in (("estimate", "log_a_posteriori"), ("at most", "log_a_priori")):
        found[name] = written(float(at[variable]) if known else math.nan)
    return found
