"""Causal velocities beside unmasked ones, in one run, on one thread; and beside our own causal all pairs.

python benchmarks/masked.py [--n 1000000] [--rounds 5] [--json PATH]

Seconds are of the processor: the best of so many rounds, in turns. Causal all pairs of n tokens are timed at n / 50 and
grow like n^2; at n = 1e4 they race NumPy and, where it is installed, PyTorch. Errors are those of some hundred tokens
against extended precision, relative to the largest coordinate.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from problems import Problem

import vlasov as vl

DEMANDS = {5.0: 4.5, 20.0: 6.0}  # times the unmasked velocity, by S, for d = 2
FASTER = 400.0  # than our own causal all pairs
AHEAD = 2.0  # of the best peer, all pairs
TOLERANCE, TARGETS = 1e-9, 100


def main() -> int:
    """Race, print a line for each problem, and return 1 where a demand is not met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [race(Problem(2, options.n, "box", size), options.rounds) for size in DEMANDS]
    rows += [race(Problem(d, options.n // 10, "box", size), options.rounds) for d, size in ((1, 20.0), (3, 5.0))]
    for row in rows:
        print(
            "  ".join(
                f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()
            )
        )
    peers = all_pairs(10_000, options.rounds)
    print("  ".join(f"{name} {value:.4g}" for name, value in peers.items()))
    if options.json:
        options.json.write_text(json.dumps([*rows, peers], indent=1))
    asked = [row for row in rows if row["d"] == 2 and options.n >= 1_000_000]
    slow = peers["ahead"] < AHEAD
    return int(slow or any(row["ratio"] > DEMANDS[row["S"]] or row["faster"] < FASTER for row in asked))


def race(problem: Problem, rounds: int) -> dict[str, Any]:
    """One problem: tokens in the order of their places, as runs have them."""
    points = np.ascontiguousarray(problem.points())
    places = np.sort(np.random.default_rng(0).random(problem.n))
    plain = vl.Softmax(A=problem.A, V=problem.V)
    masked = vl.Masked(plain)
    fresh = vl.Particles(points, s=places)
    _, unmasked = best(lambda: plain.field(fresh.moved(points), points, tolerance=TOLERANCE), rounds)
    field, causal = best(lambda: masked.field(fresh.moved(points), points, tolerance=TOLERANCE), rounds)
    few = max(problem.n // 50, 1000)
    some = vl.Particles(points[:few], s=places[:few])
    _, pairs = best(lambda: masked.field(some, some.points, method="all-pairs"), 1)
    return {
        "d": problem.d,
        "S": problem.strength,
        "n": problem.n,
        "unmasked_ms": 1e3 * unmasked,
        "masked_ms": 1e3 * causal,
        "ratio": causal / unmasked,
        "faster": pairs * (problem.n / few) ** 2 / causal,
        "error": error(problem, points, field.values),
        "bound": field.error_bound,
        "method": field.method,
    }


def all_pairs(n: int, rounds: int) -> dict[str, Any]:
    """Our causal all pairs beside NumPy's and, where it is installed, PyTorch's, in turns; d = 2."""
    problem = Problem(2, n, "ball", 1.0)
    points, matrix, values = np.ascontiguousarray(problem.points()), problem.A, problem.V
    cloud, masked = vl.Particles(points, s=np.arange(n) / n), vl.Masked(vl.Softmax(A=matrix, V=values))
    contestants: dict[str, Any] = {
        "ours": lambda: masked.velocity(cloud, cloud.points, method="all-pairs"),
        **{f"numpy_{rows}": lambda rows=rows: by_numpy(points, matrix, values, rows) for rows in (16, 64, 256)},
    }
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        q, k, v = (torch.from_numpy(np.ascontiguousarray(a))[None, None] for a in (points @ matrix.T, points, points))
        sums = torch.nn.functional.scaled_dot_product_attention
        contestants["torch"] = lambda: sums(q, k, v, is_causal=True, scale=1.0)[0, 0].numpy() @ values.T
    found = {name: best(call, rounds) for name, call in contestants.items()}
    for name, (result, _) in found.items():
        assert np.abs(result - found["ours"][0]).max() < 1e-11, name
    times = {f"{name}_ms": 1e3 * seconds for name, (_, seconds) in found.items()}
    return {
        "d": 2,
        "n": n,
        **times,
        "ahead": min(t for name, t in times.items() if name != "ours_ms") / times["ours_ms"],
    }


def by_numpy(points: np.ndarray, matrix: np.ndarray, values: np.ndarray, rows: int) -> np.ndarray:
    """Softmax over the prefixes of a few targets at a time, in place."""
    queries, keys, means = points @ matrix.T, np.ascontiguousarray(points.T), np.empty_like(points)
    hidden = np.triu(np.full((rows, rows), -np.inf), 1)
    for start in range(0, len(points), rows):
        stop = min(start + rows, len(points))
        part = queries[start:stop] @ keys[:, :stop]
        part[:, start:] += hidden[: stop - start, : stop - start]
        part -= part.max(axis=1, keepdims=True)
        np.exp(part, out=part)
        np.divide(part @ points[:stop], part.sum(axis=1, keepdims=True), out=means[start:stop])
    return means @ values.T


def best(call: Any, rounds: int) -> tuple[Any, float]:
    """What a call returns, and the least of its times; the first of all compiles."""
    result, taken = call(), []
    for _ in range(rounds):
        start = time.process_time()
        result = call()
        taken.append(time.process_time() - start)
    return result, min(taken)


def error(problem: Problem, points: np.ndarray, found: np.ndarray) -> float:
    """The largest error at some tokens, the first among them, against sums in extended precision."""
    tokens = np.concatenate([[0, 1, 5], np.random.default_rng(1).integers(0, problem.n, TARGETS)])
    largest = 0.0
    for i in tokens.tolist():
        exponents = (points[: i + 1] @ (problem.A @ points[i])).astype(np.longdouble)
        weights = np.exp(exponents - exponents.max())
        mean = problem.V @ (weights @ points[: i + 1] / weights.sum())
        largest = max(largest, float(np.linalg.norm((found[i] - mean).astype(float))))
    return largest / float(np.abs(points).max())


if __name__ == "__main__":
    raise SystemExit(main())
