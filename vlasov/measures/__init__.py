"""Measures: what is moved. Each knows its moments, its density, how to be sampled and how to be averaged over cells."""

from vlasov.measures.base import SAMPLINGS, Measure
from vlasov.measures.density import Density
from vlasov.measures.gaussian import Gaussian
from vlasov.measures.mixture import Mixture
from vlasov.measures.particles import Particles
from vlasov.measures.solids import Ball, Box, Ring

__all__ = ["SAMPLINGS", "Ball", "Box", "Density", "Gaussian", "Measure", "Mixture", "Particles", "Ring"]
