"""What the centres of cells stand for in sums over points: values of the smooth density behind the cell averages.

In two ways, by what a sum can see: relative to the largest value, by a cosine transform; or relative to each value, for
sums that bring tails into the middle:

    rho_i = (1 / h) int_{cell i} e^{phi(y)} dy     is solved for phi(y_i), axis by axis

phi = log rho is interpolated through up to eleven centres, which is exact for Gaussians and of order twelve for others.
A linear stencil errs relative to the largest value that it meets: a tilt brings tails into the middle, and its errors
with them. Here errors are relative to the value itself. Cells at an end of a run that carries mass look inwards. Where
the iteration does not converge because the averages are rough, the average itself stands for the value: order two.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numba import get_num_threads

from vlasov.checks import Array
from vlasov.compiled.exponential import exp2
from vlasov.compiled.threads import in_threads
from vlasov.jit import SUMS, kernel
from vlasov.measures.density.regrid import looks_drawable
from vlasov.measures.quadrature import legendre

if TYPE_CHECKING:
    from vlasov.measures.density import Density

_CONSISTENT = 1e-4  # of the mass may sums of averages and of point values differ
_REACH = 5  # centres on either side through which log rho is interpolated
_NODES = 8  # Gauss nodes in a cell: exact to rounding up to log slopes of four per cell
_INWARDS = 2  # the same for the cells at an end, around a centre further inside
_SWEEPS = 15  # each gains a factor of about 12 sigma^2 / h^2 in the middle, less in the tails
_CONVERGED, _ACCEPTED = 1e-12, 1e-5  # changes of log_2 rho
_SAFETY = 10.0  # of the next change, as far as two foretell it
_TAIL = 60.0  # cells below 2^-60 of the largest are not waited for
_SMALL = 20_000  # cells that are not worth a second thread


def at_centers(density: Density, *, tails: bool) -> Array:
    """Values of a density at the centres of cells, for sums over these; averages, which have the mean, if it is rough.

    ``tails``: by ratios of values, for sums of e^{<xi, y>}, else by waves. Rough: where it jumps, or where its point
    values do not have the mass.
    """
    averages = density.values
    if not density.smoothing.any() or not (tails or looks_drawable(averages, density.edges)):
        return averages
    values = density.point_values if tails else undo_averaging(averages)
    sums = float(values.sum()), float(averages.sum())
    return values if abs(sums[0] - sums[1]) <= _CONSISTENT * sums[1] else averages


def point_values(averages: Array) -> Array:
    """rho at the centres of the cells of a uniform grid; shapes as ``averages``, zero where these are."""
    values = averages
    for axis in range(averages.ndim):
        lines = np.ascontiguousarray(np.moveaxis(values, axis, -1))
        rows = lines.reshape(-1, lines.shape[-1]).copy()
        threads = 1 if rows.size < _SMALL else get_num_threads()
        in_threads(threads, _invert, rows, *_rule(), np.empty((threads, 4, rows.shape[1])))
        values = np.moveaxis(rows.reshape(lines.shape), -1, axis)
    return np.ascontiguousarray(values)


def undo_averaging(averages: Array) -> Array:
    """The same, relative to the largest value and a hundred times as fast: for sums that do not bring tails into view.

    Averages of cos(pi k x) over cells are values at their centres times sinc(k / 2n).
    """
    from scipy.fft import dctn, idctn

    waves = dctn(averages, type=2)
    for axis, n in enumerate(averages.shape):
        waves /= np.sinc(np.arange(n) / (2 * n)).reshape([-1 if l == axis else 1 for l in range(averages.ndim)])
    return np.maximum(idctn(waves, type=2), 0.0)


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array, Array, Array]:
    """For each reach r and node u > 0: factors of phi_j + phi_-j - 2 phi_0 and phi_j - phi_-j.

    phi(u h) - phi_0 and phi(-u h) - phi_0 are the sum and the difference of what they make. Third, for a centre that is
    s cells away and all nodes u, factors of phi_{s + j}, j = -2 .. 2; then the weights of the nodes u > 0.
    """
    unit, weights = legendre(_NODES)
    u = unit[_NODES // 2 :] / 2
    even, odd = np.zeros((2, _REACH + 1, u.size, _REACH))
    for r in range(1, _REACH + 1):
        nodes = np.arange(-r, r + 1)
        for j in range(1, r + 1):
            others = nodes[nodes != j]
            right, left = (((side * u[:, None] - others) / (j - others)).prod(axis=1) for side in (1, -1))
            even[r, :, j - 1], odd[r, :, j - 1] = (right + left) / 2, (right - left) / 2
    near = np.arange(-_INWARDS, _INWARDS + 1)
    ends = np.empty((near.size, _NODES, near.size))
    for s in range(-_INWARDS, _INWARDS + 1):
        for j in range(-_INWARDS, _INWARDS + 1):
            others = near[near != j]
            ends[s, :, j + _INWARDS] = ((unit[:, None] / 2 - s - others) / (j - others)).prod(axis=1)
    return even, odd, ends, weights[_NODES // 2 :].copy()


@kernel(flags=SUMS)
def _averages(phi, first, last, even, odd, weights, out):  # type: ignore[no-untyped-def]
    """Of e^{phi - phi_i} in cells whose neighbours all carry mass."""
    near, found = phi[first - _REACH : last + _REACH], out[first:last]  # loops vectorise from zero on
    found[:] = 0.0
    for q in range(weights.size):
        for i in range(found.size):
            symmetric = antisymmetric = 0.0
            for j in range(_REACH):
                right = near[i + _REACH + 1 + j] - near[i + _REACH]
                left = near[i + _REACH - 1 - j] - near[i + _REACH]
                symmetric += even[q, j] * (right + left)
                antisymmetric += odd[q, j] * (right - left)
            found[i] += weights[q] * (exp2(symmetric + antisymmetric) + exp2(symmetric - antisymmetric))


@kernel(flags=SUMS)
def _average(phi, i, reach, even, odd, weights):  # type: ignore[no-untyped-def]
    """The same for one cell with fewer neighbours."""
    total = 0.0
    for q in range(weights.size):
        symmetric = antisymmetric = 0.0
        for j in range(reach):
            right, left = phi[i + 1 + j] - phi[i], phi[i - 1 - j] - phi[i]
            symmetric += even[reach, q, j] * (right + left)
            antisymmetric += odd[reach, q, j] * (right - left)
        total += weights[q] * (exp2(symmetric + antisymmetric) + exp2(symmetric - antisymmetric))
    return total


@kernel(flags=SUMS)
def _average_at_end(phi, i, shift, ends, weights):  # type: ignore[no-untyped-def]
    """The same, seen from the centre of another cell."""
    total, half = 0.0, weights.size
    for q in range(2 * half):
        exponent = -phi[i]
        for j in range(2 * _INWARDS + 1):
            exponent += ends[shift, q, j] * phi[i + shift + j - _INWARDS]
        total += weights[q - half if q >= half else half - 1 - q] * exp2(exponent)
    return total


@kernel(flags=SUMS)
def _sweep(logs, phi, averages, change, first, last, even, odd, ends, weights):  # type: ignore[no-untyped-def]
    """One step to phi = log rho_i - log average(e^{phi - phi_i}) for a run of cells that carry mass."""
    inner = min(first + _REACH, last)
    outer = max(last - _REACH, inner)
    if outer > inner:
        _averages(phi, inner, outer, even[_REACH], odd[_REACH], weights, averages)
    for i in range(first, last):
        if i < inner or i >= outer:
            reach = min(i - first, last - 1 - i, _REACH)
            if reach >= _INWARDS or last - first <= 2 * _INWARDS:
                averages[i] = _average(phi, i, reach, even, odd, weights)
            else:
                shift = (_INWARDS - reach) * (1 if reach == i - first else -1)
                averages[i] = _average_at_end(phi, i, shift, ends, weights)
        change[i] = logs[i] - phi[i] - np.log2(averages[i])
    for i in range(first, last):
        phi[i] += change[i]


@kernel(flags=SUMS)
def _invert(rows, even, odd, ends, weights, scratch, thread, threads):  # type: ignore[no-untyped-def]
    n = rows.shape[1]
    logs, phi, averages, change = scratch[thread]
    for row in range(thread, rows.shape[0], threads):
        values = rows[row]
        first = 0
        while first < n:
            if not values[first] > 1e-300:
                first += 1
                continue
            last, top = first, -np.inf
            while last < n and values[last] > 1e-300:
                logs[last] = phi[last] = np.log2(values[last])
                top = max(top, logs[last])
                last += 1
            before = 1.0
            for _ in range(_SWEEPS):
                _sweep(logs, phi, averages, change, first, last, even, odd, ends, weights)
                largest = 0.0
                for i in range(first, last):
                    if logs[i] > top - _TAIL:
                        largest = max(largest, abs(change[i]))
                if largest < _CONVERGED or _SAFETY * largest * largest < _CONVERGED * before:  # that is, the next one
                    break
                before = largest
            for i in range(first, last):
                if abs(change[i]) < _ACCEPTED:
                    values[i] = exp2(phi[i])
            first = last
