"""Sums with other kernels than the normalised exponential, on which attention without normalisation rests.

    S(xi) = int (y, 1) k(<xi, y>) dmu(y),   k = sigmoid (with a bias), ReLU, or the exponential itself

Measures call this door with weighted points, one layer above ``vlasov.tilting``. Behind it:

    evaluate     chooses: all pairs, or a method of linear cost if that promises to be faster
    all_pairs    exact up to rounding, any d, any kernel but the exponential, which goes by the tilted mean
    fourier      the sigmoid at linear cost, d <= 3
    half_planes  ReLU on the line and in the plane: exact at the cost of sorting by angle
    prefixes     causal averages: each target sees the first so many of the sources
    results      what is asked, and what comes back
"""

from vlasov.summing.evaluate import exponential, sum_up
from vlasov.summing.prefixes import SumOfParts, average_prefixes
from vlasov.summing.results import KERNELS, Kernel, KernelSums

__all__ = ["KERNELS", "Kernel", "KernelSums", "SumOfParts", "average_prefixes", "exponential", "sum_up"]
