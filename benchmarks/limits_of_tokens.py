"""Every limit of random rescaled runs: a vertex, a point of the boundary of their polytope, zero, or neither.

    python benchmarks/limits_of_tokens.py [--runs 100] [--seed 0] [--json PATH]

Softmax attention with V = I and A positive definite (every other one not symmetric) on random tokens in d = 1, 2, 3.
The theorem on clusters says that z_i = e^{-t} x_i goes to zero or to a point of the boundary of a convex polytope. Held
against SciPy: of no limit that is called a point of the boundary does the ray from the centre through it go on inside
the hull of all limits. Ends with exit code 1 where a limit is neither, or hardmax would move it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

import vlasov as vl
from vlasov.checks import Array

_HORIZON = 9.0  # followers are e^{-9} away from their leaders
_GAIN = 1e-6


def problem(seed: int) -> vl.Problem:
    """V = I, A > 0 with eigenvalues between 0.15 and 50 or so, 10 to 80 tokens in a box or of a normal law."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), int(rng.integers(10, 81))
    root, turn = rng.normal(size=(2, d, d))
    A = 10 ** rng.uniform(-0.5, 1) * (root @ root.T + 0.5 * np.eye(d)) + (turn - turn.T) * (seed % 2)
    points = rng.uniform(-1, 1, (n, d)) if seed % 3 else rng.normal(size=(n, d))
    return vl.Problem(vl.Softmax(A=A), vl.Particles(points), _HORIZON)


def beyond(limits: Array, k: int) -> float:
    """How far the ray from the mean of all limits through one of them goes on in their hull, by linear programming."""
    centre = limits.mean(axis=0)
    way = limits[k] - centre
    length = float(np.linalg.norm(way))
    if length == 0.0:
        return math.inf if len(limits) > 1 else 0.0
    columns = np.vstack([np.column_stack([limits.T, -way / length]), [*np.ones(len(limits)), 0.0]])
    found = linprog([*np.zeros(len(limits)), -1.0], A_eq=columns, b_eq=[*limits[k], 1.0])
    return float(found.x[-1])


def judged(seed: int) -> dict[str, Any]:
    """What the limits of one run are, and how far the theorem and SciPy are from agreeing."""
    stated = problem(seed)
    run = vl.solve(
        stated, "particles", rescaled=True, times=np.linspace(0, _HORIZON, 10), tolerance=1e-7, warn_above=math.inf
    )
    found = vl.clusters(run)
    limits, margin = found["limit"].values, found.attrs["margin"] / found.attrs["tolerance"] * float(found["reach"])
    kinds = Counter(
        "zero" if zero else "vertex" if vertex else "boundary" if boundary else "neither"
        for vertex, boundary, zero in zip(*(found[name].values for name in ("vertex", "boundary", "zero")), strict=True)
    )
    rays = [beyond(limits, k) for k in np.flatnonzero(found["boundary"].values)]
    return {
        "seed": seed,
        "d": stated.dimension,
        "n": run.sizes["particle"],
        "kinds": dict(kinds),
        "gain": float(found["gain"].max()),
        "beyond": max(rays, default=0.0) / margin,
        "leaders": int(found["leaders"].sum()),
        "leaderless": int((found["leaders"].values == 0).sum()),
        "movement": float(found["movement"]),
        "time_to_cluster": float(found["time_to_cluster"]),
    }


def main() -> None:
    """Judge so many runs, and print what their limits are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    started, rows = time.process_time(), [judged(seed) for seed in range(asked.seed, asked.seed + asked.runs)]
    kinds = sum((Counter(row["kinds"]) for row in rows), Counter())
    sizes = Counter(sum(row["kinds"].values()) for row in rows)
    wrong = [row for row in rows if "neither" in row["kinds"] or row["gain"] > _GAIN or row["beyond"] > 1.0]
    print(f"{asked.runs} runs, {sum(kinds.values())} limits: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    print("limits in a run: " + ", ".join(f"{size} in {count}" for size, count in sorted(sizes.items())))
    print(f"largest gain of a limit elsewhere, by hardmax: {max(row['gain'] for row in rows):.1e}")
    print(f"largest ray beyond a limit inside the hull, of what is allowed: {max(row['beyond'] for row in rows):.1e}")
    print(f"clusters without a leader: {sum(row['leaderless'] for row in rows)}")
    print(f"largest movement over the last tenth: {max(row['movement'] for row in rows):.1e} of the first cloud")
    print(f"{time.process_time() - started:.0f} s of processor time")
    for row in wrong:
        print("WRONG", row)
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
