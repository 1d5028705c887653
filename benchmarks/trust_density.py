"""The error of a density in L1 beside a reference that carries the true one along; by splines of cell averages."""

from __future__ import annotations

from typing import Any

import numpy as np
from problems import Array
from scipy.interpolate import NdBSpline, make_interp_spline
from trust_problems import Truth


def density_error(run: Any, truth: Truth) -> tuple[float, float]:
    """2 E (1 - f / f*)_+ over the truth at the last time, f by splines of the same cell averages; NaN if unknown.

    And by how much splines of a lower order disagree: coarse averages can be read no better.
    """
    if truth.known is None or "density" not in run:
        return float("nan"), float("nan")
    x, w, exact = truth.known
    last = run.isel(time=-1)
    several = "part" in last["density"].dims
    parts = [last.isel(part=k) for k in range(last.sizes["part"])] if several else [last]
    shares = last["part_weight"].values if several else [1.0]
    found = []
    for order in (5, 3):
        pairs = zip(shares, parts, strict=True)
        f = sum((share * _read(part, x, order) for share, part in pairs), np.zeros(len(x)))
        found.append(float(2 * w @ np.maximum(1 - np.maximum(f, 0) / np.maximum(exact, 1e-300), 0.0)))
    return found[0], abs(found[1] - found[0])


def _read(state: Any, x: Array, order: int) -> Array:
    """The density of one grid in its frame."""
    matrix, values = state["frame_matrix"].values, state["density"]
    axes = [state[name].values for name in values.dims]
    z = (x - state["frame_origin"].values) @ np.linalg.inv(matrix).T
    spline = NdBSpline(*_spline(axes, values.values, order))
    inside = np.all([(axis[0] <= c) & (c <= axis[-1]) for axis, c in zip(axes, z.T, strict=True)], axis=0)
    found = spline(np.where(inside[:, None], z, [axis[0] for axis in axes]))
    return np.where(inside, found, 0.0) / abs(np.linalg.det(matrix))


def _spline(axes: list[Array], averages: Array, order: int) -> tuple[tuple[Array, ...], Array, int]:
    """Knots, coefficients and degree of the tensor of splines that have these averages over cells."""
    knots, coefficients = [], averages
    for k, axis in enumerate(axes):
        h = axis[1] - axis[0]
        edges = np.append(axis - h / 2, axis[-1] + h / 2)
        sums = np.cumsum(np.moveaxis(coefficients, k, 0), axis=0) * h
        primitive = np.concatenate([np.zeros((1, *sums.shape[1:])), sums])
        one = make_interp_spline(edges, primitive, k=order).derivative()
        knots.append(one.t)
        coefficients = np.moveaxis(one.c[: len(one.t) - one.k - 1], 0, k)
    return tuple(knots), coefficients, order - 1
