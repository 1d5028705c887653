"""Close densities: W_2 along the straight line between them.

Mass flows from f to g with one flux J, div J = f - g, while the density is (1 - s) f + s g. That is an admissible path,

    W_2^2 <= min_J int |J|^2 / theta = int (f - g) phi,   -div(theta grad phi) = f - g,   theta = (f - g) / log(f / g)

and nearly the shortest where displacements are small against the scale on which the densities vary. Lattices resolve
displacements far below their spacing in this way, which exact transport between lattice points does not.
"""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array
from vlasov.postprocess.transport.lattices import Ready, deposits, lattice_in
from vlasov.postprocess.transport.thresholds import FAINT, LINEAR_POINTS, NOISY

_FLOOR = 1e-13  # of the largest mass: keeps the equation solvable where there is none
_RATIO = 4.0  # of densities at which their difference counts no further: tails of little mass are noise


def between(ready: Ready) -> Array | None:
    """W_2, its least and its most, on two fine lattices; None where their extents are unlike."""
    if not ready.shared:
        return None
    box = ready.boxes[0]
    costs, variances, bending = [], [], 0.0
    for count in LINEAR_POINTS[box.low.size]:
        points, variance = deposits(ready, count)
        lattice = lattice_in(box, count)
        masses = [np.zeros(lattice.counts) for _ in points]
        for mass, own in zip(masses, points, strict=True):
            mass[tuple(np.rint((own.places - lattice.low) / lattice.steps).astype(np.int64).T)] = own.weights
        cost, bent = linearised(masses[0], masses[1], lattice.steps)
        costs.append(cost)
        variances.append(variance)
        bending = max(bending, bent)
    step = variances[1] * (costs[1] - costs[0]) / (variances[0] - variances[1])
    value = max(costs[1] + step, 0.0)
    change = max(abs(costs[1] - costs[0]), abs(step))
    square = 3 * variances[1] / box.low.size  # of the finer lattice's spacing
    noisy = change > NOISY * max(costs) or max(costs) < FAINT * square
    return ready.interval(value, 2 * change + bending, max(*costs, value) if noisy else 0.0, 2)


def linearised(f: Array, g: Array, steps: Array) -> tuple[float, float]:
    """The bound on W_2^2 from masses f and g on one lattice, and how much the path may be longer than the shortest."""
    from scipy.sparse import coo_matrix, diags
    from scipy.sparse.linalg import spsolve

    f, g = f / f.sum(), g / g.sum()
    theta = logarithmic_mean(f, g) + _FLOOR * max(float(f.max()), float(g.max()))
    index = np.arange(f.size).reshape(f.shape)
    rows, columns, weights = [], [], []
    for k, step in enumerate(steps):
        low, high = (
            tuple(slice(a, b) if l == k else slice(None) for l in range(f.ndim)) for a, b in ((0, -1), (1, None))
        )
        rows.append(index[low].ravel())
        columns.append(index[high].ravel())
        weights.append(((theta[low] + theta[high]) / (2 * step**2)).ravel())
    i, j, w = np.concatenate(rows), np.concatenate(columns), np.concatenate(weights)
    off = coo_matrix((w, (i, j)), shape=(f.size, f.size)).tocsr()
    off = off + off.T
    laplacian = (diags(np.asarray(off.sum(axis=1)).ravel()) - off).tocsc()
    source = (f - g).ravel()
    phi = np.zeros(f.size)
    phi[1:] = spsolve(laplacian[1:, 1:], source[1:], permc_spec="MMD_AT_PLUS_A")  # one value is free
    cost = float(source @ phi)
    squares = (phi[i] - phi[j]) ** 2
    # At the start of the path the density is f, at its end g: what their energies differ by, the path is bent.
    per_mass = w * squares / (theta.ravel()[i] + theta.ravel()[j])
    ends = []
    for mass in (f, g):
        limited = np.clip(mass, theta / _RATIO, theta * _RATIO).ravel()
        ends.append(float(per_mass @ (limited[i] + limited[j])))
    return cost, abs(ends[0] - ends[1]) / 2 + abs(sum(ends) / 2 - cost)


def logarithmic_mean(f: Array, g: Array) -> Array:
    """(f - g) / log(f / g), f where both agree, zero where one is."""
    larger, smaller = np.maximum(f, g), np.minimum(f, g)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(larger > 0, smaller / np.where(larger > 0, larger, 1.0), 1.0)
        far = (1 - ratio) / -np.log(ratio)
    gap = 1 - ratio
    near = 1 - gap / 2 - gap**2 / 12 - gap**3 / 24
    return larger * np.where(gap < 1e-3, near, np.where(ratio > 0, far, 0.0))
