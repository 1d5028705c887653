"""Mass, mean and covariance of cell averages on a tensor grid, and how much of the variance is the cells' own."""

from __future__ import annotations

import math
from functools import cached_property
from operator import gt, lt

import numpy as np

from vlasov.checks import Array
from vlasov.measures.density.grid import TensorGrid


class CellMoments:
    """Of ``values`` on a grid, in the grid's coordinates; see ``Density`` for how averages are read."""

    def __init__(self, values: Array, grid: TensorGrid) -> None:
        self.values, self.grid = values, grid

    @cached_property
    def mass(self) -> float:
        """The integral of the density."""
        return float((self._integrals[0,] * self.grid.widths[0]).sum())

    @cached_property
    def mean(self) -> Array:
        """Shape (d,)."""
        return np.array([self._marginal(k) @ center for k, center in enumerate(self.grid.centers)])

    @cached_property
    def covariance(self) -> Array:
        """Of the centres, plus h^2 / 12 in cells of non-uniform axes, less h^2 / 12 along uniform ones."""
        inside_cells = np.array(
            [
                0.0 if uniform else float(self._marginal(k) @ width**2)
                for k, (uniform, width) in enumerate(zip(self.grid.uniform, self.grid.widths, strict=True))
            ]
        )
        return self._of_centers + np.diag((inside_cells - self.smoothing**2) / 12)

    @property
    def covariance_of_steps(self) -> Array:
        """That of the piecewise constant density: of the centres, plus h^2 / 12 along all axes."""
        inside_cells = [float(self._marginal(k) @ width**2) for k, width in enumerate(self.grid.widths)]
        return self._of_centers + np.diag(inside_cells) / 12

    @cached_property
    def smoothing(self) -> Array:
        """Widths of the cells that smooth the density, zero along axes without Sheppard's correction; shape (d,)."""
        pairs = zip(self.grid.uniform, self.grid.widths, strict=True)
        widths = np.array([width.mean() if uniform else 0.0 for uniform, width in pairs])
        corrected = self._of_centers - np.diag(widths**2 / 12)
        return widths if np.linalg.eigvalsh(corrected)[0] >= 0 else np.zeros(len(widths))

    @cached_property
    def _of_centers(self) -> Array:
        widths = self.grid.widths
        away = [center - mean for center, mean in zip(self.grid.centers, self.mean, strict=True)]
        result = np.empty((len(away), len(away)))
        for k, offsets in enumerate(away):
            result[k, k] = self._marginal(k) @ offsets**2
            for l in range(k):
                masses = self._integrals[l, k] @ (widths[k] / self.mass * offsets)
                result[k, l] = result[l, k] = (widths[l] * away[l]) @ masses
        return result

    def _marginal(self, k: int) -> Array:
        """Masses summed over all other axes, relative to the total mass."""
        return self._integrals[k,] * (self.grid.widths[k] / self.mass)

    @cached_property
    def _integrals(self) -> dict[tuple[int, ...], Array]:
        """Values integrated over all axes but (k,), or but (k, l), k < l: one pass over them for each pair."""
        axes = tuple(range(self.values.ndim))
        found = {axes: self.values}

        def integral(kept: tuple[int, ...]) -> Array:
            if kept not in found:
                left = next(k for k in reversed(axes) if k not in kept)
                whole = tuple(sorted((*kept, left)))
                before, after = (math.prod(self.values.shape[k] for k in whole if side(k, left)) for side in (lt, gt))
                parts = integral(whole).reshape(before, -1, after)
                sums = np.einsum("bka,k->ba", parts, self.grid.widths[left])
                found[kept] = sums.reshape([self.values.shape[k] for k in kept])
            return found[kept]

        wanted = [(k, l) for k in axes for l in axes[k + 1 :]] + [(k,) for k in axes]
        return {kept: integral(kept) for kept in wanted}
