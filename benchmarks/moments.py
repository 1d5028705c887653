"""Moments to order four of finite volumes beside quadrature particles in plain NumPy, for every attention.

    python benchmarks/moments.py [--cells 128] [--json moments.json]

A mixture of two Gaussians in the plane to t = 1/2, by the attentions of ``carried.py``; under masks a text of two laws.
Errors are the largest of the entries of M_k = E (x - m)^k, in units of s^k with s^2 = tr M_2; order one is the mean's.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from carried import HEADS, HORIZON, SPREAD, by_places
from problems import Array
from timing import machine, table, versions, write_json
from trust_problems import Stated, built, truth
from trust_velocities import Head

INWARDS = [Head(np.array([[0.7, 0.1], [0.1, 0.4]]), -0.5 * np.eye(2), kind="exponential")]  # else no Gaussian tails
UNEVEN = [  # so that moments of odd orders are not zero
    (0.6, "gaussian", (np.array([-0.8, -0.3]), SPREAD)),
    (0.4, "gaussian", (np.array([0.9, 0.6]), np.array([[0.05, -0.01], [-0.01, 0.1]]))),
]
Moments = tuple[Array, Array, Array, Array]  # mean, and central moments of orders two to four


def of_points(weights: Array, x: Array) -> Moments:
    """Of weighted points (n, d)."""
    w = weights / weights.sum()
    mean = w @ x
    y = x - mean
    second, third = np.einsum("n,ni,nj->ij", w, y, y), np.einsum("n,ni,nj,nk->ijk", w, y, y, y)
    return mean, second, third, np.einsum("n,ni,nj,nk,nl->ijkl", w, y, y, y, y)


def of_density(density: Any) -> Moments:
    """Of cell averages: the density is smoothed by a cell, whose cumulants h^2 / 12 and - h^4 / 120 are taken away."""
    z = np.stack(np.meshgrid(*density.centers, indexing="ij"), axis=-1).reshape(-1, density.dimension)
    mean, second, third, fourth = of_points(density.values.ravel(), z)
    widths = np.array([width[0] for width in density.widths])
    without = second - np.diag(widths**2 / 12)
    fourth = fourth - _pairings(second) + _pairings(without)
    for k, h in enumerate(widths):
        fourth[k, k, k, k] += h**4 / 120
    m = density.matrix
    return (
        density.origin + m @ mean,
        m @ without @ m.T,
        np.einsum("ai,bj,ck,ijk->abc", m, m, m, third),
        np.einsum("ai,bj,ck,dl,ijkl->abcd", m, m, m, m, fourth),
    )


def of_state(measure: Any) -> Moments:
    """Of a run's state: a density, or a mixture of them."""
    if not hasattr(measure, "components"):
        return of_density(measure)
    each = [of_density(part) for part in measure.components]
    mean = measure.weights @ np.array([part[0] for part in each])
    moved = [_about(mean - part[0], part) for part in each]
    second, third, fourth = (np.tensordot(measure.weights, np.array(m), axes=1) for m in zip(*moved, strict=True))
    return mean, second, third, fourth


def _about(shift: Array, moments: Moments) -> tuple[Array, Array, Array]:
    """Moments about mean + shift."""
    _, second, third, fourth = moments
    d = -shift
    return (
        second + np.multiply.outer(d, d),
        third + _spread([second, d]) + _spread([d, d, d]),
        fourth + _spread([third, d]) + _spread([second, d, d]) + _spread([d, d, d, d]),
    )


def _spread(factors: Sequence[Array]) -> Array:
    """The symmetric sum of products of one symmetric tensor and vectors d, over the ways to share out the indices."""
    head, rest = factors[0], factors[1:]
    order = head.ndim + len(rest)
    product = head
    for vector in rest:
        product = np.multiply.outer(product, vector)
    if head.ndim == 1:  # all of them are vectors
        return product
    result = np.zeros(product.shape)
    for mine in combinations(range(order), head.ndim):
        others = [k for k in range(order) if k not in mine]
        result += np.moveaxis(product, range(order), [*mine, *others])
    return result


def _pairings(c: Array) -> Array:
    """Fourth moments of a Gaussian."""
    product = np.multiply.outer(c, c)
    return product + product.transpose(0, 2, 1, 3) + product.transpose(0, 3, 2, 1)


def errors(found: Moments, true: Moments) -> list[float]:
    """One for each order."""
    s = math.sqrt(np.trace(true[1]))
    return [float(np.abs(x - y).max()) / s**k for k, (x, y) in enumerate(zip(found, true, strict=True), start=1)]


def row(kind: str, cells: int) -> dict[str, Any]:
    """One attention."""
    import vlasov as vl

    heads = INWARDS if kind == "exponential" else HEADS[kind]
    stated, times = Stated(0, kind, "", 2, heads, UNEVEN, HORIZON), np.array([0.0, HORIZON])
    problem, options = built(stated), {"cells": cells}
    if kind == "masked":
        problem = vl.Problem(
            vl.Masked(problem.attention), vl.Sequence(problem.initial.components, [0.0, UNEVEN[0][0], 1.0]), HORIZON
        )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = vl.solve(problem, "finite-volume", times=times, **options)
    seconds = time.perf_counter() - began
    if kind == "masked":
        mean, *higher = by_places(stated, times, lambda w, x: of_points(w, x[-1]))
        true = (mean, higher[0], higher[1], higher[2])
    else:
        known = truth(stated, times, careful=kind != "relu").known  # where nodes cross a kink steps become short
        assert known is not None
        true = of_points(known[1], known[0])
    return {"attention": kind, "errors": errors(of_state(vl.measure(run)), true),
            "told": float(run["error_estimate"]), "seconds": seconds}  # fmt: skip


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="PATH", help="write all of it")
    parser.add_argument("--cells", type=int, default=128)
    parser.add_argument("--attention", nargs="+", choices=tuple(HEADS), default=tuple(HEADS))
    arguments = parser.parse_args()
    before, found = machine(), []
    print(", ".join(f"{name} {value}" for name, value in before.items()))
    for kind in arguments.attention:
        found.append(row(kind, arguments.cells))
        print(kind, *(f"{error:.1e}" for error in found[-1]["errors"]), f"({found[-1]['seconds']:.0f} s)", flush=True)
    rows = [(one["attention"], *(f"{e:.1e}" for e in one["errors"]), f"{one['told']:.1e}") for one in found]
    print("\n" + table(("attention", "mean", "order 2", "order 3", "order 4", "told"), rows))
    if arguments.json:
        write_json(
            arguments.json, {"machine": before, "versions": versions(["numpy", "scipy", "numba"]), "rows": found}
        )


if __name__ == "__main__":
    main()
