"""Measures: what is moved. Each knows its moments, its density, its samples, its cell averages and its tilted mean.

``base``: what every measure answers, and what follows from it. ``gaussian``, ``mixture``, ``solids`` (boxes, balls,
rings), ``particles``, ``sequence`` and ``density`` (cell averages in an affine frame): the measures. ``quadrature``,
``cell_averages``, ``ball_overlaps``, ``deposit``, ``smoothing``, ``particle_kernels``, ``kernel_sums``, ``solid_sums``,
``order``: what they share. Measures are values: attentions, flows and solvers read them, from any number of threads,
and never change them.
"""

from vlasov.measures.base import SAMPLINGS, How, Measure, Memory
from vlasov.measures.density import Density
from vlasov.measures.gaussian import Gaussian
from vlasov.measures.mixture import Mixture
from vlasov.measures.particles import Particles
from vlasov.measures.sequence import Sequence, in_sequence
from vlasov.measures.solids import Ball, Box, Ring

__all__ = [
    "SAMPLINGS",
    "Ball",
    "Box",
    "Density",
    "Gaussian",
    "How",
    "Measure",
    "Memory",
    "Mixture",
    "Particles",
    "Ring",
    "Sequence",
    "in_sequence",
]
