"""The primitive of the whole package: the exponentially tilted mean of a measure.

    Z(xi) = int e^{<xi, y>} dmu(y),   m(xi) = grad log Z,   C(xi) = hess log Z

Here mu is a sum of weighted points, or cell averages on a uniform grid. Measures call this door, and ``vlasov.flow``
for many small systems; measures with closed forms return the same ``Tilted``. Behind it:

    evaluate -> choose     points: all pairs, or the plan of a method of linear cost if that promises to be faster
    grid                   densities: the same for ``lattice``, or else their cells are points
    all_pairs              exact up to rounding, any d, any tilt
    laplace, line          linear cost for d = 2, 3 and for d = 1, with a bound that is known before anything is summed
    lattice                densities on uniform grids
    prefixes               causal sums: each target sees the first so many of the sources
    nodes, stencils        what laplace and lattice share
    costs, promise         by what methods are compared, and what a plan promises
"""

from vlasov.compiled.workspace import Workspace
from vlasov.tilting.evaluate import attend, attend_systems, tilt
from vlasov.tilting.prefixes import Counts, attend_prefixes, tilt_prefixes
from vlasov.tilting.results import METHODS, Field, Head, Request, Sums, Tilted, add_up

__all__ = [
    "METHODS",
    "Counts",
    "Field",
    "Head",
    "Request",
    "Sums",
    "Tilted",
    "Workspace",
    "add_up",
    "attend",
    "attend_prefixes",
    "attend_systems",
    "tilt",
    "tilt_prefixes",
]
