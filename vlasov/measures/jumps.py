"""Densities that jump from cell to cell, alone or in mixtures: whether there is one, and the same in smaller cells.

Quadrature takes the centres of cells, however many nodes are asked for: only smaller cells know what that neglects.
"""

from __future__ import annotations

import numpy as np

from vlasov.measures.base import Measure
from vlasov.measures.density import Density
from vlasov.measures.mixture import Mixture


def jumps(measure: Measure) -> bool:
    """Whether there is a density among the parts that does not look smooth."""
    if isinstance(measure, Mixture):
        return any(jumps(part) for part in measure.components)
    return isinstance(measure, Density) and not measure.looks_smooth


def cut(measure: Measure, pieces: int) -> Measure:
    """The same measure, each cell of a density that jumps cut into so many along each axis."""
    if isinstance(measure, Mixture) and jumps(measure):
        return Mixture([cut(part, pieces) for part in measure.components], measure.weights)
    if pieces == 1 or not isinstance(measure, Density) or measure.looks_smooth:
        return measure
    counts = [np.arange(axis.size) for axis in measure.edges]
    edges = [
        np.interp(np.arange(pieces * count[-1] + 1) / pieces, count, axis)
        for count, axis in zip(counts, measure.edges, strict=True)
    ]
    values = measure.values
    for axis in range(values.ndim):
        values = np.repeat(values, pieces, axis)
    return Density(values, edges, origin=measure.origin, matrix=measure.matrix)
