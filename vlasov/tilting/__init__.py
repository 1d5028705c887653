"""The primitive of the whole package: the exponentially tilted mean of a measure.

    Z(xi) = int e^{<xi, y>} dmu(y),   m(xi) = grad log Z,   C(xi) = hess log Z

Here mu is a sum of weighted points. ``tilt`` chooses how to evaluate it; measures with closed forms return the same
``Tilted`` from their own method ``tilted``.
"""

from vlasov.compiled.workspace import Workspace
from vlasov.tilting.choose import METHODS, Field, Head, Tilted, add_up, attend, tilt
from vlasov.tilting.many import attend_heads, attend_systems

__all__ = [
    "METHODS",
    "Field",
    "Head",
    "Tilted",
    "Workspace",
    "add_up",
    "attend",
    "attend_heads",
    "attend_systems",
    "tilt",
]
