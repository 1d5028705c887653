"""The primitive of the whole package: the exponentially tilted mean of a measure.

    Z(xi) = int e^{<xi, y>} dmu(y),   m(xi) = grad log Z,   C(xi) = hess log Z

Here mu is a sum of weighted points, or cell averages on a uniform grid (``grid.evaluate``). How a sum is evaluated is
chosen here; measures with closed forms return the same ``Tilted``. Measures call this door, and the particle solvers.
"""

from vlasov.compiled.workspace import Workspace
from vlasov.tilting.evaluate import attend, attend_systems, tilt
from vlasov.tilting.results import METHODS, Field, Head, Request, Sums, Tilted, add_up

__all__ = [
    "METHODS",
    "Field",
    "Head",
    "Request",
    "Sums",
    "Tilted",
    "Workspace",
    "add_up",
    "attend",
    "attend_systems",
    "tilt",
]
