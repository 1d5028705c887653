"""Sinkhorn attention: the doubly stochastic kernel that rows and columns of e^{<Qx, Ky>} are scaled to."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlasov import checks
from vlasov.attention.query_key_value import QueryKeyValue
from vlasov.attention.regularity import Regularity, doubly_stochastic
from vlasov.attention.scaled import Scaled, nodes_for
from vlasov.checks import Array
from vlasov.errors import InputError, LateInputError
from vlasov.linearised import Linearised
from vlasov.linearised.base import tokens_of
from vlasov.measures import Gaussian, How, Measure, Memory, Particles
from vlasov.schedule import ParameterLike
from vlasov.tilting import Field, Head, Request

if TYPE_CHECKING:
    from vlasov.scaling.anderson import Ring
    from vlasov.scaling.solve import Solution
    from vlasov.scaling.sums import Sums

_EPS = float(np.finfo(float).eps)
_SHARE, _FINEST = 0.1, 1e-12  # of the tolerance may be errors of sums, which are asked for no more than so tight
_SINGLE = 1e-5  # tightest tolerance for sums in single precision
_LIGHT = 1e-14  # of the heaviest: at the fixed point others feel a token by what it weighs, and these not at all
_LEAST, _MOST_KEPT = 5, 50_000_000  # differences of many tokens, and numbers in them: 0.8 GB with their steps
_SHARE_OF_WARM = 4  # of the half-steps, after which what was warm is left for a cold start
_FEW, _EASY, _LATER = 400, 200, 1000  # half-steps with light tokens; at the first velocity of a run, and at others
_DEPTHS = ((15, 30.0), (30, 300.0), (50, math.inf))  # differences that are kept, up to which |A| R^2


@dataclass(frozen=True, eq=False)
class Sinkhorn(QueryKeyValue, kind="sinkhorn"):
    """Gamma_mu(x) = V int y k(x, y) dmu(y), where k is the limit of e^{<Qx, Ky>} as rows and columns are normalised.

        k(x, y) = e^{<Qx, Ky> - f(x) - g(y)},   int k(x, .) dmu = 1 = int k(., y) dmu

    Parameters
    ----------
    Q, K
        Queries and keys, shape (k, d); or
    A
        their product A = K^T Q, shape (d, d).
    V
        Values, shape (d, d); the identity if not given.
    tolerance
        Largest error of the columns' integrals that is accepted; those of rows are one to the last digits.
    max_iterations
        Half-steps, of rows or of columns, after which one that has not converged is given up with an error.
    iterations
        Stop after so many half-steps, of rows, columns, ..., rows: 1 is softmax. None: converge.

    Notes
    -----
    Along a run each velocity starts from those before. What it depends on them by is within its error bound; without a
    run, as in ``velocity``, there is nothing to depend on. That bound is proved where Birkhoff's contraction reaches;
    elsewhere it is what samples showed, with a margin, and no proof.

    References
    ----------
    Sander, Ablin, Blondel, Peyre (2022), arXiv:2110.11773.

    Examples
    --------
    On N(0, 1), d = 1, Gamma(x) = B x with B = (sqrt(1 + 4 A^2) - 1) / (2 A): 1/2 for A = 2/3, where softmax has B = A.

    >>> mu = vl.Gaussian(0.0, 1.0)
    >>> for attention in (vl.Sinkhorn(A=[[2 / 3]]), vl.Softmax(A=[[2 / 3]])):
    ...     print(attention.kind, attention.affine(mu)[1].round(6))
    sinkhorn [[0.5]]
    softmax [[0.666667]]
    """

    tolerance: float = field(default=1e-10, kw_only=True)
    max_iterations: int = field(default=10_000, kw_only=True)
    iterations: int | None = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(
            self,
            Q: ParameterLike | None = None,
            K: ParameterLike | None = None,
            V: ParameterLike | None = None,
            *,
            A: ParameterLike | None = None,
            tolerance: float = 1e-10,
            max_iterations: int = 10_000,
            iterations: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(tolerance=checks.number(self.tolerance, "tolerance", above=1e-14, below=0.1))
        checks.integer(self.max_iterations, "max_iterations", least=2)
        if self.iterations is not None and checks.integer(self.iterations, "iterations", least=1) % 2 == 0:
            raise InputError(f"is {self.iterations} but must be odd, so that rows are normalised last", "iterations")

    def heads_at(self, t: float = 0.0) -> tuple[Head, ...] | None:
        """That of softmax after one half-step; else None, since the potential is not known before."""
        return (Head(self.product(t), self.values(t)),) if self.iterations == 1 else None

    def tilts(self, t: float = 0.0) -> tuple[Array, ...]:
        return (self.product(t),)

    @property
    def bounded(self) -> bool:
        return True

    @property
    def equivariant(self) -> bool:
        return True  # potentials take in what a shift does to the tilts

    def drift(self, t: float = 0.0) -> Array:
        return self.values(t)

    def regularity(self, radius: float, t: float = 0.0) -> Regularity:
        """See ``vlasov.attention.regularity``: potentials move with the measure, too."""
        if self.iterations == 1:
            return super().regularity(radius, t)
        if self.iterations is not None:
            raise InputError("stops before its fixed point, of which the estimates speak; leave it out", "iterations")
        return doubly_stochastic(self.values(t), self.product(t), radius)

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array]:
        moved, slope = self._about_mean(gaussian, t)
        return self.values(t) @ (gaussian.mean + moved) - slope @ gaussian.mean, slope

    def evaluate(self, measure: Measure, x: Array, t: float, request: Request, **how: Unpack[How]) -> Field:
        if self.iterations == 1:
            return super().evaluate(measure, x, t, request, **how)
        about, v = how.get("about"), self.values(t)
        if isinstance(measure, Gaussian):
            return self._on_gaussian(measure, x, t, about)
        from vlasov.compiled.products import map_rows

        x = measure.points if isinstance(measure, Particles) and measure.are_equal(x) else x
        scaled = self.scaled(measure, x, t, request, how)
        rows = scaled.rows(x)
        away = scaled.sums.centre if about is None else scaled.sums.centre - about
        size, rounding = float(np.linalg.norm(v, 2)), 4 * _EPS * float(np.abs(scaled.sums.centre).sum())
        bound = rows.error_bound + scaled.deviation(x) * scaled.radius + rounding
        return Field(map_rows(rows.mean + away, v), rows.method, size * bound)

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0) -> Array:
        """D Gamma_mu(x) = V C_nu(A x) A with nu ~ e^{-g} mu, whose potential belongs to mu, not to x."""
        if self.iterations == 1:
            return super().jacobian(measure, x, t)
        points = measure.at(x)
        if isinstance(measure, Gaussian):
            slope = self._about_mean(measure, t)[1]
            return np.broadcast_to(slope, (len(points), *slope.shape))
        scaled = self.scaled(measure, points, t, Request(), {})
        covariance = scaled.sums.at(points - scaled.sums.centre, scaled.found.g, covariance=True).covariance
        assert covariance is not None
        return self.values(t) @ covariance @ self.product(t)

    def linearised(
        self, measure: Measure, t: float = 0.0, request: Request = Request(), **how: Unpack[How]
    ) -> Linearised:
        """By implicit differentiation of the potentials; half-steps one by one where they stop before."""
        if self.iterations == 1:
            return super().linearised(measure, t, request, **how)
        from vlasov.linearised.scaling import DoublyStochastic, Truncated

        tokens, factors = tokens_of(measure, self.dimension), self._factors(t)
        if self.iterations is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                return Truncated(tokens, factors, self.iterations)
        scaled = self.scaled(tokens, tokens.points, t, request, how)
        seen = tokens.weights > 0
        if len(scaled.sums.weights) < np.count_nonzero(seen):  # those that are too light to be felt are left out
            seen = tokens.weights > _LIGHT * tokens.weights.max()
        return DoublyStochastic(tokens, factors, seen, scaled.found.g)

    def _about_mean(self, gaussian: Gaussian, t: float) -> tuple[Array, Array]:
        """Shapes (d,) and (d, d): m and B with Gamma(x) = V (alpha + m) + B (x - alpha)."""
        from vlasov.scaling.gaussian import reweighted

        a = self.product(t)
        moved, covariance = reweighted(gaussian.factor, gaussian.mean, a, self.iterations)
        return moved, self.values(t) @ covariance @ a

    def _on_gaussian(self, gaussian: Gaussian, x: Array, t: float, about: Array | None) -> Field:
        moved, slope = self._about_mean(gaussian, t)
        away, v = x - gaussian.mean, self.values(t)
        middle = gaussian.mean + moved if about is None else gaussian.mean - about + moved
        terms = (np.abs(away) + np.abs(gaussian.mean)) @ np.abs(slope).T + np.abs(v) @ np.abs(middle)
        unit = 16 * self.dimension**2 * _EPS
        bound = unit * float(np.sqrt(np.square(terms).sum(axis=1)).max(initial=0.0))
        return Field(away @ slope.T + v @ middle, "closed form", bound)

    def scaled(self, measure: Measure, x: Array, t: float, request: Request, how: How) -> Scaled:
        """The measure as points, with their potentials: what velocities at x, and energies, are made of."""
        from vlasov.scaling.solve import truncated
        from vlasov.scaling.sums import Sums

        a, given = self.product(t), isinstance(measure, Particles)
        cloud = measure if isinstance(measure, Particles) else nodes_for(measure, x, a)
        points, weights = cloud.points, cloud.weights
        asked, workspace = self._of_sums(request, given), how.get("workspace")

        def among(seen: NDArray[np.bool_]) -> Sums:
            return Sums(points[seen], weights[seen] / weights[seen].sum(), a, asked, workspace)

        if self.iterations is not None:
            seen = weights > 0
            return Scaled(sums := among(seen), truncated(sums, self.iterations), cloud.points if seen.all() else None)
        seen = weights > _LIGHT * weights.max()
        scaled = Scaled(sums := among(seen), self._converged(sums, t, request, how), cloud.points)
        if seen.all():
            return scaled
        light = ~seen & (weights > 0)
        if not light.any():
            return scaled._replace(solved_at=None)
        others = None if x is cloud.points and (weights > 0).all() else x
        share = sums.lightly(points[light], weights[light] / weights[seen].sum(), scaled.found, others)
        whole = among(weights > 0)
        if share > _SHARE * self.tolerance:
            with_light = self._with_light(whole, t, request, how)
            if with_light is not None:
                return with_light
        return scaled.without_light(whole, share, self.tolerance)

    def _with_light(self, sums: Sums, t: float, request: Request, how: How) -> Scaled | None:
        """With those that tilts lift up, so that they feel each other; None if that takes long."""
        memory, key = how.get("memory") or Memory(), (id(self), "light")
        before = memory.kept.get(key)
        if before == "left out":
            return None
        # A run in which they are left out from some time on has velocities that jump: only what is easy is begun.
        most = _FEW if how.get("memory") is None else _EASY if before is None else _LATER
        try:
            scaled = Scaled(sums, self._converged(sums, t, request, {**how, "memory": None}, most), None)
        except LateInputError:
            memory.kept[key] = "left out"
            return None
        memory.kept[key] = "seen"
        return scaled

    def _of_sums(self, request: Request, given: bool) -> Request:
        """What is asked of a sum, so that its errors are smaller than those which are accepted of marginals."""
        if request.method == "all-pairs-float32" and self.iterations is None and self.tolerance < _SINGLE:
            raise InputError(
                f'"all-pairs-float32" errs by 1e-7, which marginals right to {self.tolerance:g} do not allow; use '
                f'"all-pairs", or a tolerance of {_SINGLE:g} or more in Sinkhorn',
                "method",
            )
        method = "auto" if request.method == "lattice" and not given else request.method  # cells count as points
        return Request(min(request.tolerance, max(_SHARE * self.tolerance, _FINEST)), method)

    def _converged(self, sums: Sums, t: float, request: Request, how: How, most: int | None = None) -> Solution:
        """The fixed point, from what is remembered of the run where that is of use."""
        from vlasov.scaling.solve import Goal, solve
        from vlasov.scaling.sums import start
        from vlasov.scaling.warm import Warm

        memory = how.get("memory") or Memory()
        sums.tell_if_long()
        warm, found = memory.kept.pop(id(self), None), None  # what fails leaves nothing
        most = min(most or self.max_iterations, self.max_iterations)
        goal = Goal(min(self.tolerance, request.tolerance), self.tolerance, most)
        if warm is not None and warm.serves(len(sums.weights), t, self.breakpoints):
            with suppress(LateInputError):  # it may lead astray
                found = solve(sums, warm.at(sums), warm.ring, goal._replace(most=self.max_iterations // _SHARE_OF_WARM))
        if found is None:
            warm, g = Warm(self._ring(sums)), start(sums)
            found = solve(sums, g, warm.ring, goal)
        warm.add(t, sums, found.better)
        memory.kept[id(self)] = warm
        told = memory.told
        told["sinkhorn_iterations"] = told.get("sinkhorn_iterations", 0) + sums.count
        told["sinkhorn_error"] = max(told.get("sinkhorn_error", 0.0), found.marginal)
        return found

    @staticmethod
    def _ring(sums: Sums) -> Ring:
        """Deeper where convergence is slow."""
        from vlasov.scaling.anderson import Ring

        size = float(np.linalg.norm(sums.matrix, 2)) * sums.radius * sums.radius  # a power would raise at 1e155
        if not math.isfinite(size):
            raise LateInputError("are too large for the exponents <Ax, y> to be finite; scale them down", "points")
        depth = next(depth for depth, most in _DEPTHS if not size > most)
        return Ring(min(depth, max(_LEAST, _MOST_KEPT // len(sums.weights))), sums.weights)
