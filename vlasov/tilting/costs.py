"""What each method costs: all the numbers by which one is chosen over another, and one grid over another.

They are nanoseconds of one thread of a server of 2024, so that the choice, and with it the result, is the same on every
machine and for any number of threads. ``python benchmarks/costs.py`` measures them anew and prints both side by side.
"""

from __future__ import annotations

from typing import NamedTuple


class AllPairs(NamedTuple):
    """A call, a target, and a pair: so much and so much more for each dimension."""

    start: float
    target: float
    pair: float
    coordinate: float


class Laplace(NamedTuple):
    """A source and a target by d and by the order of the stencils; whatever else there is, each.

    Sources and targets may be sorted, sources multiplied by an exponential; products of matrices multiply, nodes are
    summed over parts of the sources and after so many chunks, and matrices hold exponentials.
    """

    start: float
    spread: dict[int, tuple[float, ...]]
    gather: dict[int, tuple[float, ...]]
    sort: float
    weight: float
    multiply: float
    node: float
    flush: float
    exponential: float


class Line(NamedTuple):
    """A source, its weight, a target; an expansion in the tilt, and a node of the sources in it."""

    start: float
    source: float
    weight: float
    target: float
    expansion: float
    node: float


class Lattice(NamedTuple):
    """A cell that is folded into nodes on the line, or whose mass is tilted; an exponential of a matrix."""

    start: float
    fold: float
    tilt: float
    exponential: float


class Slabs(NamedTuple):
    """Of causal sums: a target, a pair; a slab, a product of matrices, a node that is summed; a point on the line."""

    start: float
    target: float
    pair: float
    slab: float
    multiply: float
    node: float
    line: tuple[float, ...]


ALL_PAIRS = AllPairs(start=20e3, target=20.0, pair=0.13, coordinate=0.05)
LAPLACE = Laplace(
    start=130e3,
    spread={1: (4.0, 6.0, 8.0), 2: (7.0, 15.5, 25.0), 3: (43.0, 115.0, 260.0)},
    gather={1: (6.0, 8.0, 10.0), 2: (12.5, 27.0, 38.0), 3: (40.0, 160.0, 345.0)},
    sort=4.0,
    weight=5.0,
    multiply=0.025,
    node=1.0,
    flush=0.25,
    exponential=1.0,
)
LINE = Line(start=70e3, source=1.3, weight=1.2, target=1.4, expansion=500.0, node=1.4)
LATTICE = Lattice(start=100e3, fold=2.0, tilt=15.0, exponential=5.0)
SLABS = Slabs(start=300e3, target=12.0, pair=0.25, slab=400.0, multiply=0.02, node=0.6, line=(4.0, 6.0, 9.0))

# Work from which on a second thread is worth waking, which takes 30 us or more.
THREADS_ALL_PAIRS, THREADS_LAPLACE, THREADS_ELSEWHERE = 150e3, 400e3, 200e3
# All pairs win below, whatever a plan says: it takes 0.1 ms to make. By d, and for cells of a grid.
WORTH_A_PLAN = {1: 75e3, 2: 180e3, 3: 400e3}
WORTH_A_PLAN_ON_GRIDS = 100_000  # pairs
WORTH_PEELING = 5e6  # at stake, before anyone looks for outliers
