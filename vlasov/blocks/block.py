"""A block of a Transformer: attention with LayerNorm and MLP around it, which answers what an attention answers.

    post-norm   x' = P_x (Gamma_mu(x) + g(x)),   P_x = I - D u u^T D^{-1},  u = D^{-1} x / |D^{-1} x|
    pre-norm    x' = Gamma_{LN#mu}(LN x) + g(LN x)
    without     x' = Gamma_mu(x) + g(x)

Solvers ask a problem for its block and need not know what is in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from vlasov.attention import Attention
from vlasov.attention.regularity import Regularity
from vlasov.blocks.layer_norm import LayerNorm, directions, threads_for
from vlasov.blocks.mlp import MLP, reach
from vlasov.blocks.normalised import Normalised
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.linearised import Linearised
from vlasov.linearised.base import tokens_of
from vlasov.measures import Density, Gaussian, How, Measure, Particles
from vlasov.measures.density.tilts import check_evaluable
from vlasov.schedule import Parameter
from vlasov.tilting import Field, Head, Request

_AROUND, _CARRYING = 2.5, 1e-12  # cells around the origin; of the largest density, what counts there
_NODES = 24  # Gauss nodes along each axis, for a measure that is neither particles nor a density


@dataclass(frozen=True, eq=False)
class Block(Attention):
    """The velocity law of attention, LayerNorm and MLP; at least one of the latter two is there."""

    attention: Attention
    layer_norm: LayerNorm | None
    mlp: MLP | None

    @property
    def kind(self) -> str:  # type: ignore[override]
        """What it is called in messages, such as "softmax with post-norm and an MLP"."""
        return f"{self.attention.kind} with {' and '.join(self._around())}"

    def _around(self) -> Iterator[str]:
        if self.layer_norm is not None:
            yield f"{self.layer_norm.placement}-norm"
        if self.mlp is not None:
            yield "an MLP"

    @property
    def _pre(self) -> bool:
        return self.layer_norm is not None and not self.layer_norm.post

    @property
    def post_norm(self) -> LayerNorm | None:
        """That which keeps tokens on the ellipsoid."""
        return None if self._pre else self.layer_norm

    def evaluate(self, measure: Measure, x: Array, t: float, request: Request, **how: Unpack[How]) -> Field:
        own, unseen = isinstance(measure, Particles) and measure.are_own(x), self._unseen(measure)
        how.pop("about", None)
        if self._pre:
            on_grid, measure = isinstance(measure, Density), self._seen(measure, t)
            x = measure.points if own else self._normal(x, t, on_grid=on_grid)
        field = self.attention.evaluate(measure, x, t, request, **how)
        values, bound = field.values, field.error_bound + unseen
        if not values.flags.writeable:
            values = values.copy()
        bound += self._add_and_project(x, t, values)
        if self.post_norm is not None:
            scale = np.abs(self.post_norm.scale(x.shape[1], t))
            bound *= float(scale.max() / scale.min())
        return field._replace(values=values, error_bound=bound)

    def _add_and_project(self, x: Array, t: float, values: Array) -> float:
        """P_x (v + g(x)) in place of v, piece by piece; and the bound on rounding errors of g(x)."""
        from vlasov.compiled.threads import in_pieces

        steps: list[Callable[[Array, Array], object]] = []
        seen: list[float] = []
        if self.mlp is not None:
            steps.append(lambda x, _: seen.append(reach(x)))
            if self.mlp.wide:
                self.mlp.add(x, t, values)
            else:
                steps.append(self.mlp.adder(t))
        if self.post_norm is not None:
            steps.append(_projector(self.post_norm.scale(x.shape[1], t)))

        def finish(points: Array, velocities: Array) -> None:
            for step in steps:
                step(points, velocities)

        in_pieces(threads_for(x), finish, x, values)
        return 0.0 if self.mlp is None else self.mlp.rounding_within(max(seen, default=0.0), t)

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0, **place: ArrayLike) -> Array:
        points = measure.at(x)
        if self._pre:
            tangent = self._slope_of_normal(points, t)
            on_grid, measure = isinstance(measure, Density), self._seen(measure, t)
            points = self._normal(points, t, on_grid=on_grid)
        slopes = np.array(self.attention.jacobian(measure, points, t, **place))
        if self.mlp is not None:
            slopes += self.mlp.jacobian(points, t)
        if self._pre:
            return slopes @ tangent
        return slopes if self.post_norm is None else self._projected(slopes, measure, points, t, place)

    def _projected(self, slopes: Array, measure: Measure, x: Array, t: float, place: Mapping[str, ArrayLike]) -> Array:
        """D (P_x v) from v = Gamma + g and D v: P_x itself turns with x."""
        assert self.post_norm is not None
        scale = self.post_norm.scale(x.shape[1], t)
        free = Block(self.attention, None, self.mlp) if self.mlp is not None else self.attention
        w = x / scale
        length = np.sqrt(np.einsum("nk,nk->n", w, w))[:, None]
        u, v = w / length, free.velocity(measure, x, t, **place) / scale  # type: ignore[arg-type]
        across = np.eye(x.shape[1]) - u[:, :, None] * u[:, None, :]
        along = np.einsum("nk,nk->n", u, v)[:, None, None]
        turns = (along * across + u[:, :, None] * (v[:, None, :] @ across)) / length[:, None]
        return scale[:, None] * (across @ (slopes / scale[:, None]) - turns / scale)

    def linearised(
        self, measure: Measure, t: float = 0.0, request: Request = Request(), **how: Unpack[How]
    ) -> Linearised:
        """J of attention with what its neighbours do to each token: see ``vlasov.blocks.linearised``."""
        from vlasov.blocks.linearised import Hidden, OfBlock, Slope, Turn

        tokens = seen = tokens_of(measure, self.dimension)
        before = after = None
        if self._pre:
            assert self.layer_norm is not None
            seen, before = self._seen(tokens, t), Slope(self.layer_norm, tokens.points, t)
        if self.post_norm is not None:
            free = Block(self.attention, None, self.mlp) if self.mlp is not None else self.attention
            after = Turn(self.post_norm, tokens.points, free.evaluate(tokens, tokens.points, t, request, **how), t)
        inner = self.attention.linearised(seen, t, request, **how)
        hidden = None if self.mlp is None else Hidden(self.mlp, seen.points, t)
        return OfBlock(inner, tokens.points.shape, self.shape[0], hidden=hidden, before=before, after=after)

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array] | None:
        added = None if self.mlp is None else self.mlp.affine(t)
        if self.layer_norm is not None or added is None:
            return None
        found = self.attention.affine(gaussian, t)
        return None if found is None else (found[0] + added[0], found[1] + added[1])

    def heads_at(self, t: float = 0.0) -> tuple[Head, ...] | None:
        """None: no sum of tilted means alone."""

    def _seen(self, measure: Measure, t: float) -> Particles:
        """LN#mu: densities and others as points."""
        from vlasov.measures.density.point_values import at_centers

        assert self.layer_norm is not None
        if isinstance(measure, Particles):
            return measure.moved(self._normal(measure.points, t))
        if isinstance(measure, Density):
            check_evaluable(measure)
            values = at_centers(measure, tails=False)
            centers = np.stack(np.meshgrid(*measure.centers, indexing="ij"), axis=-1)[values > 0]
            points = self._normal(measure.origin + centers @ measure.matrix.T, t, on_grid=True)
            return Particles(points, values[values > 0])
        cloud = measure.quadrature(_NODES)
        return cloud.moved(self._normal(cloud.points, t))

    def _unseen(self, measure: Measure) -> float:
        """What nodes may miss where LayerNorm jumps at the origin: infinity, where nobody knows how much that is."""
        if self.layer_norm is None or isinstance(measure, Particles):
            return 0.0
        if isinstance(measure, Normalised):
            return 0.0 if measure.by_directions else math.inf
        return 0.0 if isinstance(measure, Density) and not _at_origin(measure) else math.inf

    def _normal(self, x: Array, t: float, *, on_grid: bool = False) -> Array:
        """LN(x); at the origin, for a node of a grid that stands for all around it, their mean, which is zero."""
        assert self.layer_norm is not None
        if not on_grid:
            return self.layer_norm.of(x, t)
        points, defined = directions(x, self.layer_norm.scale(x.shape[1], t))
        return points if defined else np.where(x.any(axis=1, keepdims=True), points, 0.0)

    def _slope_of_normal(self, x: Array, t: float) -> Array:
        """D LN(x) = D (I - v v^T) / |x|, v = x / |x|."""
        assert self.layer_norm is not None
        scale, length = self.layer_norm.scale(x.shape[1], t), np.sqrt(np.einsum("nk,nk->n", x, x))[:, None, None]
        length = np.where(length > 0, length, np.inf)  # around the origin slopes cancel
        v = x[:, :, None] / length
        return scale[:, None] * (np.eye(x.shape[1]) - v * v.swapaxes(1, 2)) / length

    # Facts

    @property
    def bounded(self) -> bool:
        """Not by the radius of mu: the ellipsoid has one of its own, and the MLP knows no measure."""
        return False

    @property
    def equivariant(self) -> bool:
        return False

    def drift(self, t: float = 0.0) -> Array | None:
        """V, and W U of an MLP that is linear."""
        if self.layer_norm is not None or self.attention.drift(t) is None or self._added_slope(t) is None:
            return None
        return self.values(t)

    def _added_slope(self, t: float) -> Array | None:
        """W U where g(x) = W U x."""
        found = None if self.mlp is None else self.mlp.affine(t)
        return None if found is None or found[0].any() else found[1]

    def regularity(self, radius: float, t: float = 0.0) -> Regularity:
        raise InputError(f"is {self.kind}: the theory's estimates are stated for attention alone", "attention")

    @property
    def continuous(self) -> bool:
        return self.attention.continuous

    def tears_tails(self, covariance: Array, t: float = 0.0) -> bool:
        return self.layer_norm is None and self.attention.tears_tails(covariance, t)

    @property
    def causal(self) -> bool:
        return self.attention.causal

    @property
    def masked(self) -> bool:
        return self.attention.masked

    @property
    def unmasked(self) -> Block:
        return Block(self.attention.unmasked, self.layer_norm, self.mlp) if self.causal else self

    # Parameters

    def values(self, t: float = 0.0) -> Array:
        """V, and W U of an MLP that is linear."""
        added, values = self._added_slope(t), self.attention.values(t)
        return values if added is None else values + added

    def tilts(self, t: float = 0.0) -> tuple[Array, ...]:
        """Those that tails of mu feel: none under pre-norm, which is a tilt by zero."""
        return (np.zeros(self.shape),) if self._pre else self.attention.tilts(t)

    @property
    def shape(self) -> tuple[int, int]:
        return self.attention.shape

    @property
    def parameters(self) -> dict[str, Parameter]:
        beta = {} if self.layer_norm is None or self.layer_norm.beta is None else {"beta": self.layer_norm.beta}
        return self.attention.parameters | beta | ({} if self.mlp is None else self.mlp.parameters)


def _at_origin(density: Density) -> bool:
    """Whether the cells around the origin carry mass."""
    place = np.linalg.solve(density.matrix, -density.origin)
    reach = [_AROUND * float(np.diff(axis).max()) for axis in density.edges]
    near = [np.abs(c - z) <= r for c, z, r in zip(density.centers, place, reach, strict=True)]
    return float(density.values[np.ix_(*near)].max(initial=0.0)) > _CARRYING * float(density.values.max())


def _projector(scale: Array) -> Callable[[Array, Array], None]:
    """What puts P_x v in place of velocities v, in one thread."""
    from vlasov.blocks.kernels import project
    from vlasov.compiled.views import plain

    return lambda x, velocity: project(plain(x), plain(scale), velocity)
