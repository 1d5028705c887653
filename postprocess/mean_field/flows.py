"""Nodes, densities and Gaussians that move in the limit of a mean-field study, and the clouds that follow them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
from vlasov.solvers.replicas import TimeGrid, march, passive, systems

_SAME_TIME = 1e-12  # relative to the last one


class FlowMap(Protocol):
    """The flow of the limit; under masks a path depends on its token's place in the sequence."""

    def __call__(self, clouds: Array, places: Array | None = None) -> Array:
        """Return clouds (b, m, d) with places (b, m) at the output times, (times, b, m, d)."""


def by_nodes(problem: Problem, choice: Choice, accuracy: float, patience: Patience) -> tuple[list[Particles], FlowMap]:
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


def affine_flow(initial: Gaussian, states: Array) -> FlowMap:
    """Return the flow of a Gaussian: tokens keep their coordinates along the columns of a factor, which move."""
    inverse = np.linalg.pinv(initial.factor).T

    def flow(clouds: Array, places: Array | None = None) -> Array:
        coordinates = (clouds - initial.mean) @ inverse
        return np.stack([clouds, *(coordinates @ (state[1:] - state[0]) + state[0] for state in states[1:])])

    return flow


def density_flow(problem: Problem, track: Sequence[Density], grid: TimeGrid, accuracy: float) -> FlowMap:
    """Return the flow of densities, which ``track`` has for each evaluation of the velocity."""

    def flow(clouds: Array, places: Array | None = None) -> Array:
        moving = problem.flow(tolerance=accuracy)

        def velocity(k: int, t: float, x: Array, out: Array) -> None:
            for cloud, result in zip(x, out, strict=True):
                moving.velocity(track[k], cloud, t, out=result)

        return march(velocity, clouds, grid)

    return flow


def densities(problem: Problem, choice: Choice) -> tuple[list[Density], list[Density]]:
    """Return the densities at the output times, and at all evaluations of the velocity."""
    times, evaluations = np.array(choice.grid.times), np.array(choice.grid.evaluations)
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

    return at(times), at(evaluations)


def gaussian_states(problem: Problem, grid: TimeGrid) -> Array:
    """Return m, and m + the columns of a factor of the covariance, all moved by b + B x; (times, 1 + rank, d)."""
    initial, moving = problem.start, problem.flow()
    assert isinstance(initial, Gaussian)

    def velocity(_: int, t: float, x: Array, out: Array) -> None:
        state = x[0]
        b, slope = moving.affine(gaussian(state), t)  # type: ignore[misc]
        out[0] = b + state @ slope.T

    start = np.concatenate([initial.mean[None], initial.mean + initial.factor.T])
    return march(velocity, start[None], grid)[:, 0]


def gaussian(state: Array) -> Gaussian:
    """Return N(m, F F^T) from m and m + the columns of F."""
    factor = state[1:] - state[0]
    return Gaussian.trusted(mean=state[0], covariance=factor.T @ factor)
