"""Densities on tensor grids in an affine frame: cell averages, as the finite-volume solver holds them.

``density``: the measure. ``grid``: the cells. ``moments``: mass, mean, covariance. ``tilts``: sums over cells, with
quadratic tilts too; ``kernel_sums``, ``smooth_relu``: with other kernels. ``point_values``: values at centres behind
averages. ``regrid``: averages over other cells. Called by the finite-volume solver, by
``vlasov.solvers.dataset`` and by all that is made of its runs.
"""

from vlasov.measures.density.density import Density

__all__ = ["Density"]
