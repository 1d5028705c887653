"""int (y, 1) k(<xi, y>) dmu(y) of a density on a grid: sums over the centres of its cells, x = origin + matrix z."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.compiled.workspace import Workspace
from vlasov.summing import Kernel, KernelSums, sum_up
from vlasov.tilting import Request

if TYPE_CHECKING:
    from vlasov.measures.density import Density


def over_cells(
    density: Density, xi: Array, kernel: Kernel, request: Request, workspace: Workspace | None
) -> KernelSums:
    """Sums over the cells that carry mass, with point values times volumes."""
    cells, places = density.carrying
    masses = density.point_values[cells] * density.volumes[cells]
    points = map_rows(places, density.matrix)
    points += density.origin
    request = request._replace(method="auto") if request.method == "lattice" else request
    return sum_up(points, masses / np.add.reduce(masses), xi, kernel, request, workspace=workspace)
