"""The right side of d_t f + div(f w) = 0 on a grid, and the buffers that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import get_num_threads
from numpy.typing import ArrayLike

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.solvers.finite_volume import kernels, velocity_kernels
from vlasov.solvers.finite_volume.schemes import Scheme

_WORTH_THREADS = 150_000  # cells; to wake a thread takes as long as the fluxes of ten thousand
SPARE: int = velocity_kernels.LEVELS  # the level that is not remembered, for velocities that are used once


class Finished(NamedTuple):
    """What a step arrived at, and what it did at the edges and to the fluxes."""

    f: Array
    outflow: float  # through the edges of the domain, in units of the sum of f
    limited: int  # cells whose outflow was scaled down


class Fluxes:
    """Finite-volume fluxes F_k = <f w_k> for w = r(t, z) - (constant + slopes z), and Runge-Kutta stages with them.

    A step: ``remember`` nodal velocities r; for each stage set ``velocities``, evaluate ``flux`` and make the next
    ``stage``; ``finish`` with the limiter. Nothing of the size of the grid is allocated after the construction.
    Results do not depend on the number of threads, to the last bit.

    Parameters
    ----------
    scheme
        Reconstruction and tableau.
    lower, widths
        Lower corner of the domain (d,) and edges of a cell (d,), d <= 3.
    cells
        Cells along each axis: the shape of f.
    """

    def __init__(self, scheme: Scheme, lower: ArrayLike, widths: ArrayLike, cells: Sequence[int]):
        self.scheme = scheme
        self.cells = tuple(cells)
        self.lower, self.widths = np.array(lower, dtype=float), np.array(widths, dtype=float)
        d = len(self.cells)
        self._missing = 3 - d  # leading axes of one cell that the kernels see
        self._lead = (None,) * self._missing  # f[self._lead] is a view of f with three axes
        self._axes = range(self._missing, 3)
        self._full = (1,) * self._missing + self.cells
        stages = scheme.tableau.stages
        faces = [_faces(self._full, axis) if axis in self._axes else (0, 0, 0) for axis in range(3)]
        self._levels = tuple(np.zeros((SPARE + 1, *shape)) for shape in faces)
        self._fluxes = tuple(np.zeros((stages, *shape)) for shape in faces)
        self._velocities, self._totals = (tuple(np.zeros(shape) for shape in faces) for _ in range(2))
        self._allowed = np.ones((*self._full[:2], self._full[2] + 2))
        rows = self._full[0] * self._full[1]
        self._outflow, self._limited = np.zeros(rows), np.zeros(rows, dtype=np.int64)
        self._nodal = [np.zeros(shape) for shape in _towards_nodes(self._full, self._missing)]

    def remember(self, level: int, nodal: Array) -> None:
        """Keep the velocity at the nodes, shape (nodes, d), as means over faces, in place of what the level held."""
        nodes = nodal.reshape(*(n + (k in self._axes) for k, n in enumerate(self._full)), len(self._axes))
        for component, axis in enumerate(self._axes):
            self._run(velocity_kernels.face_means, nodes, axis, component, self._levels[axis][level])

    def velocities(self, weights: ArrayLike, constant: ArrayLike, slopes: ArrayLike) -> None:
        """w = sum_l weights[l] r_l - (constant + slopes z) on all faces, from now on; constant (d,), slopes (d, d)."""
        weights, slopes = np.asarray(weights, dtype=float), np.asarray(slopes, dtype=float)
        centre = self.lower + self.widths / 2
        for component, axis in enumerate(self._axes):
            first = centre.copy()
            first[component] = self.lower[component]
            base = float(np.asarray(constant, dtype=float)[component] + slopes[component] @ first)
            steps = np.zeros(3)
            steps[self._missing :] = slopes[component] * self.widths
            self._run(velocity_kernels.combine_levels, self._levels[axis], weights, base, steps, self._velocities[axis])

    def flux(self, stage: int, f: Array) -> None:
        """F_stage = <f w> on all faces: what ``stage`` and ``finish`` combine."""
        cells = f[self._lead]
        for axis in self._axes:
            w, out = self._velocities[axis], self._fluxes[axis][stage]
            self._run(kernels.flux(self.scheme.compiled), self.scheme.corrected, axis, cells, w, out)

    def stage(self, number: int, f: Array, dt: float, out: Array) -> Array:
        """Out = f - dt sum_i a[number, i] div F_i, the state at which F_number is to be evaluated; may be negative."""
        row = np.array(self.scheme.tableau.a[number], dtype=float)
        cells, target = f[self._lead], out[self._lead]
        self._run(kernels.stage, cells, self._fluxes, row, self._ratios(dt), target)
        return out

    def finish(self, f: Array, dt: float, out: Array, share: float = 1.0) -> Finished:
        """Out = f - dt div(R sum_i b_i(share) F_i) >= 0 at any dt, the state at a share of the step dt.

        R scales what a cell loses to what it has. Nothing flows in at the edges of the domain. ``out`` may be f.
        """
        b, ratios = self.scheme.tableau.weights(share), self._ratios(dt)
        cells, target, totals = f[self._lead], out[self._lead], self._totals
        for axis in self._axes:
            self._run(kernels.total_flux, self._fluxes[axis], b, axis, totals[axis])
        self._run(kernels.allowed_outflow, cells, totals, ratios, self._allowed, self._limited)
        self._run(kernels.limited_update, cells, totals, ratios, self._allowed, target, self._outflow)
        return Finished(out, float(np.add.reduce(self._outflow)), int(np.add.reduce(self._limited)))

    def rate(self, f: Array, threshold: float) -> float:
        """Largest sum_k |w_k|/h_k (the larger |w_k| of two faces) among cells with f > threshold: dt < 1/rate."""
        parts = np.zeros(self._threads())
        self._run(
            velocity_kernels.largest_rate, f[self._lead], self._velocities, self._ratios(1.0), threshold, parts,
        )  # fmt: skip
        return float(np.max(parts))

    def to_nodes(self, f: Array) -> Array:
        """Nodal densities (n_0 + 1, ...), of order 6 where f is smooth, not below 0; the next call overwrites them."""
        values = f[self._lead]
        for axis, out in zip(reversed(self._axes), self._nodal, strict=True):
            self._run(kernels.to_faces, values, axis, out)
            values = out
        np.maximum(values, 0.0, out=values)
        return values[(0,) * self._missing]

    def _ratios(self, dt: float) -> Array:
        ratios = np.zeros(3)
        ratios[self._missing :] = dt / self.widths
        return ratios

    def _threads(self) -> int:
        return get_num_threads() if np.prod(self._full) > _WORTH_THREADS else 1

    def _run(self, kernel: object, *arguments: object) -> None:
        in_threads(self._threads(), kernel, *arguments)  # type: ignore[arg-type]


def _faces(cells: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(n + (k == axis) for k, n in enumerate(cells))


def _towards_nodes(cells: tuple[int, ...], first: int) -> list[tuple[int, ...]]:
    """Shapes with a further axis of nodes each time, the last axis first."""
    return [tuple(n + (k >= axis) for k, n in enumerate(cells)) for axis in range(2, first - 1, -1)]
