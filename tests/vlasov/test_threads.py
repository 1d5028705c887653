"""Measures, attentions and problems are values: four threads on one of them get what each would get alone, bit by bit.

Every round has fresh objects, so that what they find out once and keep is found out by four threads at a time; each
begins at another question and asks a third of them, odd ones at four places, so that different questions meet.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from vlasov.tilting import Request

THREADS, ROUNDS, SHARE = 4, 6, 3
RNG = np.random.default_rng(7)
A, V = np.array([[1.2, 0.5], [-0.3, 0.9]]), np.array([[-0.4, 0.3], [-0.3, -0.5]])
SOFTMAX = vl.Softmax(A=A, V=V)
L2 = vl.L2(Q=[[0.6, 0.1], [0.0, 0.5]], K=[[0.5, 0.0], [0.2, 0.4]], V=V)
HEADS = vl.MultiHead([SOFTMAX, vl.Softmax(A=A.T, V=V)])
ATTENTIONS = {"softmax": SOFTMAX, "L2": L2, "two heads": HEADS, "linear": vl.Linear(A=A, V=V)}
COVARIANCE, FRAME = [[0.5, 0.1], [0.1, 0.3]], [[1.0, 0.2], [0.0, 1.0]]
POINTS, WEIGHTS = RNG.normal(size=(2000, 2)), RNG.uniform(0.5, 1.5, size=2000)
EDGES = np.linspace(-6.0, 6.0, 97)
AVERAGES = vl.Gaussian([0.3, -0.2], COVARIANCE).on_grid([EDGES, EDGES]).values
X, CUBE = RNG.normal(size=(2, 1500, 2)), RNG.uniform(0.001, 0.999, size=(500, 8))

Job = Callable[[Any], Any]
MEASURES = {
    "density": lambda: vl.Density(AVERAGES, [EDGES, EDGES]),
    "density in a frame": lambda: vl.Density(AVERAGES, [EDGES, EDGES], origin=[1.0, 2.0], matrix=FRAME),
    "particles": lambda: vl.Particles(POINTS, WEIGHTS),
    "gaussian": lambda: vl.Gaussian([0.3, -0.2], COVARIANCE),
    "mixture": lambda: vl.Mixture([vl.Gaussian([1.0, 0.0], COVARIANCE), vl.Gaussian([-1.0, 0.5], COVARIANCE)]),
    "mixed mixture": lambda: vl.Mixture([vl.Ball(1.0, [0.5, 0.0]), vl.Gaussian([-1.0, 0.5], COVARIANCE)], [0.3, 0.7]),
    "ball": lambda: vl.Ball(1.5, [0.2, 0.1]),
    "box": lambda: vl.Box([-1.0, -0.5], [0.5, 1.5]),
    "ring": lambda: vl.Ring(0.5, 1.5, [0.1, 0.0]),
}


def questions(name: str) -> list[Job]:
    """What can be asked of a measure, about different points where points enter."""
    tilts, most = Request(covariance=True), 200 if name in ("ball", "box", "ring", "mixed mixture") else 1500
    jobs: list[Job] = [lambda mu: (mu.mean, mu.covariance, mu.support_radius, mu.support_box)]
    for x in X[:, :most]:
        jobs += [lambda mu, x=x, a=a: a.velocity(mu, x) for a in ATTENTIONS.values()]
        jobs += [lambda mu, x=x: SOFTMAX.field(mu, x), lambda mu, x=x: SOFTMAX.velocity(mu, x, tolerance=1e-5)]
        jobs += [lambda mu, x=x[:100], a=a: a.jacobian(mu, x) for a in (SOFTMAX, L2, HEADS)]
        jobs += [lambda mu, x=x[:100]: vars(mu.tilted(x, tilts))]
        if name == "density":
            jobs += [lambda mu, x=x: SOFTMAX.velocity(mu, x, method="lattice")]
        if name == "particles":
            jobs += [lambda mu, x=x, m=m: SOFTMAX.velocity(mu, x, method=m) for m in ("all-pairs", "laplace")]
        else:
            jobs += [lambda mu, x=x: mu.density(x)]
    grid = [np.linspace(-5.0, 5.0, 41)] * 2
    jobs += [lambda mu, s=s: mu.sample(20_000, s, seed=3).points for s in ("random", "sobol")]
    jobs += [lambda mu: points_and_weights(mu.sample(100, "quadrature"))]
    jobs += [lambda mu: mu.from_cube(CUBE[:, : mu.cube_dimension])]
    if name != "density in a frame":
        jobs += [lambda mu: mu.on_grid(grid).values]
    return jobs


def points_and_weights(particles: vl.Particles) -> Any:
    return particles.points, particles.weights


def bits(answer: Any) -> list[bytes]:
    """Everything in an answer, to the last bit."""
    if answer is None or isinstance(answer, str):
        return [str(answer).encode()]
    if isinstance(answer, xr.Dataset):
        return bits({name: variable.values for name, variable in answer.variables.items()})
    if isinstance(answer, dict):
        return [part for key in sorted(answer) if not key.startswith("_") for part in bits(answer[key])]
    if isinstance(answer, tuple | list):
        return [part for one in answer for part in bits(one)]
    return [np.ascontiguousarray(answer).tobytes()]


def hammer(make: Callable[[], Any], jobs: list[Job]) -> None:
    """Ask everything of one shared object in four threads at once, and hold each answer against the one got alone."""
    alone = [bits(job(make())) for job in jobs]
    for turn in range(ROUNDS):
        shared, start = make(), Barrier(THREADS)

        def ask(thread: int, shared: Any = shared, start: Barrier = start, turn: int = turn) -> list[int]:
            first = turn * len(jobs) // ROUNDS + (thread * len(jobs) // THREADS if turn % 2 else 0)
            start.wait()
            order = [(first + i) % len(jobs) for i in range(-(-len(jobs) // SHARE))]
            return [i for i in order if bits(jobs[i](shared)) != alone[i]]

        with ThreadPoolExecutor(THREADS) as pool:
            assert list(pool.map(ask, range(THREADS))) == [[]] * THREADS, "numbers of answers that differ, by thread"


START = vl.Gaussian([0.3, -0.2], COVARIANCE)
RUNS: dict[str, dict[str, Any]] = {"gaussian": {}, "particles": {"n": 150}, "finite-volume": {"cells": 24}}


def solve(problem: vl.Problem, solver: str) -> xr.Dataset:
    return vl.solve(problem, solver, times=[0.0, 0.5, 1.0], **RUNS[solver])


@pytest.mark.parametrize("attention", ["softmax", "two heads"])
def test_one_problem_solved_by_four_threads(attention):
    def make() -> vl.Problem:
        return vl.Problem(ATTENTIONS[attention], vl.Gaussian(START.mean, COVARIANCE), 1.0)

    hammer(make, [lambda problem, s=s: solve(problem, s) for s in RUNS])


def test_one_set_of_solutions_looked_at_by_four_threads():
    problem = vl.Problem(SOFTMAX, START, 1.0)
    solved = [solve(problem, solver) for solver in RUNS]
    solved.append(vl.solve(problem, "particles", times=[0.0, 0.5, 1.0], n=150, seed=1))

    def states(runs: list[xr.Dataset]) -> list[vl.measures.Measure]:
        return [vl.measure(run) for run in runs]

    jobs: list[Job] = [
        lambda runs: vl.compare(runs[1], runs[3]),
        lambda runs: [(mu.mean, mu.covariance) for mu in states(runs)],
        lambda runs: vl.wasserstein(*states(runs)[1::2]),
        lambda runs: vl.wasserstein(states(runs)[0], START),
        lambda runs: [f(SOFTMAX, 1.5) for f in (vl.estimates.velocity_bound, vl.estimates.jacobian_bound)],
        lambda runs: [vl.estimates.stability_exponent(a, 1.5, 0.7) for a in (SOFTMAX, HEADS)],
        lambda runs: vl.gaussian.covariance(A, -np.eye(2), np.eye(2), 0.1),
    ]
    hammer(lambda: [run.copy() for run in solved], jobs)


@pytest.mark.quick
@pytest.mark.parametrize("name", MEASURES)
def test_one_measure_asked_by_four_threads(name):
    hammer(MEASURES[name], questions(name))
