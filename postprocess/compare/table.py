"""A comparison as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from vlasov.solvers.dataset import COMPARISON, require

if TYPE_CHECKING:
    from rich.table import Table

_ROWS = 6  # times that are shown


def table(comparison: xr.Dataset) -> Table:
    """Errors of each pair at a few times, the last among them."""
    from rich.table import Table

    require(comparison, COMPARISON, "comparison")
    result = Table(title=f"{comparison.attrs['title']}: solutions side by side")
    result.add_column("pair")
    orders = comparison["p"].values
    for name in ("t", *(f"W_{order:g}" for order in orders), "mean", "covariance", "moments 3, 4", "density L1"):
        result.add_column(name, justify="right")
    result.add_column(f"W_{orders[-1]:g}(t) / W_{orders[-1]:g}(0) <= a posteriori <= a priori")
    count = comparison.sizes["time"]
    shown = np.unique(np.linspace(0, count - 1, min(count, _ROWS)).round().astype(int))
    for i, pair in enumerate(comparison["pair"].values):
        for j in shown:
            at = comparison.isel(pair=i, time=j)
            distances = [
                f"{value:.2e} ± {error:.0e}" if np.isfinite(value) else ""
                for value, error in zip(at["wasserstein"].values, at["wasserstein_error"].values, strict=True)
            ]
            moments = max(float(at["moment_error"].sel(order=order)) for order in (3, 4))
            numbers = [at["mean_error"].item(), at["covariance_error"].item(), moments, at["density_error"].item()]
            resolved = _resolved(comparison.isel(pair=i, time=0)) and _resolved(at)
            bounds = [at["growth"].values[-1], at["log_a_posteriori"].item(), at["log_a_priori"].item()]
            result.add_row(
                str(pair) if j == shown[0] else "",
                f"{float(at['time']):.4g}",
                *distances,
                *(f"{number:.1e}" if np.isfinite(number) else "" for number in numbers),
                " <= ".join([f"{bounds[0]:.3g}" if resolved else "unresolved", *map(_exponential, bounds[1:])]),
                end_section=j == shown[-1],
            )
    return result


def _resolved(at: xr.Dataset) -> bool:
    """Whether the distance is more than its error."""
    return bool(at["wasserstein"].values[-1] > at["wasserstein_error"].values[-1])


def _exponential(exponent: float) -> str:
    if np.isnan(exponent):
        return "?"
    return f"{np.exp(exponent):.3g}" if exponent < 20 else f"e^{exponent:.3g}"
