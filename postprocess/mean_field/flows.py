"""Nodes, densities and Gaussians that move in the limit of a mean-field study, and the clouds that follow them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from vlasov.checks import Array
from vlasov.errors import SolverError
from vlasov.flow import Flow
from vlasov.measures import Density, Gaussian, Particles, Sequence as Ordered
from vlasov.patience import Patience
from vlasov.postprocess.mean_field.choice import Choice, along
from vlasov.problem import Problem
from vlasov.solvers.dataset import measure
from vlasov.solvers.driver import solve
from vlasov.solvers.ode import texts
from vlasov.solvers.replicas import march, passive, systems

_SAME_TIME = 1e-12  # relative to the last one
_FINER = 2  # a Gaussian costs next to nothing: its steps are so much shorter than the clouds'


#: From clouds (b, m, d), with places (b, m) under masks, to the clouds at the output times, (times, b, m, d).
FlowMap: TypeAlias = Callable[..., Array]
Followed: TypeAlias = tuple[Sequence[Any], FlowMap]  # measures at the output times, and their flow


def by_nodes(problem: Problem, choice: Choice, accuracy: float, patience: Patience) -> Followed:
    """Return the nodes at the output times, and their flow."""
    attention, start, text = problem.block, problem.start, None
    if attention.causal and isinstance(start, Ordered):
        rules = [law.quadrature(choice.nodes) for law in start.measures]
        text = texts.Text(attention, start, rules, *along(choice.nodes))
    by_quantiles = choice.kind == "quantile" and not isinstance(start, Particles)
    nodes = text.nodes if text else (
        start.sample(choice.nodes, "quantile") if by_quantiles else start.quadrature(choice.nodes)
    )  # fmt: skip

    def moving() -> Flow:
        flow = text.flow(accuracy) if text else problem.flow(tolerance=accuracy)
        flow.patience = patience
        return flow

    seen, track, own = nodes.s[None] if nodes.s is not None and attention.causal else None, list[Array](), moving()
    together = systems(own, nodes.weights, seen)

    def recorded(k: int, t: float, x: Array, out: Array) -> None:
        track.append(x[0].copy())
        if text:
            own.velocity(nodes, x[0], t, out=out[0])
        else:
            together(k, t, x, out)

    clouds = [nodes.moved(points) for points in march(recorded, nodes.points[None], choice.grid)[:, 0]]
    paths = np.stack(track)

    def flow(clouds: Array, places: Array | None = None) -> Array:
        if not attention.causal:
            return march(passive(moving(), nodes.weights, paths), clouds, choice.grid)
        assert places is not None
        velocity = text.passive(accuracy, paths, places, patience) if text else texts.beside_tokens(
            attention, nodes, paths, accuracy, places, patience
        )  # fmt: skip
        return march(velocity, clouds, choice.grid)

    return clouds, flow


def by_densities(problem: Problem, choice: Choice, accuracy: float, _: Patience) -> Followed:
    """Return the densities of finite volumes at the output times, and their flow."""
    grid, times = choice.grid, np.array(choice.grid.times)
    evaluations = np.array(grid.evaluations)
    wanted = np.unique(np.concatenate([times, evaluations]))
    # Times a rounding error apart are one: the density does not jump.
    wanted = wanted[np.diff(wanted, append=np.inf) > _SAME_TIME * times[-1]]
    run = solve(problem, "finite-volume", times=wanted, cells=choice.nodes)
    if run.sizes["time"] < wanted.size:
        raise SolverError(
            f"finite volumes end at t = {float(run['time'][-1]):g}, {run.attrs['status']}; choose earlier times"
        )
    states = [measure(run, t) for t in wanted]

    def at(chosen: Array) -> list[Density]:
        nearest = np.minimum(np.searchsorted(wanted, chosen - _SAME_TIME * times[-1]), wanted.size - 1)
        return [states[k] for k in nearest]

    track = at(evaluations)

    def flow(clouds: Array, places: Array | None = None) -> Array:
        moving = problem.flow(tolerance=accuracy)

        def velocity(k: int, t: float, x: Array, out: Array) -> None:
            for cloud, result in zip(x, out, strict=True):
                moving.velocity(track[k], cloud, t, out=result)

        return march(velocity, clouds, grid)

    return at(times), flow


def by_gaussians(problem: Problem, choice: Choice, _: float, __: Patience) -> Followed:
    """Return the Gaussians at the output times, and their flow, in which tokens keep their coordinates.

    A state is the mean m, and m + the columns of a factor of the covariance: all of them move with b + B x.
    """
    initial, moving = problem.start, problem.flow()
    assert isinstance(initial, Gaussian)

    def gaussian(state: Array) -> Gaussian:
        factor = state[1:] - state[0]
        return Gaussian.trusted(mean=state[0], covariance=factor.T @ factor)

    def velocity(_: int, t: float, x: Array, out: Array) -> None:
        b, slope = moving.affine(gaussian(x[0]), t)  # type: ignore[misc]
        out[0] = b + x[0] @ slope.T

    start = np.concatenate([initial.mean[None], initial.mean + initial.factor.T])
    states = march(velocity, start[None], choice.grid.refined(_FINER))[:, 0]
    inverse = np.linalg.pinv(initial.factor).T

    def flow(clouds: Array, places: Array | None = None) -> Array:
        coordinates = (clouds - initial.mean) @ inverse
        return np.stack([clouds, *(coordinates @ (state[1:] - state[0]) + state[0] for state in states[1:])])

    return [gaussian(state) for state in states], flow
