"""From masses at the nodes of the sources to their potential at the nodes of the targets.

    Phi(xi) = sum_l G_l phi(<xi, y_l> + b),   phi' = tanh(z/2)/2,   phi(z) = -sum_k a_k / w_k cos(w_k z)

Nodes lie about zero on both sides, so that a wave falls into products of real ones, even and odd along each axis:

    cos(w (z_1 + z_2) + w b) = cos(w b) (cos cos - sin sin) - sin(w b) (sin cos + cos sin)

and on halves of the axes each block of these is a product of small matrices, one for each axis. Masses go to halves of
a coarser grid first, and the potential comes back from there (``stencils.halves``). On the line the even and the odd
part of phi(z + b) are matrices themselves, without a series.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import multiply
from vlasov.compiled.workspace import Workspace
from vlasov.jit import EXACT, kernel
from vlasov.summing.fourier import stencils
from vlasov.summing.fourier.plan import Plan
from vlasov.summing.fourier.series import Series, amplitudes, potential

_WORTH_THREADS = 10_000_000  # multiplications


def transform(plan: Plan, grids: Array, workspace: Workspace) -> Array:
    """The potential at the targets' fine nodes, flat, of the sum of the grids (parts, nodes), left in the first."""
    threads, d = plan.threads, len(plan.cells)
    folds = [stencils.halves(plan.order, plan.kappa, plan.coarse, cells) for cells in plan.cells]
    matrices = [fold.reshape(-1, fold.shape[2]) for fold in folds]
    masses = _along(matrices[0], grids.reshape(plan.parts, *plan.nodes), 0, threads)
    for axis in range(1, d):
        masses = _along(matrices[axis], masses, axis, threads)
    found = _on_line(plan, masses) if plan.series is None else _by_series(plan, masses, plan.series, workspace)
    for axis in range(d):
        found = _along(np.ascontiguousarray(matrices[axis].T), found[None] if axis == 0 else found, axis, threads)
    return found.reshape(-1)


def _along(matrix: Array, values: Array, axis: int, threads: int) -> Array:
    """Multiply along an axis; for the first one, ``values`` have one axis more before it, which is summed over."""
    rows, columns = matrix.shape
    shape = values.shape[1:] if axis == 0 else values.shape
    result = np.empty((*shape[:axis], rows, *shape[axis + 1 :]))
    threads = threads if result.size * columns > _WORTH_THREADS else 1
    if axis and axis == len(shape) - 1:
        right = np.ascontiguousarray(matrix.T)[None, None]
        multiply(values.reshape(-1, columns), right, result.reshape(1, -1, rows), threads)
    else:
        before = shape[0] if axis else 1
        parts = len(values) if axis == 0 else 1
        multiply(matrix, values.reshape(parts, before, columns, -1), result.reshape(before, rows, -1), threads)
    return result


def _on_line(plan: Plan, masses: Array) -> Array:
    """The even and the odd part, each by one matrix."""
    places = np.arange(plan.halves[0] + 1)
    z = np.multiply.outer(places, places) * plan.phase_steps[0]
    one, other = potential(z + plan.bias) / 2, potential(z - plan.bias) / 2
    result = np.zeros_like(masses)
    size = places.size
    for part, matrix in enumerate((one + other, one - other) if plan.bias else (one + other,)):
        held = slice(part * size, (part + 1) * size)
        multiply(matrix, masses[held].reshape(1, 1, -1, 1), result[held].reshape(1, -1, 1), 1)
    return result


class _Waves(NamedTuple):
    """Cosines and sines of w_k s t on halves of an axis, (2, k, s, t)."""

    values: Array


def _by_series(plan: Plan, masses: Array, series: Series, workspace: Workspace) -> Array:
    """All blocks of parities, so many frequencies at a time."""
    d, counts = len(plan.halves), tuple(h + 1 for h in plan.halves)
    frequencies, sizes = amplitudes(series)
    even, odd = -sizes * np.cos(frequencies * plan.bias), sizes * np.sin(frequencies * plan.bias)
    split = [n for count in counts for n in (2, count)]
    masses, result = masses.reshape(split), np.zeros(split)
    blocks = [parity for parity in product((0, 1), repeat=d) if plan.bias or sum(parity) % 2 == 0]
    held = {p: np.ascontiguousarray(masses[_block(p)]) for p in blocks}
    for start in range(0, len(frequencies), plan.stack):
        some = slice(start, start + plan.stack)
        waves = _waves(plan, frequencies[some], workspace)
        first = [np.ascontiguousarray(part.transpose(1, 0, 2)) for part in waves[0]]
        for scale, rest in ((even[some], 0), (odd[some], 1)):
            if rest and not plan.bias:
                continue
            last = [part * scale[:, None, None] for part in waves[-1]]
            for parity in blocks:
                if sum(parity) % 2 == rest:
                    stacks = [first[parity[0]], *(waves[axis][parity[axis]] for axis in range(1, d - 1))]
                    found = _sum_waves(held[parity], [*stacks, last[parity[-1]]], plan.threads)
                    result[_block(parity)] += found if sum(parity) < 2 else -found
    return result.reshape([2 * count for count in counts])


def _block(parity: tuple[int, ...]) -> tuple[int | slice, ...]:
    return tuple(entry for part in parity for entry in (part, slice(None)))


def _sum_waves(masses: Array, stacks: list[Array], threads: int) -> Array:
    """sum_k of the products with matrices along each axis; stacks are (t, k, s) for the first, (k, s, t) for others."""
    shape, terms = masses.shape, stacks[0].shape[1]
    threads = threads if masses.size * terms * max(shape) > _WORTH_THREADS else 1
    found = np.empty((terms, masses.size // shape[-1], shape[-1]))
    multiply(masses.reshape(-1, shape[-1]), stacks[-1][None], found, threads)
    if len(shape) == 3:
        before, found = found.reshape(terms, *shape), np.empty((terms, *shape))
        for k in range(terms):
            multiply(stacks[1][k], before[k : k + 1], found[k], threads)
    result = np.empty((1, shape[0], masses.size // shape[0]))
    multiply(stacks[0].reshape(shape[0], -1), found.reshape(1, 1, terms * shape[0], -1), result, threads)
    return result.reshape(shape)


def _waves(plan: Plan, frequencies: Array, workspace: Workspace) -> list[Array]:
    """For each axis cosines and sines of w_k h s t, h the phase step: (2, k, s, t). Equal axes share them."""
    made: dict[tuple[int, float], Array] = {}
    for axis, key in enumerate(zip(plan.halves, plan.phase_steps, strict=True)):
        if key not in made:
            places = np.arange(key[0] + 1)
            z = np.multiply.outer(places, places).reshape(-1) * key[1]
            made[key] = workspace.array(f"fourier.waves{axis}", (2, len(frequencies), z.size))
            for part, function in zip(made[key], (np.cos, np.sin), strict=True):
                function(frequencies[0] * z, out=part[0])
            if len(frequencies) > 1:
                turn = (frequencies[1] - frequencies[0]) * z
                _turn(*made[key], np.cos(turn), np.sin(turn))
            made[key] = made[key].reshape(2, len(frequencies), places.size, places.size)
    return [made[key] for key in zip(plan.halves, plan.phase_steps, strict=True)]


@kernel(flags=EXACT)
def _turn(cosines, sines, cosine, sine):  # type: ignore[no-untyped-def]
    """Each row from the one before it, by the same angles."""
    for k in range(1, len(cosines)):
        x, y, new_x, new_y = cosines[k - 1], sines[k - 1], cosines[k], sines[k]
        for i in range(cosine.size):
            new_x[i] = x[i] * cosine[i] - y[i] * sine[i]
            new_y[i] = y[i] * cosine[i] + x[i] * sine[i]
