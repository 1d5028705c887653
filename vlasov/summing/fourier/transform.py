"""From masses at the nodes of the sources to their potential at the nodes of the targets.

    Phi(xi) = sum_l G_l phi(<xi, y_l> + b),   phi' = tanh(z/2)/2,   phi(z) = -sum_k a_k / w_k cos(w_k z)

Nodes lie about zero on both sides, so that a wave falls into products of real ones, even and odd along each axis:

    cos(w (z_1 + z_2) + w b) = cos(w b) (cos cos - sin sin) - sin(w b) (sin cos + cos sin)

and on halves of the axes each block of these is a product of small matrices, one for each axis. Masses go to halves of
a coarser grid first, and the potential comes back from there (``stencils.halves``). On the line the even and the odd
part of phi(z + b) are matrices themselves, without a series.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import multiply
from vlasov.compiled.workspace import Workspace
from vlasov.jit import EXACT, kernel
from vlasov.summing.fourier import stencils
from vlasov.summing.fourier.plan import Plan
from vlasov.summing.fourier.series import Series, amplitudes, potential

_WORTH_THREADS = 4_000_000  # multiplications
_IN_CACHE = 2**14  # numbers


def transform(plan: Plan, masses: Array, workspace: Workspace) -> Array:
    """The potential at the targets' fine nodes, flat, of masses at those of the sources."""
    folds = [stencils.halves(plan.order, plan.kappa, plan.coarse, cells) for cells in plan.cells]
    masses = masses.reshape(plan.nodes)
    for axis, fold in enumerate(folds):
        masses = _fold(fold, masses, axis, plan.threads, workspace)
    found = _on_line(plan, masses) if plan.series is None else _by_series(plan, masses, plan.series, workspace)
    for axis in reversed(range(len(folds))):  # whole rows move at last, where there are most
        found = _unfold(folds[axis], found, axis, plan.threads, workspace)
    return found.reshape(-1)


def _fold(matrices: Array, values: Array, axis: int, threads: int, workspace: Workspace) -> Array:
    """The even and the odd part along an axis on their half nodes, one after the other."""
    shape, zero = values.shape, values.shape[axis] // 2
    split = values.reshape(math.prod(shape[:axis]), shape[axis], -1)
    parts = workspace.array("fourier.parts", (2, len(split), zero + 1, split.shape[2]))
    np.add(split[:, zero:], split[:, zero::-1], out=parts[0])
    np.subtract(split[:, zero:], split[:, zero::-1], out=parts[1])
    parts[0, :, 0] /= 2
    result = np.empty((len(split), 2, matrices.shape[1], split.shape[2]))
    for parity, matrix in enumerate(matrices):
        result[:, parity] = _along(matrix, parts[parity], threads, workspace)
    return result.reshape(*shape[:axis], -1, *shape[axis + 1 :])


def _unfold(matrices: Array, values: Array, axis: int, threads: int, workspace: Workspace) -> Array:
    """Back from the half nodes to those of the whole axis."""
    shape, zero = values.shape, matrices.shape[2] - 1
    split = values.reshape(math.prod(shape[:axis]), 2, shape[axis] // 2, -1)
    name = "fourier.odd_axis" if axis % 2 else "fourier.parts"  # one is read, the other written
    result = workspace.array(name, (len(split), 2 * zero + 1, split.shape[3]))
    for parity, matrix in enumerate(matrices):
        half = np.ascontiguousarray(split[:, parity])
        part = _along(matrix, half, threads, workspace, back=True)
        if parity == 0:
            result[:, zero:], result[:, zero::-1] = part, part
        else:
            result[:, zero:] += part
            result[:, zero::-1] -= part
    return result.reshape(*shape[:axis], -1, *shape[axis + 1 :])


def _along(matrix: Array, values: Array, threads: int, workspace: Workspace, *, back: bool = False) -> Array:
    """Multiply along the middle one of three axes, ``back``: by the transpose; the result lasts until the next call."""
    before, count, after = values.shape
    result = workspace.array("fourier.along", (before, matrix.size // count, after))
    threads = threads if result.size * count > _WORTH_THREADS else 1
    if before == after == 1:  # BLAS might add in another order with more threads
        np.einsum("ij,i->j" if back else "ij,j->i", matrix, values[0, :, 0], out=result[0, :, 0])
    elif after == 1:
        right = matrix if back else np.ascontiguousarray(matrix.T)
        multiply(values[:, :, 0], right[None, None], result.reshape(1, before, -1), threads)
    else:
        multiply(np.ascontiguousarray(matrix.T) if back else matrix, values[None], result, threads)
    return result


def _on_line(plan: Plan, masses: Array) -> Array:
    """The even and the odd part, each by one matrix, of which some rows are made at a time."""
    places = np.arange(plan.halves[0] + 1)
    halves, result = masses.reshape(2, -1), np.zeros((2, places.size))
    rows = max(1, _IN_CACHE // places.size)
    for start in range(0, places.size, rows):
        some = slice(start, start + rows)
        z = np.multiply.outer(places[some], places) * plan.phase_steps[0]
        if plan.bias:
            one, other = potential(z + plan.bias), potential(z - plan.bias)
            matrices = [(one + other) / 2, (one - other) / 2]
        else:
            matrices = [potential(z)]
        for part, matrix in enumerate(matrices):
            np.einsum("ij,j->i", matrix, halves[part], out=result[part, some])
    return result.reshape(-1)


def _by_series(plan: Plan, masses: Array, series: Series, workspace: Workspace) -> Array:
    """All blocks of parities, so many frequencies at a time."""
    d, counts = len(plan.halves), tuple(half + 1 for half in plan.halves)
    frequencies, sizes = amplitudes(series)
    scales = -sizes * np.cos(frequencies * plan.bias), sizes * np.sin(frequencies * plan.bias)
    split = [n for count in counts for n in (2, count)]
    masses, result = masses.reshape(split), np.zeros(split)
    blocks = [parity for parity in product((0, 1), repeat=d) if plan.bias or sum(parity) % 2 == 0]
    held = {parity: np.ascontiguousarray(masses[_block(parity)]) for parity in blocks}
    made: dict[tuple[int, float], _Waves] = {}
    for axis, key in enumerate(zip(counts, plan.phase_steps, strict=True)):
        if key not in made:
            made[key] = _Waves(*key, series, plan.stack, workspace, f"fourier.waves{axis}")
    axes = [made[key] for key in zip(counts, plan.phase_steps, strict=True)]
    for start in range(0, series.terms, plan.stack):
        terms = min(plan.stack, series.terms - start)
        for waves in made.values():
            waves.turn(terms)
        for parity in blocks:
            first = axes[0].scaled(parity[0], scales[sum(parity) % 2][start : start + terms])
            others = [waves.values[part, :terms] for waves, part in zip(axes[1:], parity[1:], strict=True)]
            found = _sum_waves(held[parity], first, others, plan.threads, workspace)
            result[_block(parity)] += found if sum(parity) < 2 else -found
    return result.reshape([2 * count for count in counts])


def _block(parity: tuple[int, ...]) -> tuple[int | slice, ...]:
    return tuple(entry for part in parity for entry in (part, slice(None)))


def _sum_waves(masses: Array, first: Array, others: list[Array], threads: int, workspace: Workspace) -> Array:
    """sum_k of the products with matrices along each axis: (t, k, s) for the first, (k, s, t) for the others."""
    shape, terms = masses.shape, first.shape[1]
    threads = threads if masses.size * terms * max(shape) > _WORTH_THREADS else 1
    found = workspace.array("fourier.last", (terms, masses.size // shape[-1], shape[-1]))
    multiply(masses.reshape(-1, shape[-1]), others[-1][None], found, threads)
    if len(shape) == 3:
        before, found = found.reshape(terms, *shape), workspace.array("fourier.middle", (terms, *shape))
        for k in range(terms):
            multiply(others[0][k], before[k : k + 1], found[k], threads)
    result = np.empty((1, shape[0], masses.size // shape[0]))
    multiply(first.reshape(shape[0], -1), found.reshape(1, 1, terms * shape[0], -1), result, threads)
    return result.reshape(shape)


class _Waves:
    """Cosines and sines of w_k h s t, with h the phase step, for so many frequencies at a time: (2, k, s, t)."""

    def __init__(self, count: int, step: float, series: Series, most: int, workspace: Workspace, name: str) -> None:
        self.values = workspace.array(name, (2, most, count, count))
        self._scaled = workspace.array(f"{name}.scaled", most * count * count)
        places = np.arange(count)
        angle = np.multiply.outer(places, places).reshape(-1) * (step * math.pi / series.period)
        self._last = np.stack([np.cos(angle), -np.sin(angle)])  # one step before the first frequency
        self._turn = np.stack([np.cos(2 * angle), np.sin(2 * angle)])

    def turn(self, terms: int) -> None:
        """Go on to the next frequencies."""
        flat = self.values.reshape(*self.values.shape[:2], -1)
        _turn(self._last, self._turn, flat, terms)

    def scaled(self, parity: int, scale: Array) -> Array:
        """The cosines, or the sines, times a number for each frequency: (t, k, s)."""
        count = self.values.shape[2]
        result = self._scaled[: count * scale.size * count].reshape(count, scale.size, count)
        _scale(self.values[parity], scale, result)
        return result


@kernel(flags=EXACT)
def _turn(last, turn, waves, terms):  # type: ignore[no-untyped-def]
    """Each row from the one before it, by the same angles."""
    x, y, cosine, sine = last[0], last[1], turn[0], turn[1]
    for k in range(terms):
        new_x, new_y = waves[0, k], waves[1, k]
        for i in range(cosine.size):
            new_x[i] = x[i] * cosine[i] - y[i] * sine[i]
            new_y[i] = y[i] * cosine[i] + x[i] * sine[i]
        x, y = new_x, new_y
    last[0], last[1] = x, y


@kernel(flags=EXACT)
def _scale(waves, scale, result):  # type: ignore[no-untyped-def]
    """result[t, k, s] = scale[k] waves[k, t, s]."""
    for t in range(len(result)):
        for k in range(scale.size):
            row, wave = result[t, k], waves[k, t]
            for s in range(row.size):
                row[s] = scale[k] * wave[s]
