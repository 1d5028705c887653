"""The discrete Transformer on tokens: one layer after the other.

    x <- N(x + h Gamma_mu(x)),   then x <- N(x + h g(x)) where there is an MLP g;   N = LN under post-norm, else N = id
    x <- x + h Gamma_{LN#mu}(LN x),   then x <- x + h g(LN x)   under pre-norm

LN is x -> beta sqrt(d) x / |x|, as it stands, also where beta is not one positive number: then it moves tokens by
itself, and layers approach no flow. Layer l goes from t_l = l h to t_{l+1}. Its parameters are those at t_l, its left
end; of a jump at t_l those after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from vlasov.checks import Array, finite
from vlasov.errors import InputError, LateInputError, SolverError
from vlasov.flow import Flow
from vlasov.measures import Particles
from vlasov.problem import Problem

_SAME = 1e-9  # of the horizon: times closer than this are one
_LARGEST = 1e150  # coordinates, whose squares are numbers
Jolt = Callable[[Array, Array], Array]  # of tokens after a sub-layer, and by how much it has moved them


@dataclass(frozen=True, eq=False)
class Stack:
    """Equal layers from zero to the horizon; ``sampled`` has the times of their parameters."""

    count: int
    horizon: float
    breakpoints: Array
    sampled: list[float] = field(init=False)

    def __post_init__(self) -> None:
        left = self.time(np.arange(self.count))
        if self.breakpoints.size:  # a jump at the left end belongs to the layer, also where rounding puts it after
            place = np.minimum(np.searchsorted(self.breakpoints, left), self.breakpoints.size - 1)
            near = self.breakpoints[place]
            left = np.where(np.abs(near - left) <= _SAME * self.horizon, near, left)
        object.__setattr__(self, "sampled", left.tolist())

    @property
    def step(self) -> float:
        """h."""
        return self.horizon / self.count

    def time(self, layer: ArrayLike) -> Array:
        """t_l, the times after so many layers."""
        return self.horizon * (np.asarray(layer, dtype=float) / self.count)

    def layers(self, times: Array) -> Array:
        """How many layers have passed at these times, which are those after a layer."""
        passed = np.round(times / self.horizon * self.count)
        off = np.flatnonzero(np.abs(self.time(passed) - times) > _SAME * self.horizon)
        if off.size:
            wrong = float(times[off[0]])
            below = np.clip(np.floor(wrong / self.step), 0, self.count - 1)
            low, high = self.time(np.array([below, below + 1])).tolist()
            raise InputError(f"{wrong:.12g} is inside a layer; the nearest after one are {low!r} and {high!r}", "times")
        return passed.astype(np.int64)

    def jumps_inside(self) -> list[float]:
        """Those jumps of parameters that are at no layer's end, so that they are felt later."""
        inner = self.breakpoints[(self.breakpoints > 0) & (self.breakpoints < self.horizon)]
        passed = self.time(np.round(inner / self.horizon * self.count))
        return inner[np.abs(passed - inner) > _SAME * self.horizon].tolist()


def alone(problem: Problem) -> Problem:
    """The attention on the tokens that the block begins with: LayerNorm and MLP are applied here, not in its flow."""
    if problem.block is problem.attention:
        return problem
    return problem.changed(initial=problem.start, layer_norm=None, mlp=None)


def states(problem: Problem, stack: Stack, cloud: Particles, flow: Flow, jolt: Jolt | None = None) -> Iterator[Array]:
    """The tokens after 0, 1, 2, ... layers, (n, d).

    Parameters
    ----------
    cloud
        Those of layer zero, with their weights and places.
    flow
        Of the attention alone; see ``alone``.
    jolt
        Called after each sub-layer: tokens a little off, to see what becomes of errors.
    """
    x = cloud.points
    yield x
    for number, t in enumerate(stack.sampled):
        try:
            x = _layer(problem, stack.step, cloud, flow, x, t, jolt)
        except LateInputError:
            raise
        except InputError as mistake:
            raise SolverError(f"{_named(stack, number)}: {mistake}") from None
        if not (finite(x) and np.abs(x).max(initial=0.0) < _LARGEST):
            remedy = "take more layers, or a shorter horizon; vl.LayerNorm keeps tokens from growing"
            raise SolverError(f"{_named(stack, number)}: tokens are not finite after it; {remedy}")
        yield x


def _named(stack: Stack, number: int) -> str:
    return f"layer {number + 1} of {stack.count}, from t = {float(stack.time(number)):.6g}"


def _layer(problem: Problem, h: float, cloud: Particles, flow: Flow, x: Array, t: float, jolt: Jolt | None) -> Array:
    norm, mlp = problem.layer_norm, problem.mlp

    def sublayer(x: Array, law: Callable[[Array], Array]) -> Array:
        y = x if norm is None or norm.post else norm.of(x, t)
        moved = h * law(y)
        result = x + moved if jolt is None else jolt(x + moved, moved)
        return norm.of(result, t) if norm is not None and norm.post else result

    x = sublayer(x, lambda y: flow.velocity(cloud.moved(y), y, t).values)
    return x if mlp is None else sublayer(x, lambda y: mlp.at(y, t))
