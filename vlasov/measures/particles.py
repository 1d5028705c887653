"""Weighted particles: a discrete measure, and the form in which every measure enters the particle solver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlasov import checks, tilting
from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.measures.base import Cube, How, Measure, Tiltable
from vlasov.measures.order import Order, checked_places, in_place
from vlasov.summing import Kernel, KernelSums, average_prefixes, sum_up
from vlasov.tilting import Field, Head, Request, Tilted, add_up
from vlasov.tilting.results import size_of

if TYPE_CHECKING:
    from vlasov.tilting.log_weights import Weighed

_FEW = 10_000  # numbers


@dataclass(frozen=True, eq=False)
class Particles(Measure, kind="particles"):
    """mu = sum_i w_i delta_{x_i}.

    Parameters
    ----------
    points
        x_i, shape (n, d); a flat list is taken for points on the line.
    weights
        w_i >= 0, shape (n,), normalised to sum to one; equal if not given.
    s
        Places s_i in a sequence, in [0, 1], shape (n,): under ``Masked`` attention tokens see those with s_j <= s_i.

    Examples
    --------
    >>> mu = vl.Particles([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], weights=[2, 1, 1])
    >>> mu.mean, mu.dimension, len(mu)
    (array([0.25, 0.5 ]), 2, 3)
    """

    points: Array
    weights: Array = None  # type: ignore[assignment]  # None is replaced by equal weights
    s: Array | None = None

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, points: ArrayLike, weights: ArrayLike | None = None, s: ArrayLike | None = None) -> None: ...

    def __post_init__(self) -> None:
        points = checks.points(self.points, "points")
        if points.size == 0:
            raise InputError(f"has shape {points.shape}; at least one particle is needed", "points")
        self._set(points=points, weights=checks.weights(self.weights, "weights", count=len(points)))
        if self.s is not None:
            self._set(s=checked_places(self.s, len(points)))

    @classmethod
    def equally_weighted(cls, points: Array, s: Array | None = None) -> Particles:
        """Equal weights at points that nobody else will change: neither copied nor checked."""
        weights = checks.weights(None, "weights", count=len(points))
        for array in (points, weights) if s is None else (points, weights, s):
            array.setflags(write=False)
        return cls.trusted(points=points, weights=weights, s=s)

    def moved(self, points: Array) -> Particles:
        """The same weights, and places in a sequence, at other points of the same shape; unchecked, for inner loops."""
        held = {} if self.s is None else {"order": self.order}
        return Particles.trusted(points=points, weights=self.weights, s=self.s, _weighting=self._weighting, **held)

    def at(self, x: ArrayLike) -> Array:
        """Points as (m, d); its own have been checked, or are those of an inner loop."""
        return self.points if self.are_own(x) else super().at(x)

    def are_own(self, x: ArrayLike) -> bool:
        """Whether x are the particles' points: the same memory, maybe seen through another array."""
        points = self.points
        return x is points or (
            isinstance(x, np.ndarray)
            and (x.shape, x.strides, x.dtype, x.ctypes.data)
            == (points.shape, points.strides, points.dtype, points.ctypes.data)
        )

    def __len__(self) -> int:
        return len(self.points)

    @property
    def dimension(self) -> int:
        return self.points.shape[1]

    @property
    def mean(self) -> Array:
        return self._moments[0]

    @property
    def covariance(self) -> Array:
        return self._moments[1]

    @property
    def support_radius(self) -> float:
        """The largest |x_i| that carries weight."""
        return self._moments[2]

    @cached_property
    def _moments(self) -> tuple[Array, Array, float]:
        """Mean, covariance and radius; for few particles without compiled code, which takes time to load."""
        x, w = self.points, self.weights
        if x.size > _FEW:
            from numba import get_num_threads

            from vlasov.measures.particle_kernels import moments

            return moments(x, w, get_num_threads())
        mean = np.einsum("n,nk->k", w, x)  # BLAS would take as many threads as it likes, and change the last bits
        away = x - mean
        largest = np.where(w > 0, np.einsum("nk,nk->n", x, x), 0.0).max()
        return mean, np.einsum("nk,nl->kl", w[:, None] * away, away), math.sqrt(largest)

    @cached_property
    def support_box(self) -> tuple[Array, Array]:
        carrying = self.points[self.weights > 0]
        return carrying.min(axis=0), carrying.max(axis=0)

    def image(self, matrix: ArrayLike, shift: ArrayLike) -> Particles:
        """The same weights at A x_i + b."""
        a, b = self._affine(matrix, shift)
        return Particles(self.points @ a.T + b, self.weights, self.s)

    def _drawn(self, n: int, cube: Cube) -> Particles:
        """Those that are drawn keep their places in the sequence."""
        if self.s is None:
            return super()._drawn(n, cube)
        rows = self._picked(cube(1)(0, n))
        return Particles.equally_weighted(self.points[rows], self.s[rows])

    @property
    def log_weights(self) -> Array:
        """log w_i, minus infinity for a weight of zero."""
        return self._weighting.logs

    @property
    def unequal_log_weights(self) -> Array | None:
        """``log_weights``, or None where all weights are equal and drop out of every mean."""
        return None if self._weighting.equal else self._weighting.logs

    @cached_property
    def _weighting(self) -> _Weighting:
        """What follows from the weights, found once for all clouds that were ``moved`` from one."""
        return _Weighting(self.weights)

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """The tilt of a discrete measure: see ``vlasov.tilting``."""
        return tilting.tilt(self.points, self.log_weights, xi, request, workspace=workspace)

    def _summed(self, xi: Array, kernel: Kernel, request: Request, workspace: Workspace | None) -> KernelSums:
        """Sums over the particles: see ``vlasov.summing``."""
        return sum_up(self.points, self.weights, xi, kernel, request, workspace=workspace)

    def reweighted(self, quadratic: Array | None) -> Tiltable:
        """Other weights."""
        return self if quadratic is None else Weighted(self, quadratic)

    def points_for(self, tilt: float) -> Particles:
        return self

    def average(self, x: Array, head: Head, request: Request = Request(), **how: Unpack[How]) -> Field:
        return self.attend(x, (head,), request, **how)

    def attend(self, x: Array, heads: Sequence[Head], request: Request = Request(), **how: Unpack[How]) -> Field:
        """Heads without P look at the same weights, and share what their sums have in common."""
        workspace, about, out = how.get("workspace"), how.get("about"), how.get("out")
        groups = _by_weights(heads)
        into, fields = out if len(groups) == 1 else None, []
        for group in groups:  # one after the other: new weights take the place of those before
            logs, of_mean = self.unequal_log_weights, 0.0
            if group[0].P is not None:
                logs, _, _, of_mean = self.under(group[0].P, workspace)
            field = tilting.attend(self.points, logs, x, group, request, workspace=workspace, out=into)
            rounding = of_mean and of_mean * sum(size_of(head.V) for head in group)
            fields.append(field._replace(error_bound=field.error_bound + rounding))
        total = fields[0] if len(fields) == 1 else add_up(fields, out)
        if about is not None:
            total.values[...] -= sum(head.V for head in heads) @ about
        return total

    def under(self, quadratic: Array, workspace: Workspace | None) -> Weighed:
        """Log weights of e^{-<y, P y>} mu. They last until the workspace is asked for others."""
        from vlasov.tilting.log_weights import tilted_quadratically

        return tilted_quadratically(self.points, quadratic, self.log_weights, workspace or Workspace())

    # Prefixes

    @property
    def ordered(self) -> bool:
        return self.s is not None

    @cached_property
    def order(self) -> Order:
        """What follows from the places in a sequence, found once for all clouds that were ``moved`` from one."""
        assert self.s is not None
        return Order(self.s, self.weights)

    def seen_by(self, x: Array, s: ArrayLike | None) -> Array:
        """Those given, or the particles' own."""
        if self.s is None:
            raise InputError("is missing; masked tokens have places: vl.Particles(points, weights, s=...)", "s")
        found = checked_places(s, len(x)) if s is not None else self.s if self.are_equal(x) else None
        if found is None:
            raise InputError("is missing: give the places of points that are not the tokens' own, s=...", "s")
        if found.size and found.min() < self.order.first:
            least = f"is {found.min():g}, where nothing is seen: the first token that carries weight"
            raise InputError(f"{least} has {self.order.first:g}", "s")
        return found

    def are_equal(self, x: Array) -> bool:
        """Whether x are the particles' points, or equal to them, as those are that somebody made the particles of."""
        return self.are_own(x) or (x.shape == self.points.shape and np.array_equal(x, self.points))

    def attend_prefixes(
        self, x: Array, places: Array, heads: Sequence[Head], request: Request = Request(), **how: Unpack[How]
    ) -> Field:
        """``attend``, where targets x_i at ``places`` s_i (m,) see the particles with s_j <= s_i only."""
        from vlasov.tilting.log_weights import tilted_about_first

        workspace, about = how.get("workspace") or Workspace(), how.get("about")
        order, fields = self.order, []
        own = self.are_own(x) and places is self.s
        points = order.sort(self.points)
        ranks, seen = order.own if own else order.of(places)
        targets = points if own else x if ranks is None else x[ranks]
        for group in _by_weights(heads):
            logs, of_mean = self.unequal_log_weights, 0.0
            if logs is not None:
                logs = order.sort(logs)
            if group[0].P is not None:
                logs, _, _, of_mean = tilted_about_first(points, group[0].P, order.sort(self.log_weights), workspace)
            field = tilting.attend_prefixes(points, logs, targets, seen, group, request, workspace=workspace)
            rounding = of_mean and of_mean * sum(size_of(head.V) for head in group)
            fields.append(field._replace(error_bound=field.error_bound + rounding))
        total = fields[0] if len(fields) == 1 else add_up(fields)
        if about is not None:
            total.values[...] -= sum(head.V for head in heads) @ about
        return total._replace(values=in_place(total.values, ranks, how.get("out")))

    def summed_prefixes(
        self, xi: Array, places: Array, kernel: Kernel, request: Request = Request(), **how: Unpack[How]
    ) -> KernelSums:
        """``summed`` over the particles with s_j <= s_i only, as probability measures, without masses."""
        order = self.order
        ranks, seen = order.own if places is self.s else order.of(places)
        sources, targets = (order.sort(self.points), order.sort(self.weights)), xi if ranks is None else xi[ranks]
        found = average_prefixes(*sources, targets, seen, kernel, request, workspace=how.get("workspace"))
        return found._replace(first=in_place(found.first, ranks, None))

    def prefix(self, s: float) -> Particles:
        """The particles with s_j <= s, as a probability measure."""
        assert self.s is not None
        seen = self.s <= s
        return Particles(self.points[seen], self.weights[seen])

    def density(self, x: ArrayLike) -> Array:
        raise InputError("have no density; use particles.on_grid(edges).density(x)", "particles")

    @property
    def cube_dimension(self) -> int:
        return 1

    def from_cube(self, u: Array) -> Array:
        """Draw particles by the inverse of their cumulative weights (for d = 1 in the order of the line)."""
        return self.points[self._picked(u)]

    def _picked(self, u: Array) -> NDArray[np.int64]:
        order, cumulative = self._in_order
        picked = np.searchsorted(cumulative, u[:, 0] * cumulative[-1], side="left")
        return order[np.minimum(picked, len(self) - 1)]

    def cumulative(self, x: Array) -> Array:
        order, cumulative = self._in_order
        below = np.concatenate([[0.0], cumulative])
        return below[np.searchsorted(self.points[order, 0], x, side="right")] / below[-1]

    @cached_property
    def _in_order(self) -> tuple[NDArray[np.int64], Array]:
        """Indices in the order of the line, or as they are for d > 1, and the sums of weights in that order."""
        order = np.argsort(self.points[:, 0], kind="stable") if self.dimension == 1 else np.arange(len(self))
        return order, np.cumsum(self.weights[order])

    def quadrature(self, nodes: int) -> Particles:
        """The particles themselves: nothing represents them better."""
        return self

    def cell_masses(self, axes: Sequence[Array]) -> Array:
        """Deposit each particle on the nearest cell centres by multilinear weights: mass and mean are conserved."""
        from vlasov.measures.deposit import deposit

        return deposit(self, axes)


def _by_weights(heads: Sequence[Head]) -> Sequence[Sequence[Head]]:
    """Heads in groups that look at the same weights."""
    if len(heads) == 1:
        return [heads]
    bent = [head for head in heads if head.P is not None]
    plain = tuple(head for head in heads if head.P is None)
    return [plain] * bool(plain) + [(head,) for head in bent]


class _Weighting:
    """Of weights (n,): their logarithms, and whether all are equal."""

    def __init__(self, weights: Array) -> None:
        self._weights = weights

    @cached_property
    def logs(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._weights)

    @cached_property
    def equal(self) -> bool:
        return bool((self._weights == self._weights[0]).all())


class Weighted(NamedTuple):
    """e^{-<y, P y>} mu for particles mu: other weights, kept as logarithms."""

    particles: Particles
    quadratic: Array

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """As ``Measure.tilted``."""
        logs, constant, rounding, of_mean = self.particles.under(self.quadratic, workspace)
        found = tilting.tilt(self.particles.points, logs, xi, request, workspace=workspace)
        return replace(
            found,
            log_mass=found.log_mass + constant,
            error_bound=found.error_bound + of_mean,
            mass_error=found.mass_error + rounding,
        )
