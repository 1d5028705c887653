"""Masses of a smooth density in other cells than those whose averages are known.

F(x) = int^x rho is known at the old edges; a quintic spline through it, axis by axis, gives it at the new ones
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.interpolate import make_interp_spline

from vlasov.checks import Array

_DEGREE = 5
_AT_THE_EDGE = 1e-6  # of the mass, in the outermost cells
_OVERSHOOT = 1e-9  # of the largest mass: more below zero, and the data are not smooth


def smooth_masses(values: Array, edges: Sequence[Array], cells: Sequence[Array]) -> Array:
    """Masses in tensor ``cells``, of order 5 or more, from averages between ``edges``, beyond which there is none."""
    masses = values
    for k, (old, new) in enumerate(zip(edges, cells, strict=True)):
        parts = np.moveaxis(masses, k, 0) * np.diff(old).reshape(-1, *[1] * (values.ndim - 1))
        below = np.concatenate([np.zeros((1, *parts.shape[1:])), np.cumsum(parts, axis=0)])
        at = make_interp_spline(old, below, k=_DEGREE)(np.clip(new, old[0], old[-1]))
        masses = np.moveaxis(np.diff(at, axis=0), 0, k)
    return np.asarray(masses)


def looks_smooth(values: Array, edges: Sequence[Array]) -> bool:
    """Whether next to no mass is at the edges, and halves of cells have no negative masses."""
    if min(values.shape) <= _DEGREE:
        return False
    inside = values[tuple(slice(1, -1) for _ in edges)]
    if values.sum() - inside.sum() > _AT_THE_EDGE * values.sum():  # cut off, so that it jumps there
        return False
    halves = [np.insert(axis, np.arange(1, axis.size), (axis[1:] + axis[:-1]) / 2) for axis in edges]
    masses = smooth_masses(values, edges, halves)
    return bool(masses.min() >= -_OVERSHOOT * masses.max())
