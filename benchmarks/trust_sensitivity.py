"""Does vl.sensitivity know its errors? Random problems against differences of whole runs, direction by direction.

    python benchmarks/trust_sensitivity.py [--problems 100] [--seed 1]

A few tokens, d = 1 to 3, softmax, L2, Sinkhorn, sigmoid, two heads or linear attention, with weights or without. The
fundamental matrix M is found column by column, by central differences of order 4 between runs of the particle solver at
its tightest tolerance, and again with steps twice as long: what both differ by is what the reference does not know. The
growth is |M| in L^2(mu). Silent is an error of more than three times what was told and what the reference does not know.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter

import numpy as np

import vlasov as vl

Array = np.ndarray
KINDS = ("softmax", "l2", "sinkhorn", "sigmoid", "two heads", "linear")
STEP, TIGHT, TIMES_TOLD = 2e-3, 1e-13, 3.0
FOURTH = ((1, 2 / 3), (2, -1 / 12))


def problem(seed: int) -> tuple[str, vl.Problem]:
    """A random one."""
    rng = np.random.default_rng(seed)
    d, n, kind = int(rng.integers(1, 4)), int(rng.integers(2, 8)), str(rng.choice(KINDS))

    def matrices() -> dict[str, Array]:
        return {"A": rng.normal(size=(d, d)) * 10 ** rng.uniform(-0.5, 0.3), "V": rng.normal(size=(d, d)) / 2}

    simple = {"softmax": vl.Softmax, "sinkhorn": vl.Sinkhorn, "sigmoid": vl.Sigmoid, "linear": vl.Linear}
    if kind == "l2":
        attention = vl.L2(*rng.normal(size=(3, d, d)) / 2)
    elif kind == "two heads":
        attention = vl.MultiHead([vl.Softmax(**matrices()), vl.Softmax(**matrices())])
    else:
        attention = simple[kind](**matrices())
    weights = rng.uniform(0.2, 1.0, n) if rng.random() < 0.5 else np.ones(n)
    tokens = vl.Particles(rng.normal(size=(n, d)), weights / weights.sum())
    return f"{kind}, d = {d}, n = {n}", vl.Problem(attention, tokens, float(10 ** rng.uniform(-0.5, 0.0)))


def end(given: vl.Problem, points: Array) -> Array:
    """Where tokens from these points are at the horizon."""
    moved = given.changed(initial=vl.Particles(points, given.initial.weights))
    run = vl.solve(moved, "particles", times=[given.horizon], tolerance=TIGHT, warn_above=np.inf)
    return np.asarray(run["position"].values[-1]).ravel()


def growth(given: vl.Problem, step: float) -> float:
    """|M| by differences."""
    x, columns = given.initial.points, []
    for k in range(x.size):
        column = np.zeros(x.size)
        for times, weight in FOURTH:
            away = np.zeros(x.size)
            away[k] = times * step
            column += weight * (end(given, x + away.reshape(x.shape)) - end(given, x - away.reshape(x.shape)))
        columns.append(column / step)
    root = np.repeat(np.sqrt(given.initial.weights), x.shape[1])
    return float(np.linalg.norm(root[:, None] * np.array(columns).T / root, 2))


def judged(seed: int) -> tuple[str, str]:
    """What became of a problem, and a line about it."""
    name, given = problem(seed)
    try:
        found = vl.sensitivity(given, times=[given.horizon], rates=False)
        if found.attrs["status"] != "completed":
            return found.attrs["status"], name
        value, told = float(found["growth"].values[-1]), float(found["growth_error"].values[-1])
        exact, other = growth(given, STEP), growth(given, 2 * STEP)
    except (vl.InputError, vl.SolverError) as error:
        return "refused", f"{name}: {str(error)[:90]}"
    off, unknown = abs(value - exact), abs(exact - other) + 1e-9 * exact
    line = f"{name}: growth {value:.6g}, told {told:.1e}, off by {off:.1e}, reference {unknown:.1e}"
    if off > TIMES_TOLD * (told + unknown):
        return "silent", line
    return ("known by the reference" if unknown < 1e-6 * exact else "reference is rough"), line


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given, began = parser.parse_args(), time.process_time()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for seed in range(1000 * given.seed, 1000 * given.seed + given.problems):
        fate, line = judged(seed)
        counts[fate] += 1
        if fate in ("silent", "refused"):
            print(f"{seed} {fate}: {line}", flush=True)
    print(
        ", ".join(f"{count} {fate}" for fate, count in counts.most_common()), f"in {time.process_time() - began:.0f} s"
    )
    raise SystemExit(1 if counts["silent"] else 0)


if __name__ == "__main__":
    main()
