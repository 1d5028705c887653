"""How many sums a Sinkhorn velocity takes: along a run, from a cold start, and where |A| R^2 is a thousand.

    python benchmarks/sinkhorn.py [--n N] [--tolerance 1e-10] [--json PATH]

A sum is a half-step of the iteration: one tilted sum over all tokens. Marginals are right to the tolerance after each
velocity. Along a run: means over velocities, without the first one, of classical Runge-Kutta steps of 0.05 / |V| and of
the solver's own (DOP853, tolerance 1e-8), which are longer. A has no symmetry; R is the radius about the mean.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from timing import table, write_json

import vlasov as vl
from vlasov.checks import Array
from vlasov.errors import SolverError
from vlasov.flow import Flow
from vlasov.solvers.ode.clouds import Tokens, states

CLOUDS = ("box", "gaussian", "clusters")
AIMS = {1.0: 5.0, 10.0: 12.0, 100.0: 40.0}  # |A| R^2, and sums for each velocity along a run
STEPS, STEP, HORIZON = 8, 0.05, 0.5  # of Runge and Kutta, in units of 1 / |V|; of the solver's run
STEEP, FEW, SEEDS = 1000.0, 300, 3
V = np.array([[-0.6, -0.8], [0.8, -0.6]])


def problem(cloud: str, size: float, n: int, tolerance: float, seed: int = 0) -> vl.Problem:
    """Tokens in the plane, and an A with |A| R^2 = size."""
    rng = np.random.default_rng(seed)
    if cloud == "box":
        points = rng.uniform(-1, 1, (n, 2))
    elif cloud == "gaussian":
        points = rng.normal(size=(n, 2))
    else:
        points = rng.normal(size=(4, 2))[rng.integers(0, 4, n)] + 0.1 * rng.normal(size=(n, 2))
    points -= points.mean(axis=0)
    matrix = rng.normal(size=(2, 2))
    matrix *= size / np.linalg.norm(matrix, 2) / np.square(points).sum(axis=1).max()
    return vl.Problem(vl.Sinkhorn(A=matrix, V=V, tolerance=tolerance), vl.Particles(points), HORIZON)


def sums(flow: Flow) -> float:
    """So far."""
    return flow.told.get("sinkhorn_iterations", 0)


def runge_kutta(flow: Flow, tokens: vl.Particles) -> None:
    """Steps of a fixed length."""
    x, h = np.array(tokens.points), STEP / float(np.linalg.norm(V, 2))

    def velocity(y: Array, t: float) -> Array:
        return np.array(flow.velocity(tokens.moved(y), y, t).values)

    for number in range(STEPS):
        t = number * h
        first = velocity(x, t)
        second = velocity(x + h / 2 * first, t + h / 2)
        third = velocity(x + h / 2 * second, t + h / 2)
        fourth = velocity(x + h * third, t + h)
        x = x + h / 6 * (first + 2 * second + 2 * third + fourth)


def along(cloud: str, size: float, n: int, tolerance: float) -> list[float]:
    """Sums of a cold velocity, of one in Runge-Kutta steps, in the solver's steps; CPU milliseconds for each sum."""
    posed = problem(cloud, size, n, tolerance)
    flow, tokens = posed.flow(), posed.initial
    assert isinstance(tokens, vl.Particles)
    flow.velocity(tokens, tokens.points, 0.0)
    cold, began, warm = sums(flow), time.process_time(), posed.flow()
    runge_kutta(warm, tokens)
    spent = time.process_time() - began
    fixed = (sums(warm) - cold) / (warm.evaluations - 1)
    adaptive = posed.flow()
    list(states(Tokens(tokens, adaptive), [HORIZON], 1e-8, 10_000))
    own = (sums(adaptive) - cold) / (adaptive.evaluations - 1)
    return [cold, fixed, own, 1e3 * spent / sums(warm)]


def steep(cloud: str, tolerance: float) -> list[float]:
    """Sums to converge for a few tokens at |A| R^2 = 1000, by seed; NaN where they do not."""
    found = []
    for seed in range(SEEDS):
        posed = problem(cloud, STEEP, FEW, tolerance, seed)
        flow = posed.flow()
        try:
            flow.velocity(posed.initial, posed.initial.points, 0.0)  # type: ignore[attr-defined]
            found.append(sums(flow))
        except SolverError:
            found.append(np.nan)
    return found


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000, help="tokens along a run")
    parser.add_argument("--tolerance", type=float, default=1e-10, help="of marginals")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    runs = {(cloud, size): along(cloud, size, given.n, given.tolerance) for size in AIMS for cloud in CLOUDS}
    print(f"n = {given.n:,}, marginals right to {given.tolerance:g}: sums for each velocity")
    rows = [[cloud, f"{s:g}", *(f"{v:.1f}" for v in found), f"{AIMS[s]:g}"] for (cloud, s), found in runs.items()]
    print(table(["cloud", "|A| R^2", "cold", "Runge-Kutta", "own steps", "ms for a sum", "aim"], rows))
    few = {cloud: steep(cloud, given.tolerance) for cloud in CLOUDS}
    print(f"\nn = {FEW}, |A| R^2 = {STEEP:g}: sums to converge, by seed")
    print(table(["cloud", *map(str, range(SEEDS))], [[c, *(f"{v:g}" for v in found)] for c, found in few.items()]))
    if given.json:
        write_json(given.json, {"along": [[*key, *found] for key, found in runs.items()], "steep": few})


if __name__ == "__main__":
    main()
