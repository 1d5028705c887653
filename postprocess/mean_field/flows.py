"""What moves in the limit of a mean-field study: nodes, densities or a Gaussian, and the clouds that follow them."""

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
from vlasov.solvers.replicas import TimeGrid, Velocity, march, passive, systems

_SAME_TIME = 1e-12  # relative to the last one


class FlowMap(Protocol):
    """Where clouds are taken to; under masks a path depends on its token's place in the sequence."""

    def __call__(self, clouds: Array, places: Array | None = None) -> Array:
        """Clouds (b, m, d) with places (b, m) at the output times, (times, b, m, d)."""


def by_nodes(problem: Problem, choice: Choice, accuracy: float, patience: Patience) -> tuple[list[Particles], FlowMap]:
    """The nodes at the output times, and their flow."""

    def moving(flow: Flow) -> Flow:
        flow.patience = patience
        return flow

    attention, track, text = problem.block, list[Array](), None
    if attention.causal and isinstance(problem.start, Ordered):
        rules = [law.quadrature(choice.nodes) for law in problem.start.measures]
        text = texts.Text(attention, problem.start, rules, *along(choice.nodes))
    nodes = _sample(problem, choice) if text is None else text.nodes
    seen = None if nodes.s is None or not attention.causal else nodes.s[None]
    interacting = (
        _of_text(text, moving(text.flow(accuracy)))
        if text
        else systems(moving(problem.flow(tolerance=accuracy)), nodes.weights, seen)
    )

    def recorded(k: int, t: float, x: Array, out: Array) -> None:
        track.append(x[0].copy())
        interacting(k, t, x, out)

    clouds = [nodes.moved(points) for points in march(recorded, nodes.points[None], choice.grid)[:, 0]]
    paths = np.stack(track)

    def flow(clouds: Array, places: Array | None = None) -> Array:
        if not attention.causal:
            return march(passive(moving(problem.flow(tolerance=accuracy)), nodes.weights, paths), clouds, choice.grid)
        assert places is not None
        velocity = text.passive(accuracy, paths, places, patience) if text else texts.beside_tokens(
            attention, nodes, paths, accuracy, places, patience
        )  # fmt: skip
        return march(velocity, clouds, choice.grid)

    return clouds, flow


def _of_text(text: texts.Text, flow: Flow) -> Velocity:
    """The velocity of its nodes, for ``march``."""

    def velocity(_: int, t: float, x: Array, out: Array) -> None:
        flow.velocity(text.nodes, x[0], t, out=out[0])

    return velocity


def _sample(problem: Problem, choice: Choice) -> Particles:
    if choice.kind == "quantile" and not isinstance(problem.start, Particles):
        return problem.start.sample(choice.nodes, "quantile")
    return problem.start.quadrature(choice.nodes)


def affine_flow(initial: Gaussian, states: Array) -> FlowMap:
    """Tokens keep their coordinates along the columns of a factor of the covariance, which ``states`` hold."""
    inverse = np.linalg.pinv(initial.factor).T

    def flow(clouds: Array, places: Array | None = None) -> Array:
        coordinates = (clouds - initial.mean) @ inverse
        return np.stack([clouds, *(coordinates @ (state[1:] - state[0]) + state[0] for state in states[1:])])

    return flow


def density_flow(problem: Problem, track: Sequence[Density], grid: TimeGrid, accuracy: float) -> FlowMap:
    """``track``: the density at each evaluation of the velocity."""

    def flow(clouds: Array, places: Array | None = None) -> Array:
        moving = problem.flow(tolerance=accuracy)

        def velocity(k: int, t: float, x: Array, out: Array) -> None:
            for cloud, result in zip(x, out, strict=True):
                moving.velocity(track[k], cloud, t, out=result)

        return march(velocity, clouds, grid)

    return flow


def densities(problem: Problem, choice: Choice) -> tuple[list[Density], list[Density]]:
    """The density at the output times, and whenever the velocity is asked for."""
    times, evaluations = np.array(choice.grid.times), np.array(choice.grid.evaluations)
    wanted = np.unique(np.concatenate([times, evaluations]))
    # Times a rounding error apart are one: the density does not jump.
    wanted = wanted[np.diff(wanted, append=np.inf) > _SAME_TIME * times[-1]]
    found = solve(problem, "finite-volume", times=wanted, cells=choice.nodes)
    if found.sizes["time"] < wanted.size:
        raise SolverError(
            f"finite volumes end at t = {float(found['time'][-1]):g}, {found.attrs['status']}; choose earlier times"
        )

    def at(asked: Array) -> list[Density]:
        nearest = np.minimum(np.searchsorted(wanted, asked - _SAME_TIME * times[-1]), wanted.size - 1)
        return [known[k] for k in nearest]

    known = [measure(found, t) for t in wanted]
    return at(times), at(evaluations)


def gaussian_states(problem: Problem, grid: TimeGrid) -> Array:
    """Mean m and m + the columns of a factor of the covariance: all of them move with b + B x; (times, 1 + rank, d)."""
    initial, moving = problem.start, problem.flow()
    assert isinstance(initial, Gaussian)

    def velocity(_: int, t: float, x: Array, out: Array) -> None:
        state = x[0]
        b, slope = moving.affine(gaussian(state), t)  # type: ignore[misc]
        out[0] = b + state @ slope.T

    start = np.concatenate([initial.mean[None], initial.mean + initial.factor.T])
    return march(velocity, start[None], grid)[:, 0]


def gaussian(state: Array) -> Gaussian:
    """N(m, F F^T) from m and m + the columns of F."""
    factor = state[1:] - state[0]
    return Gaussian.trusted(mean=state[0], covariance=factor.T @ factor)
