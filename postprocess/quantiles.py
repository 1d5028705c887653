"""The density on the line that quantile tokens stand for: 1/n of the mass lies between neighbours at all times.

    F(x_i(t)) = (i + 1/2) / n      (characteristics do not cross), F linear in between

Beyond the first and the last token F goes on for half a gap. Jumps of the density stay jumps: no kernel is as narrow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.solvers.dataset import kept_problem, table_in

_CROSSED = 1e-6  # of the cloud's width: tokens that have changed places by less did so by errors of the run


class Distribution(NamedTuple):
    """A distribution function F, linear between places."""

    places: Array
    shares: Array

    def averages(self, edges: Array) -> Array:
        """Means of the density over cells."""
        return np.diff(np.interp(edges, self.places, self.shares)) / np.diff(edges)


def distribution(run: xr.Dataset, x: Array) -> Distribution | None:
    """F of a run's tokens at the positions x (n,) of one time; None where the tokens are no quantiles."""
    n = x.size
    if n < 2 or n != run.sizes["particle"] or not _drawn_as_quantiles(run):
        return None
    ordered = np.sort(x)
    if np.abs(ordered - x).max() > _CROSSED * (ordered[-1] - ordered[0]):
        return None
    first, last = 1.5 * ordered[0] - 0.5 * ordered[1], 1.5 * ordered[-1] - 0.5 * ordered[-2]
    return Distribution(np.r_[first, ordered, last], np.r_[0.0, (np.arange(n) + 0.5) / n, 1.0])


def _drawn_as_quantiles(run: xr.Dataset) -> bool:
    """Whether all tokens of the run are there, and were drawn from its initial measure by quantiles."""
    options, problem = table_in(run.attrs, "options"), kept_problem(run)
    drawn = (options.get("sampling"), options.get("n")) == ("quantile", run.sizes["particle"])
    return drawn and problem is not None and problem.initial.kind != "particles"
