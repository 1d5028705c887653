"""Masses of a smooth density in other cells than those whose averages are known, and its values at points.

F(x) = int^x rho is known at the old edges; a quintic spline through it, axis by axis, gives it at the new ones, and its
derivative is rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array

if TYPE_CHECKING:
    from scipy.interpolate import NdBSpline

_DEGREE = 5
_AT_THE_EDGE = 1e-6  # of the mass, in the outermost cells
_OVERSHOOT = 1e-9  # of the largest mass: more below zero, and the data are not smooth
_RIPPLES = 1e-3  # the same where it is to be seen, not to be integrated: jumps make a tenth


def smooth_masses(values: Array, edges: Sequence[Array], cells: Sequence[Array]) -> Array:
    """Masses in tensor ``cells``, of order 5 or more, from averages between ``edges``, beyond which there is none."""
    from scipy.interpolate import make_interp_spline

    masses = values
    for k, (old, new) in enumerate(zip(edges, cells, strict=True)):
        parts = np.moveaxis(masses, k, 0) * np.diff(old).reshape(-1, *[1] * (values.ndim - 1))
        below = np.concatenate([np.zeros((1, *parts.shape[1:])), np.cumsum(parts, axis=0)])
        at = make_interp_spline(old, below, k=_DEGREE)(np.clip(new, old[0], old[-1]))
        masses = np.moveaxis(np.diff(at, axis=0), 0, k)
    return np.asarray(masses)


def smooth_density(values: Array, edges: Sequence[Array]) -> NdBSpline:
    """The density whose cell averages are values, of order 5; it may dip below zero by rounding."""
    from scipy.interpolate import NdBSpline, make_interp_spline

    knots, parts = [], values
    for k, axis in enumerate(edges):
        masses = np.moveaxis(parts, k, 0) * np.diff(axis).reshape(-1, *[1] * (values.ndim - 1))
        below = np.concatenate([np.zeros((1, *masses.shape[1:])), np.cumsum(masses, axis=0)])
        along = make_interp_spline(axis, below, k=_DEGREE).derivative()
        knots.append(along.t)
        parts = np.moveaxis(along.c[: axis.size - 1], 0, k)
    return NdBSpline(tuple(knots), parts, _DEGREE - 1)


def looks_drawable(values: Array, edges: Sequence[Array]) -> bool:
    """Whether a smooth curve through the averages shows no more ripples than a coarse grid makes."""
    return looks_smooth(values, edges, _RIPPLES)


def looks_smooth(values: Array, edges: Sequence[Array], overshoot: float = _OVERSHOOT) -> bool:
    """Whether next to no mass is at the edges, and halves of cells have no negative masses."""
    if min(values.shape) <= _DEGREE:
        return False
    inside = values[tuple(slice(1, -1) for _ in edges)]
    if values.sum() - inside.sum() > _AT_THE_EDGE * values.sum():  # cut off, so that it jumps there
        return False
    halves = [np.insert(axis, np.arange(1, axis.size), (axis[1:] + axis[:-1]) / 2) for axis in edges]
    masses = smooth_masses(values, edges, halves)
    return bool(masses.min() >= -overshoot * masses.max())
