"""What a Fourier sum costs, in nanoseconds of one thread; see ``vlasov.tilting.costs``.

Sources, targets and products of matrices cost what they cost there. ``python benchmarks/costs.py`` measures both.
"""

from __future__ import annotations

from typing import NamedTuple

from vlasov.tilting.costs import LAPLACE


class Fourier(NamedTuple):
    """A source and a target by d and order; a call; an entry of a wave; one of a potential in closed form."""

    start: float
    spread: dict[int, tuple[float, ...]]
    gather: dict[int, tuple[float, ...]]
    wave: float
    potential: float


FOURIER = Fourier(
    start=300e3,
    spread={1: (2.2, 4.5, 7.0), **LAPLACE.spread},
    gather={1: (4.0, 8.0, 12.0), **LAPLACE.gather},
    wave=1.0,
    potential=5.0,
)
