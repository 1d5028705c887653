"""The limit of a mean-field study: mu(t) by a reference solution, which is refined until its own error is known.

d_t mu + div(mu Gamma_mu) = 0   by the Gaussian equations, by quadrature or quantile nodes, or by finite volumes
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.flow import Flow
from vlasov.measures import Density, Gaussian, Measure, Particles, Sequence as Ordered, in_sequence
from vlasov.patience import Patience, clock
from vlasov.problem import Problem
from vlasov.solvers.dataset import measure
from vlasov.solvers.driver import solve as solve_problem
from vlasov.solvers.ode import texts
from vlasov.solvers.ode.integrate import accuracy_for
from vlasov.solvers.replicas import TimeGrid, Velocity, choose_steps, march, passive, systems

REFERENCES = ("auto", "gaussian", "quantile", "quadrature", "finite-volume")
QUANTITIES = ("flow", "mean", "covariance", "velocity")
_PER_AXIS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # nodes that are tried, one after the other
_MOST_NODES = 60_000
_CELLS = {1: (64, 128, 256, 512, 1024), 2: (32, 64, 128, 256), 3: (16, 24, 32, 48)}  # per axis, by d
_OF_TEXTS = 1e-4  # tolerance of nodes along a text, which are dear: tokens by the thousand err by a hundred times more
_MOST_STEPS = 1000
_SAME_TIME = 1e-12  # relative to the last one
_STALLED, _PATIENCE = 0.5, 2  # refinements that leave more than this of the change are of no use
_PROBES = 32  # points at which velocities are compared
_WITNESSES = 256  # tokens by which two references are compared
_FINER = 2  # a Gaussian costs next to nothing: its steps are so much shorter than the clouds'


@dataclass
class Waiting(Patience):
    """Of somebody who has asked for a study."""

    remedy: str = field(default="lower n, loosen the tolerance or shorten the times", kw_only=True)

    def _waiting(self, done: str) -> str:
        seconds = clock() - self._since
        return f"the study takes long to know its limit: {done} in {seconds:.3g} s so far; {self.remedy}"


class FlowMap(Protocol):
    """Where clouds are taken to; under masks a path depends on its token's place in the sequence."""

    def __call__(self, clouds: Array, places: Array | None = None) -> Array:
        """Clouds (b, m, d) with places (b, m) at the output times, (times, b, m, d)."""


class Choice(NamedTuple):
    """Which reference: its kind, the nodes or cells per axis (zero for a Gaussian), and the steps of all clouds."""

    kind: str
    nodes: int
    grid: TimeGrid

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {"kind": self.kind, "nodes": self.nodes, **vars(self.grid)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Choice:
        """The choice that ``plain`` described."""
        return cls(plain["kind"], plain["nodes"], TimeGrid(*(tuple(plain[f.name]) for f in fields(TimeGrid))))


@dataclass(frozen=True, eq=False)
class Limit:
    """mu at the output times, and the flow to them.

    Attributes
    ----------
    means, covariances
        Shapes (times, d) and (times, d, d).
    probes, velocities
        Fixed points (m, d), and Gamma_mu there, shape (times, m, d); under masks for a token that sees all.
    flow
        X_t' = Gamma_{mu(t)}(X_t): where clouds that are not felt by mu are at the output times. What becomes of a
        cloud does not depend on the others.
    patience
        Of who waits for it.
    """

    problem: Problem
    choice: Choice
    means: Array
    covariances: Array
    probes: Array
    velocities: Array
    accuracy: float
    flow: FlowMap
    patience: Patience


def choose(problem: Problem, times: tuple[float, ...], *, reference: str, tolerance: float) -> tuple[Limit, Array]:
    """The limit, and estimates of its errors at the output times, shape (4, times), in the order of QUANTITIES.

    Nodes are added until a witness flow, moments and velocities change by less than the tolerance, relative to the
    size of the measure, or until more nodes do not help; then steps are halved likewise. The last of both changes make
    the estimate.
    """
    kind, patience = _kind(texts.without_mask(problem), reference), Waiting()
    rough = drawn_from(problem).sample(_WITNESSES, "sobol", seed=0)
    try:
        grid = choose_steps(problem, rough, times, tolerance=tolerance, patience=patience)
    except SolverError as error:
        raise SolverError(
            f"{len(rough)} tokens cannot be followed to t = {times[-1]:g}; if they blow up, choose earlier times "
            f"({error})"
        ) from None
    nodes, *more = _ladder(texts.without_mask(problem), kind)
    first = solve(problem, Choice(kind, nodes, grid), tolerance=tolerance, patience=patience)
    ladder = [first.choice._replace(nodes=nodes) for nodes in more]
    text = problem.attention.causal and isinstance(problem.start, Ordered)
    _, limit, in_nodes = _refined(first, ladder, rough, tolerance, max(tolerance, _OF_TEXTS) if text else tolerance)
    halvings = range(1, 2 + int(math.log2(max(1.0, _MOST_STEPS / grid.steps))))
    ladder = [limit.choice._replace(grid=grid.refined(2**k)) for k in halvings]
    limit, _, in_time = _refined(limit, ladder, rough, tolerance, 10 * tolerance)  # halved steps only show the error
    return limit, in_nodes + in_time


def _refined(
    first: Limit, ladder: list[Choice], witnesses: Particles, tolerance: float, enough: float
) -> tuple[Limit, Limit, Array]:
    """The first two neighbours among references that hardly differ, or no less than those before; and how much."""
    before, limit, change = first, first, np.zeros((len(QUANTITIES), len(first.means)))
    last, stalled = math.inf, 0
    for choice in ladder:
        finer = solve(first.problem, choice, tolerance=tolerance, patience=first.patience)
        change, size = _difference(limit, finer, witnesses), _size(finer)
        before, limit = limit, finer
        relative = float((change / np.stack([size, size, np.ones_like(size), size])).max())
        stalled = stalled + 1 if relative > _STALLED * last else 0
        if stalled == _PATIENCE or not relative < math.inf:
            before = first
            break
        if relative < enough:
            break
        last = relative
    return before, limit, change


def _size(limit: Limit) -> Array:
    """Root of the second moment, at each time."""
    return np.sqrt(np.trace(limit.covariances, axis1=1, axis2=2) + np.square(limit.means).sum(axis=1))


def solve(problem: Problem, choice: Choice, *, tolerance: float, patience: Patience | None = None) -> Limit:
    """The limit by a reference that has been chosen, for somebody who waits with this patience."""
    patience = patience or Waiting()
    accuracy, times, given = accuracy_for(tolerance), choice.grid.times, problem
    problem = texts.without_mask(problem)
    moving = Flow(problem.block.unmasked, tolerance=accuracy)  # the last token of a sequence sees all
    probes = problem.start.sample(_PROBES, "sobol", seed=1).points
    flow: FlowMap
    if choice.kind == "gaussian":
        assert isinstance(problem.start, Gaussian)
        factors = _gaussian_states(problem, choice.grid.refined(_FINER))
        flow = _affine_flow(problem.start, factors)
        gaussians = [_gaussian(state) for state in factors]
        affine = [moving.affine(gaussian, t) for gaussian, t in zip(gaussians, times, strict=True)]
        return Limit(
            given, choice, *_moments(gaussians), probes,
            np.stack([b + probes @ slope.T for b, slope in affine]), accuracy, flow, patience,  # type: ignore[misc]
        )  # fmt: skip
    states: Sequence[Measure]
    if choice.kind == "finite-volume":
        states, track = _densities(problem, choice)
        flow = _density_flow(problem, track, choice.grid, accuracy)
    else:
        states, flow = _by_nodes(problem, choice, accuracy, patience)
    if times[0] == 0.0 and choice.kind == "quadrature":  # the law is known where it begins
        states = [problem.initial, *states[1:]]
    moving.patience = patience
    velocities = [moving.velocity(state, probes, t).values for state, t in zip(states, times, strict=True)]
    return Limit(given, choice, *_moments(states), probes, np.stack(velocities), accuracy, flow, patience)


def drawn_from(problem: Problem) -> Measure:
    """What tokens are drawn from: the initial measure, with places in a sequence where attention asks for them."""
    return in_sequence(problem.start) if problem.attention.causal else problem.start


def _moments(states: Sequence[Measure]) -> tuple[Array, Array]:
    return np.stack([state.mean for state in states]), np.stack([state.covariance for state in states])


def _by_nodes(problem: Problem, choice: Choice, accuracy: float, patience: Patience) -> tuple[list[Particles], FlowMap]:
    """The nodes at the output times, and their flow."""

    def moving(flow: Flow) -> Flow:
        flow.patience = patience
        return flow

    attention, track, text = problem.block, list[Array](), None
    if attention.causal and isinstance(problem.start, Ordered):
        rules = [law.quadrature(choice.nodes) for law in problem.start.measures]
        text = texts.Text(attention, problem.start, rules, *_along(choice.nodes))
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


def _along(nodes: int) -> tuple[int, int]:
    """Pieces of each part of a text, and places in each piece, beside so many nodes along each axis."""
    return nodes // 2, nodes // 2 + 1


def _affine_flow(initial: Gaussian, states: Array) -> FlowMap:
    """Tokens keep their coordinates along the columns of a factor of the covariance, which ``states`` hold."""
    inverse = np.linalg.pinv(initial.factor).T

    def flow(clouds: Array, places: Array | None = None) -> Array:
        coordinates = (clouds - initial.mean) @ inverse
        return np.stack([clouds, *(coordinates @ (state[1:] - state[0]) + state[0] for state in states[1:])])

    return flow


def _density_flow(problem: Problem, track: Sequence[Density], grid: TimeGrid, accuracy: float) -> FlowMap:
    """``track``: the density at each evaluation of the velocity."""

    def flow(clouds: Array, places: Array | None = None) -> Array:
        moving = problem.flow(tolerance=accuracy)

        def velocity(k: int, t: float, x: Array, out: Array) -> None:
            for cloud, result in zip(x, out, strict=True):
                moving.velocity(track[k], cloud, t, out=result)

        return march(velocity, clouds, grid)

    return flow


def _densities(problem: Problem, choice: Choice) -> tuple[list[Density], list[Density]]:
    """The density at the output times, and whenever the velocity is asked for."""
    times, evaluations = np.array(choice.grid.times), np.array(choice.grid.evaluations)
    wanted = np.unique(np.concatenate([times, evaluations]))
    # Times a rounding error apart are one: the density does not jump.
    wanted = wanted[np.diff(wanted, append=np.inf) > _SAME_TIME * times[-1]]
    found = solve_problem(problem, "finite-volume", times=wanted, warn_above=math.inf, cells=choice.nodes)
    if found.sizes["time"] < wanted.size:
        raise SolverError(
            f"finite volumes end at t = {float(found['time'][-1]):g}, {found.attrs['status']}; choose earlier times"
        )

    def at(asked: Array) -> list[Density]:
        nearest = np.minimum(np.searchsorted(wanted, asked - _SAME_TIME * times[-1]), wanted.size - 1)
        return [densities[k] for k in nearest]

    densities = [measure(found, t) for t in wanted]
    return at(times), at(evaluations)


def _kind(problem: Problem, reference: str) -> str:
    initial = problem.start
    if reference == "auto":
        if isinstance(initial, Density):  # no nodes are finer than its cells
            return "finite-volume"
        return "gaussian" if _stays_gaussian(problem) else "quadrature"
    if reference == "gaussian" and not isinstance(initial, Gaussian):
        raise InputError(
            f'"gaussian" needs a Gaussian initial measure but this is a {initial.kind}; use "auto"', "reference"
        )
    if reference == "gaussian" and not _stays_gaussian(problem):
        raise InputError(
            f'"gaussian" needs Gaussians that stay Gaussian, not {problem.block.kind}; use "auto"', "reference"
        )
    if reference == "quantile" and problem.dimension != 1:
        raise InputError(f'"quantile" needs d = 1 but the problem has d = {problem.dimension}; use "auto"', "reference")
    return reference


def _stays_gaussian(problem: Problem) -> bool:
    return isinstance(problem.start, Gaussian) and problem.block.affine(problem.start) is not None


def _ladder(problem: Problem, kind: str) -> list[int]:
    """Numbers of nodes per axis, increasing, as many as memory and patience allow."""
    initial = problem.start
    if kind == "gaussian":
        return [0]
    if isinstance(initial, Ordered) and problem.attention.causal:
        _check_text(initial, kind)
    if kind == "finite-volume":
        if problem.dimension not in _CELLS:
            raise InputError(f'"finite-volume" needs d <= 3 but the problem has d = {problem.dimension}', "reference")
        return list(_CELLS[problem.dimension])
    if isinstance(initial, Density):
        raise InputError(
            f'is a density on a grid, for which "{kind}" knows no finer nodes; use "finite-volume"', "reference"
        )
    if isinstance(initial, Particles):
        return [1]  # its nodes are the measure itself
    if kind == "quantile":
        return [256, 1024, 4096, 16384]
    least = len(initial.quadrature(1))
    text = isinstance(initial, Ordered) and problem.attention.causal
    each = [least * k**problem.dimension * (math.prod(_along(k)) if text else 1) for k in _PER_AXIS]
    return [k for i, (k, count) in enumerate(zip(_PER_AXIS, each, strict=True)) if i < 2 or count <= _MOST_NODES]


def _check_text(initial: Ordered, kind: str) -> None:
    """Complain about a text whose limit nobody knows well enough."""
    if kind == "finite-volume":
        raise InputError(f'"{kind}" does not know how slices of a text err; use "quadrature"', "reference")
    if kind == "quantile":
        raise InputError(f'"{kind}" leaves no place for s in a sequence; use "quadrature"', "reference")
    grids = [c for c, law in enumerate(initial.measures) if isinstance(law, Density)]
    if grids:
        raise InputError(
            f"measures[{grids[0]}] is a density on a grid, of which no finer nodes are known; compare runs by "
            "vl.distance",
            "initial",
        )


def _sample(problem: Problem, choice: Choice) -> Particles:
    if choice.kind == "quantile" and not isinstance(problem.start, Particles):
        return problem.start.sample(choice.nodes, "quantile")
    return problem.start.quadrature(choice.nodes)


def stacked(clouds: Sequence[Particles]) -> tuple[Array, Array | None]:
    """Points (b, n, d) and places (b, n) of clouds of equal size."""
    places = [cloud.s for cloud in clouds if cloud.s is not None]
    return np.stack([cloud.points for cloud in clouds]), np.stack(places) if places else None


def _difference(a: Limit, b: Limit, witnesses: Particles) -> Array:
    """How far two references are apart: shape (4, times)."""
    spread = np.linalg.norm(b.covariances, axis=(1, 2))
    start, places = stacked([witnesses])
    rows: list[Any] = [
        np.linalg.norm(a.flow(start, places) - b.flow(start, places), axis=3).max(axis=(1, 2)),
        np.linalg.norm(a.means - b.means, axis=1),
        np.linalg.norm(a.covariances - b.covariances, axis=(1, 2)) / np.where(spread > 0, spread, 1.0),
        np.linalg.norm(a.velocities - b.velocities, axis=2).max(axis=1),
    ]
    if a.choice.grid != b.choice.grid:  # interacting tokens feel the steps too, and a Gaussian's limit hardly does
        seen = places if a.problem.attention.causal else None
        together = a.problem.flow(tolerance=a.accuracy)
        together.patience = a.patience
        moving = systems(together, witnesses.weights, seen)
        ends = [march(moving, start, limit.choice.grid)[:, 0] for limit in (a, b)]
        rows[0] = np.maximum(rows[0], np.linalg.norm(ends[0] - ends[1], axis=2).max(axis=1))
    return np.stack(rows)


def _gaussian_states(problem: Problem, grid: TimeGrid) -> Array:
    """Mean m and m + the columns of a factor of the covariance: all of them move with b + B x; (times, 1 + rank, d)."""
    initial, moving = problem.start, problem.flow()
    assert isinstance(initial, Gaussian)

    def velocity(_: int, t: float, x: Array, out: Array) -> None:
        state = x[0]
        b, slope = moving.affine(_gaussian(state), t)  # type: ignore[misc]
        out[0] = b + state @ slope.T

    start = np.concatenate([initial.mean[None], initial.mean + initial.factor.T])
    return march(velocity, start[None], grid)[:, 0]


def _gaussian(state: Array) -> Gaussian:
    """N(m, F F^T) from m and m + the columns of F."""
    factor = state[1:] - state[0]
    return Gaussian.trusted(mean=state[0], covariance=factor.T @ factor)
