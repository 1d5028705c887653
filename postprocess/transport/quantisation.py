"""How far n places are from a measure, whatever their weights: the part of W_p that n tokens cannot resolve."""

from __future__ import annotations

from vlasov.measures import Measure, Particles
from vlasov.postprocess.transport.atoms import posed


def quantisation(cloud: Particles, density: Measure, p: float) -> float:
    """Return (int min_i |x_i - y|^p dnu(y))^{1/p}, which no weights at the places x_i go below.

    d <= 3. Sub-cells of the density stand for it; what these hide is subtracted.
    """
    return posed(cloud, density, p).floor()
