"""The tokens of a run as their clusters are looked for: those that carry mass, their size, and where they gather."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.geometry import linked
from vlasov.solvers import problem_of
from vlasov.solvers.dataset import RUN, require
from vlasov.solvers.positions import limiting_positions

LEADING = "leading"
_NEGLIGIBLE = 1e-6  # of the largest weight: lighter tokens, far-out nodes of a quadrature, are no clusters
_SIMPLE = 1e-9  # of |V|: eigenvalues closer than this are one
_TINY = 1e-12  # of the distance to zero: a cloud so narrow is one point


class Tokens:
    """Tokens in time, in the coordinates in which they may have limits.

    Parameters
    ----------
    run
        A solution with positions.
    along
        The direction in which they are looked at; all directions if None.
    """

    def __init__(self, run: xr.Dataset, along: ArrayLike | str | None) -> None:
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
        self.direction = None if along is None else _direction(run, along)

    def full(self, instant: int) -> Array:
        """The tokens that carry mass, shape (n, d)."""
        z = limiting_positions(self.run, instant)[self.heavy]
        if not checks.finite(z):
            when = f"is not finite at t = {self.times[instant]:g}"
            raise InputError(f"has a position that {when}; keep the times before, as in run.isel(time=...)", "run")
        return z

    def at(self, instant: int) -> Array:
        """The same in the direction that is looked at, (n, 1), or in all."""
        z = self.full(instant)
        return z if self.direction is None else (z @ self.direction)[:, None]

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

    def groups(self, instant: int, reach: float) -> NDArray[np.intp]:
        """The group of each token at one output time, as they first appear."""
        return linked(self.at(instant), reach)

    def moved(self) -> float:
        """How far any token has moved over the last tenth of the run, relative to the size."""
        before = int(np.searchsorted(self.times, self.times[-1] - 0.1 * (self.times[-1] - self.times[0]), side="right"))
        before = max(before - 1, 0)
        if before == self.times.size - 1:
            return math.nan
        step = float(np.linalg.norm(self.at(-1) - self.at(before), axis=1).max())
        return step / self.size if self.size else 0.0


def _direction(run: xr.Dataset, along: Any) -> Array:
    """A unit vector: the one that is given, or the left eigenvector of V's simple leading eigenvalue."""
    d = run.sizes["component"]
    if isinstance(along, str):
        if along != LEADING:
            raise InputError(f'is "{along[:60]}"; give a vector, or "{LEADING}" for that of V', "along")
        return _leading(run)
    vector = checks.vector(along, "along", length=d)
    length = float(np.linalg.norm(vector / (np.abs(vector).max() or 1.0))) * float(np.abs(vector).max())
    if not 0.0 < length < math.inf:
        raise InputError("is zero, or longer than numbers can say; give a direction", "along")
    return vector / length


def _leading(run: xr.Dataset) -> Array:
    v = problem_of(run).block.drift(float(run["time"].values[-1]))
    if v is None:
        raise InputError("needs a single token to obey x' = V x, which it does not here; give a vector", "along")
    values, vectors = np.linalg.eig(v.T)
    first, *others = np.argsort(-values.real)
    gap = values[first].real - max((values[k].real for k in others), default=-math.inf)
    if values[first].imag != 0 or not gap > _SIMPLE * float(np.linalg.norm(v, 2)):
        raise InputError("needs a simple real leading eigenvalue of V, which has none; leave it out", "along")
    vector = vectors[:, first].real
    return np.asarray(vector * np.sign(vector[np.abs(vector).argmax()]) / np.linalg.norm(vector))
