"""Schemes as data: how face values are reconstructed, and how time is stepped.

References: Jiang, Shu (1996) for WENO5; Borges, Carmona, Costa, Don (2008) for its weights Z; van Leer (1977) for the
monotonised central limiter; Shu, Osher (1988) for SSPRK3; Hairer, Norsett, Wanner, section II.6, for states inside a
step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vlasov.checks import Array


class Tableau(NamedTuple):
    """Explicit Runge-Kutta: y_i = y + dt sum_j a_ij F(t + c_j dt, y_j), and states at a share s <= 1 of the step.

        y(t + s dt) = y + dt sum_i b_i(s) F(t + c_i dt, y_i),   b_i(s) = sum_k growth[i][k] s^{k+1}

    For s < 1 the order is one less than that of the step: errors are of the size that steps add up to.
    """

    a: tuple[tuple[float, ...], ...]
    c: tuple[float, ...]
    growth: tuple[tuple[float, ...], ...]

    def weights(self, share: float) -> Array:
        """b(s)."""
        growth = np.array(self.growth)
        return growth @ share ** np.arange(1, growth.shape[1] + 1)

    @property
    def b(self) -> tuple[float, ...]:
        """Weights of the stages in the whole step."""
        return tuple(self.weights(1.0).tolist())

    @property
    def stages(self) -> int:
        """How often F is evaluated in a step."""
        return len(self.c)


RK4 = Tableau(
    a=((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)),
    c=(0.0, 1 / 2, 1 / 2, 1.0),
    growth=((1.0, -3 / 2, 2 / 3), (0.0, 1.0, -2 / 3), (0.0, 1.0, -2 / 3), (0.0, -1 / 2, 2 / 3)),
)
SSPRK3 = Tableau(
    a=((), (1.0,), (1 / 4, 1 / 4)), c=(0.0, 1.0, 1 / 2), growth=((1.0, -5 / 6), (0.0, 1 / 6), (0.0, 2 / 3))
)


@dataclass(frozen=True)
class Scheme:
    """A reconstruction of face values together with a tableau.

    Corrected fluxes are fourth-order means of the product f u over a face, <f u> = <f><u> + h^2/12 f_t u_t + O(h^4) for
    each transversal direction t; others are <f><u>, of second order.
    """

    face: Any  # a compiled function of six cells, or the name of one in ``reconstruction``, which imports Numba
    order: int  # of the face values where the density is smooth
    tableau: Tableau
    corrected: bool

    @property
    def compiled(self) -> Any:
        """Return the compiled function of six cells."""
        from vlasov.solvers.finite_volume import reconstruction

        return getattr(reconstruction, self.face) if isinstance(self.face, str) else self.face


SCHEMES = {
    "upwind5": Scheme("upwind5", order=5, tableau=RK4, corrected=True),
    "weno5": Scheme("weno5", order=5, tableau=RK4, corrected=True),
    "muscl": Scheme("muscl", order=2, tableau=SSPRK3, corrected=False),
    "upwind": Scheme("upwind", order=1, tableau=SSPRK3, corrected=False),
}
