"""The tokens of a run as their clusters are looked for: those that carry mass, their size, and where they gather."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.solvers.dataset import RUN, require
from vlasov.solvers.positions import limiting_positions

_NEGLIGIBLE = 1e-6  # of the largest weight: lighter tokens, far-out nodes of a quadrature, are no clusters
_TINY = 1e-12  # of the distance to zero: a cloud so narrow is one point


class Tokens:
    """The tokens of a run that carry mass, in time, in the coordinates in which they may have limits."""

    def __init__(self, run: xr.Dataset) -> None:
        require(run, RUN, "run")
        if "position" not in run:
            sentence = "holds no tokens, which alone gather in clusters; solve the problem by particles:"
            raise InputError(f'{sentence} vl.solve(problem, "particles")', "run")
        if not run.sizes["time"] or not run.sizes["particle"]:
            raise InputError("has no output times or no tokens left; keep some", "run")
        self.run = run
        self.times = np.asarray(run["time"].values, dtype=np.float64)
        self.weights = np.asarray(run["weight"].values, dtype=np.float64)
        self.heavy = np.flatnonzero(self.weights >= _NEGLIGIBLE * self.weights.max())

    def at(self, instant: int) -> Array:
        """Return the positions (n, d) at one output time."""
        z = limiting_positions(self.run, instant)[self.heavy]
        if not checks.finite(z):
            when = f"is not finite at t = {self.times[instant]:g}"
            raise InputError(f"has a position that {when}; keep the times before, as in run.isel(time=...)", "run")
        return z

    @cached_property
    def shares(self) -> Array:
        """Weights of those tokens, which add up to one."""
        heavy = self.weights[self.heavy]
        return np.asarray(heavy / heavy.sum())

    @cached_property
    def size(self) -> float:
        """Largest distance from the mean at the first output time; 0 for what is a point up to rounding."""
        first = self.at(0)
        middle = self.shares @ first
        size = float(np.linalg.norm(first - middle, axis=1).max())
        return size if size > _TINY * float(np.linalg.norm(middle)) else 0.0

    def moved(self) -> float:
        """How far any token has moved over the last tenth of the run, relative to the size."""
        start = self.times[-1] - 0.1 * (self.times[-1] - self.times[0])
        before = max(int(np.searchsorted(self.times, start, side="right")) - 1, 0)
        if before == self.times.size - 1:
            return math.nan
        step = float(np.linalg.norm(self.at(-1) - self.at(before), axis=1).max())
        return step / self.size if self.size else 0.0
