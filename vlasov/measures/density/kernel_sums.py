"""int (y, 1) k(<xi, y>) dmu(y) of a density on a grid: sums over the centres of its cells, x = origin + matrix z.

Such sums are spectrally accurate integrals of smooth functions. ReLU has a kink: where cells see it, it is smoothed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.compiled.workspace import Workspace
from vlasov.measures.density.point_values import at_centers
from vlasov.measures.density.smooth_relu import over_smooth_density, slopes
from vlasov.measures.density.tilts import check_evaluable
from vlasov.summing import Kernel, KernelSums, sum_up
from vlasov.tilting import Request

if TYPE_CHECKING:
    from vlasov.measures.density import Density

_TIGHTEST = 1e-13


def over_cells(
    density: Density, xi: Array, kernel: Kernel, request: Request, workspace: Workspace | None
) -> KernelSums:
    """Sums over the cells that carry mass: point values of a density that looks smooth, averages of one that jumps."""
    check_evaluable(density)
    cells, places = density.carrying
    values = at_centers(density, tails=False)
    smooth, masses = values is not density.values, values[cells] * density.volumes[cells]
    masses /= np.add.reduce(masses)
    points = map_rows(places, density.matrix)
    points += density.origin
    request = request._replace(method="auto") if request.method == "lattice" else request
    if kernel.name != "relu":
        return sum_up(points, masses, xi, kernel, request, workspace=workspace)
    found, steps = None, density.matrix * density.grid.steps  # the sides of a cell, as columns
    if smooth and density.dimension < 3 and not request.log_mass:
        found = over_smooth_density(points, masses, steps, xi, max(request.tolerance, _TIGHTEST))
    if found is None:
        found = sum_up(points, masses, xi, kernel, request._replace(covariance=False), workspace=workspace)
    return found._replace(second=slopes(points, masses, steps, xi)) if request.covariance else found
