"""Schemes as data: how face values are reconstructed, and how time is stepped.

References: Jiang, Shu (1996) for WENO5; Borges, Carmona, Costa, Don (2008) for its weights Z; van Leer (1977) for the
monotonised central limiter; Shu, Osher (1988) for SSPRK3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from vlasov.solvers.finite_volume.reconstruction import muscl, upwind, upwind5, weno5


class Tableau(NamedTuple):
    """Explicit Runge-Kutta: y_i = y + dt sum_j a_ij F(t + c_j dt, y_j), y_new = y + dt sum_i b_i F(t + c_i dt, y_i)."""

    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    c: tuple[float, ...]

    @property
    def stages(self) -> int:
        """How often F is evaluated in a step."""
        return len(self.b)


RK4 = Tableau(
    a=((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)), b=(1 / 6, 1 / 3, 1 / 3, 1 / 6), c=(0.0, 1 / 2, 1 / 2, 1.0)
)
SSPRK3 = Tableau(a=((), (1.0,), (1 / 4, 1 / 4)), b=(1 / 6, 1 / 6, 2 / 3), c=(0.0, 1.0, 1 / 2))


@dataclass(frozen=True)
class Scheme:
    """A reconstruction of face values together with a tableau.

    Corrected fluxes are fourth-order means of the product f u over a face, <f u> = <f><u> + h^2/12 f_t u_t + O(h^4) for
    each transversal direction t; others are <f><u>, of second order.
    """

    face: Any  # a compiled function of six cells, see ``reconstruction``
    order: int  # of the face values where the density is smooth
    tableau: Tableau
    corrected: bool


SCHEMES = {
    "upwind5": Scheme(upwind5, order=5, tableau=RK4, corrected=True),
    "weno5": Scheme(weno5, order=5, tableau=RK4, corrected=True),
    "muscl": Scheme(muscl, order=2, tableau=SSPRK3, corrected=False),
    "upwind": Scheme(upwind, order=1, tableau=SSPRK3, corrected=False),
}
