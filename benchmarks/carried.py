"""Which solver carries which attention, and how well: the errors of moments beside plain NumPy, or what a solver says.

    python benchmarks/carried.py [--json carried.json]

Each attention of the package, on a mixture of two Gaussians in the plane (one Gaussian for the solver "gaussian", a
square for attentions under which Gaussians have no solution), to t = 1/2; particles are 2,500 quadrature nodes or more,
grids have 128^2 cells. Masked attention has a sequence of two laws.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from problems import Array
from scipy.integrate import solve_ivp
from timing import machine, table, versions, write_json
from trust_problems import Stated, built, errors, nodes, truth
from trust_velocities import Head

HORIZON = 0.5
A, B = np.array([[0.7, 0.5], [-0.4, 0.4]]), np.array([[0.3, -0.6], [0.5, 0.4]])
V, W = np.array([[0.7, -0.6], [0.8, 0.5]]), np.array([[0.4, 0.2], [-0.3, 0.6]])
K = np.array([[0.6, 0.1], [-0.2, 0.5]])
SPREAD = np.array([[0.08, 0.02], [0.02, 0.05]])
CLOUDS = [(0.5, "gaussian", (np.array([-0.9, -0.3]), SPREAD)), (0.5, "gaussian", (np.array([0.9, 0.3]), SPREAD))]
CLOUD = [(1.0, "gaussian", (np.array([0.3, -0.2]), np.array([[0.5, 0.1], [0.1, 0.3]])))]
SQUARE = [(1.0, "box", (np.array([-1.0, -0.6]), np.array([0.8, 1.0])))]
HEADS = {
    "softmax": [Head(A, V)],
    "l2": [Head(2 * A, V, K.T @ K)],
    "sinkhorn": [Head(A, V, kind="sinkhorn")],
    "sigmoid": [Head(A, V, kind="sigmoid", bias=0.3)],
    "exponential": [Head(A, 0.5 * V, kind="exponential")],
    "relu": [Head(A, 0.5 * V, kind="relu")],
    "linear": [Head(A, 0.5 * V, kind="linear")],
    "multi-head": [Head(A, V), Head(2 * B, W, K.T @ K), Head(B, -W, kind="sinkhorn")],
    "masked": [Head(A, V)],
}
OPTIONS: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "particles": {"n": 2500, "sampling": "quadrature", "tolerance": 1e-10},
    "finite-volume": {"cells": 128},
}


def cell(kind: str, solver: str) -> dict[str, Any]:
    """What came of one attention and solver: an error with what the run says of it, or a sentence."""
    import vlasov as vl

    parts = CLOUD if solver == "gaussian" else SQUARE if kind == "exponential" else CLOUDS
    stated = Stated(0, kind, "", 2, HEADS[kind], parts, HORIZON)
    problem, times = built(stated), np.array([0.0, HORIZON / 2, HORIZON])
    if kind == "masked":
        initial = problem.initial if solver == "gaussian" else vl.Sequence(problem.initial.components)
        problem = vl.Problem(vl.Masked(problem.attention), initial, HORIZON)
    few: dict[str, Any] = {}
    if kind == "masked":  # prefixes in NumPy take long
        few = {"particles": {"n": 300}, "finite-volume": {"cells": 64, "slices": 6}}.get(solver, few)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run = vl.solve(problem, solver, times=times, **OPTIONS[solver] | few)
        except vl.InputError as sentence:
            return {"attention": kind, "solver": solver, "said": str(sentence)}
    seconds = time.perf_counter() - began
    if kind == "masked" and solver != "gaussian":
        true = _masked(stated, run, times)
    else:
        found = truth(stated, times)
        true = found.means, found.covariances
    error = float(np.max(errors((run["mean"].values, run["covariance"].values), true)))
    return {"attention": kind, "solver": solver, "error": error, "told": float(run["error_estimate"]),
            "seconds": seconds}  # fmt: skip


def _masked(stated: Stated, run: Any, times: Array) -> tuple[Array, Array]:
    """In plain NumPy: of the tokens of the run; or, for a grid, of nodes at ever more places."""
    if "s" not in run:
        mean, covariance = by_places(stated, times, lambda w, x: _moments(w, x)[:2])
        return mean, covariance
    weights = run["weight"].values
    found = _prefixes(stated, (run["position"].values[0], weights, run["s"].values), times, own=1.0)
    return _moments(weights, found)


def by_places(stated: Stated, times: Array, moments: Callable[[Array, Array], Any]) -> list[Array]:
    """Moments (weights, points at times) of a text of two laws, in plain NumPy.

    The second law has places at s = e + h u^2; sums over u are those of trapezoids, whose errors have even powers only,
    which two Richardson steps take away.
    """
    laws = [nodes(replace(stated, parts=[(1.0, *part[1:])]), 12) for part in stated.parts]
    (first, of_first), (second, of_second) = [(x, w / w.sum()) for x, w in laws]
    share, rows = stated.parts[0][0], []
    for pieces in (5, 10, 20):
        u = np.arange(pieces + 1) / pieces
        widths = 2 * (1 - share) * u / pieces
        s = np.concatenate([np.zeros(len(first)), np.repeat(share + (1 - share) * u**2, len(second))])
        points = np.concatenate([first, *[second] * len(u)])
        seen = np.concatenate([share * of_first, np.outer(widths, of_second).ravel()])
        widths[-1] /= 2
        counted = np.concatenate([share * of_first, np.outer(widths, of_second).ravel()])
        rows.append(moments(counted, _prefixes(stated, (points, seen, s), times, own=0.5)))
    rows = [[(4 * y - x) / 3 for x, y in zip(*pair, strict=True)] for pair in pairwise(rows)]
    return [(16 * y - x) / 15 for x, y in zip(*rows, strict=True)]


def _prefixes(stated: Stated, tokens: tuple[Array, Array, Array], times: Array, own: float) -> Array:
    """Tokens (x, w, s) at times, that see all before them, and this share of those at their own place."""
    start, w, s = tokens
    shape, places = start.shape, np.unique(s)

    def slope(t: float, y: Array) -> Array:
        now, result = y.reshape(shape), np.empty(shape)
        for place in places:
            seen, here = s <= place, s == place
            share = np.where(here, own, 1.0)[seen] * w[seen]
            share /= share.sum()
            z = (now[here] @ stated.heads[0].a.T) @ now[seen].T
            pairs = np.exp(z - z.max(axis=1, keepdims=True)) * share
            result[here] = (pairs @ now[seen]) / pairs.sum(axis=1, keepdims=True) @ stated.heads[0].v.T
        return result.ravel()

    rows = solve_ivp(slope, (0, HORIZON), start.ravel(), t_eval=times, rtol=1e-9, atol=1e-11, method="DOP853").y.T
    return rows.reshape(len(times), *shape)


def _moments(w: Array, found: Array) -> tuple[Array, Array]:
    """Means and covariances over time."""
    means = np.einsum("n,tnk->tk", w, found)
    away = found - means[:, None]
    return means, np.einsum("n,tnk,tnl->tkl", w, away, away)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="PATH", help="write all of it")
    parser.add_argument("--attention", nargs="+", choices=tuple(HEADS), default=tuple(HEADS))
    arguments = parser.parse_args()
    before, found = machine(), []
    print(", ".join(f"{name} {value}" for name, value in before.items()))
    for kind in arguments.attention:
        found += [cell(kind, solver) for solver in OPTIONS]
        for one in found[-len(OPTIONS) :]:
            print(f"{one['attention']:12} {one['solver']:14} {one.get('said') or _figures(one)}", flush=True)
    rows = [(kind, *(_short(one) for one in found if one["attention"] == kind)) for kind in arguments.attention]
    print("\n" + table(("attention", *OPTIONS), rows))
    if arguments.json:
        write_json(
            arguments.json, {"machine": before, "versions": versions(["numpy", "scipy", "numba"]), "cells": found}
        )


def _figures(one: dict[str, Any]) -> str:
    return f"error {one['error']:.1e}, told {one['told']:.1e}, {one['seconds']:.1f} s"


def _short(one: dict[str, Any]) -> str:
    return "refused" if "said" in one else f"{one['error']:.1e} ({one['told']:.1e})"


if __name__ == "__main__":
    main()
