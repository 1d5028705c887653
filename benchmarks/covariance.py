"""Covariances in bulk beside a loop of plain NumPy over trajectories: projected Euler, as papers' scripts have it.

    python benchmarks/covariance.py [--threads 1,2] [--b 1000] [--attention softmax,l2,sinkhorn] [--json PATH]

Steps per second of the same equations in the same run. A step of NumPy's is one of Euler, with one velocity, after
which negative eigenvalues are cut off. A step of ours is an adaptive Runge-Kutta step that was accepted: 6 velocities
at order 5, 12 at order 8, so that it does the work of as many of Euler's. Both ratios are shown, of steps and of
velocities; demands are held against the latter. V turns covariances without end and A = I keeps their traces, so that
there are many steps. On one thread seconds are CPU seconds; on several ours are wall seconds, NumPy's remain those of
one. Errors are those of our covariances at the horizon against SciPy's DOP853 with a tolerance of 1e-12, relative to
the largest entry; for Euler, which would not survive so long, at t = 1 after 1,000 steps.

What a user waits for is in the last column: how many times longer Euler takes to t = 1 at an error of 1e-3 than we take
to t = 1 at 1e-8. How many steps it needs follows from its errors after 1,000 and 2,000 steps and the order they show.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from timing import Check, Report, in_child, machine, number, repeat, seconds, versions, write_json

Array = np.ndarray
HORIZON, EARLY, LOOKED_AT, EULER_STEPS, BUDGET = 20.0, 1.0, 4, 1000, 0.5
EULER_ERROR = 1e-3  # at which its time is told
VELOCITIES, TOLERANCE = {5: 6, 8: 12}, 2e-12  # thousands of turns add errors up
EARLY_TOLERANCE = 1e-10
DEMANDS = {2: 1000.0, 3: 1000.0, 4: 300.0, 5: 300.0}
HEADER = (
    "attention",
    "d",
    "order",
    "threads",
    "steps/s",
    "Euler steps/s",
    "ratio",
    "of velocities",
    "per trajectory",
    "error",
    "Euler's",
    "Euler's time / ours",
)


def problem(d: int, b: int) -> tuple[Array, Array, Array, Array]:
    """Q, K, V and initial covariances: all run to the horizon."""
    rng = np.random.default_rng(d)
    turn = rng.normal(size=(d, d))
    factors = rng.normal(size=(b, d, d)) / d
    turn, sigmas = turn - turn.T, factors @ factors.transpose(0, 2, 1)
    v, sigmas = 3 * turn / np.linalg.norm(turn, 2), sigmas / np.trace(sigmas, axis1=1, axis2=2)[:, None, None]
    return np.eye(d), np.eye(d), v, sigmas


def slope(kind: str, q: Array, k: Array, v: Array, sigma: Array) -> Array:
    """B with Sigma' = B Sigma + Sigma B^T, in plain NumPy."""
    a = k.T @ q
    if kind == "softmax":
        return v @ sigma @ a
    if kind == "l2":
        return 2 * v @ np.linalg.solve(np.eye(len(q)) + 2 * sigma @ (k.T @ k), sigma) @ a
    values, vectors = np.linalg.eigh(sigma)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    u, s, _ = np.linalg.svd(root @ a @ root)
    axes = root @ u
    return v @ ((axes * (2 / (1 + np.sqrt(1 + 4 * s * s)))) @ axes.T) @ a


def euler(kind: str, q: Array, k: Array, v: Array, sigma: Array, steps: int) -> Array:
    """Explicit Euler, projected onto semi-definite matrices after each step."""
    h = EARLY / steps
    for _ in range(steps):
        change = slope(kind, q, k, v, sigma) @ sigma
        sigma = sigma + h * (change + change.T)
        values, vectors = np.linalg.eigh(sigma)
        sigma = (vectors * np.maximum(values, 0)) @ vectors.T
    return sigma


def reference(kind: str, q: Array, k: Array, v: Array, sigma: Array) -> Array:
    """By SciPy, at both times."""
    d = len(q)

    def rates(_: float, y: Array) -> Array:
        change = slope(kind, q, k, v, y.reshape(d, d)) @ y.reshape(d, d)
        return (change + change.T).ravel()

    how = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14, "t_eval": [EARLY, HORIZON]}
    return solve_ivp(rates, (0, HORIZON), sigma.ravel(), **how).y.T.reshape(2, d, d)


def measured(kind: str, d: int, b: int, threads: int) -> dict[str, Any]:
    """Our steps per second by both orders, and NumPy's, one after the other in one process."""
    import vlasov as vl

    q, k, v, sigmas = problem(d, b)
    attention = {"softmax": vl.Softmax, "l2": vl.L2, "sinkhorn": vl.Sinkhorn}[kind](q, k, v)
    early, late = np.swapaxes([reference(kind, q, k, v, sigma) for sigma in sigmas[:LOOKED_AT]], 0, 1)
    found: dict[str, Any] = {}

    def off(covariances: Any, exact: Array) -> float:
        return float((np.abs(covariances - exact).max(axis=(1, 2)) / np.abs(exact).max(axis=(1, 2))).max())

    steps = EULER_STEPS
    found["euler_error"] = off([euler(kind, q, k, v, sigma, steps) for sigma in sigmas[:LOOKED_AT]], early)
    timing = repeat(lambda: euler(kind, q, k, v, sigmas[0], steps), budget=BUDGET)
    found["euler_rate"] = steps / timing.best(1)
    finer = off([euler(kind, q, k, v, sigma, 2 * steps) for sigma in sigmas[:LOOKED_AT]], early)
    found["euler_order"] = float(np.log2(found["euler_error"] / finer))
    found["euler_steps"] = 2 * steps * (finer / EULER_ERROR) ** (1 / found["euler_order"])
    for order in (5, 8):
        how: dict[str, Any] = {"times": [HORIZON], "order": order, "tolerance": TOLERANCE, "check": False}
        one = vl.covariances(attention, sigmas, HORIZON, **how)
        timing = repeat(lambda how=how: vl.covariances(attention, sigmas, HORIZON, **how), budget=BUDGET)
        found[f"rate_{order}"] = int(one.steps.sum()) / timing.best(threads)
        found[f"each_{order}"] = timing.best(threads) / b
        found[f"error_{order}"] = off(one["covariance"].values[:LOOKED_AT, 0], late)
        found[f"ended_{order}"] = one.attrs["counts"]
        soon: dict[str, Any] = {"times": [EARLY], "order": order, "tolerance": EARLY_TOLERANCE, "check": False}
        short = vl.covariances(attention, sigmas, EARLY, **soon)
        timing = repeat(lambda soon=soon: vl.covariances(attention, sigmas, EARLY, **soon), budget=BUDGET)
        found[f"early_error_{order}"] = off(short["covariance"].values[:LOOKED_AT, 0], early)
        found[f"early_{order}"] = timing.best(threads) / b
    return found


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", default="1")
    parser.add_argument("--b", type=int, default=1000)
    parser.add_argument("--attention", default="softmax,l2,sinkhorn")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    report = Report("Covariances in bulk beside projected Euler in NumPy, one trajectory at a time", HEADER)
    for kind in given.attention.split(","):
        for threads in map(int, given.threads.split(",")):
            for d in DEMANDS:
                one = in_child(measured, kind, d, given.b, threads, threads=threads)
                add(report, kind, d, threads, one)
                print(*(" ".join(row) for row in report.rows[-2:]), sep="\n", flush=True)
    report.notes.append(
        f"{time.strftime('%Y-%m-%d')}, {machine()['processor']}, load {machine()['load_average'][0]:.1f}"
    )
    print(report)
    if given.json:
        write_json(given.json, report.as_json() | {"machine": machine(), "versions": versions(("numpy", "numba"))})


def add(report: Report, kind: str, d: int, threads: int, one: dict[str, Any]) -> None:
    """Two rows, and what is demanded."""
    for order in (5, 8):
        ratio = one[f"rate_{order}"] / one["euler_rate"]
        row = (kind, str(d), str(order), str(threads), number(one[f"rate_{order}"]), number(one["euler_rate"]))
        errors = (f"{one[f'error_{order}']:.1e}", f"{one['euler_error']:.1e}")
        work = ratio * VELOCITIES[order]
        waited = one["euler_steps"] / one["euler_rate"] / one[f"early_{order}"]
        report.rows.append((*row, number(ratio), number(work), seconds(one[f"each_{order}"]), *errors, number(waited)))
        name = f"{kind}, d = {d}, order {order}, error at t = 1"
        report.checks.append(Check(name, one[f"early_error_{order}"], 1e-8, at_least=False, unit=""))
        report.checks.append(
            Check(f"{kind}, d = {d}, order {order}, error", one[f"error_{order}"], 1e-8, at_least=False, unit="")
        )
        name = f"{kind}, d = {d}, order {order}, threads {threads}, Euler steps' worth per second"
        report.checks.append(Check(name, work, DEMANDS[d]))
    report.raw[f"{kind} {d} {threads}"] = one


if __name__ == "__main__":
    main()
