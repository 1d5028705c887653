"""The reference that stands for the limit of a mean-field study, and how many nodes or cells it may have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from vlasov.errors import InputError
from vlasov.measures import Density, Gaussian, Particles, Sequence as Ordered
from vlasov.postprocess.moments import stays_gaussian
from vlasov.problem import Problem
from vlasov.solvers.replicas import TimeGrid

REFERENCES = ("auto", "gaussian", "quantile", "quadrature", "finite-volume")
CELLS = {1: (64, 128, 256, 512, 1024), 2: (32, 64, 128, 256), 3: (16, 24, 32, 48)}  # per axis, by d
_PER_AXIS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # nodes that are tried, one after the other
_MOST_NODES = 60_000


class Choice(NamedTuple):
    """A reference: its kind, the nodes or cells per axis (zero for a Gaussian), and the steps of all clouds."""

    kind: str
    nodes: int
    grid: TimeGrid

    def plain(self) -> list[Any]:
        """Return the choice as plain values."""
        return [self.kind, self.nodes, *vars(self.grid).values()]

    @classmethod
    def from_plain(cls, plain: Sequence[Any]) -> Choice:
        """Return the choice that ``plain`` described."""
        kind, nodes, *grid = plain
        return cls(kind, nodes, TimeGrid(*map(tuple, grid)))


def kind_of(problem: Problem, reference: str) -> str:
    """Return the reference, the best one for "auto"; raise InputError where it does not fit the problem."""
    initial = problem.start
    if reference == "auto":
        if isinstance(initial, Density):  # no nodes are finer than its cells
            return "finite-volume"
        return "gaussian" if stays_gaussian(problem) else "quadrature"
    needs = ""
    if reference == "gaussian" and not isinstance(initial, Gaussian):
        needs = f"a Gaussian initial measure but this is a {initial.kind}"
    elif reference == "gaussian" and not stays_gaussian(problem):
        needs = f"Gaussians that stay Gaussian, not {problem.block.kind}"
    elif reference == "quantile" and problem.dimension != 1:
        needs = f"d = 1 but the problem has d = {problem.dimension}"
    if needs:
        raise InputError(f'"{reference}" needs {needs}; use "auto"', "reference")
    return reference


def ladder(problem: Problem, kind: str) -> list[int]:
    """Return numbers of nodes per axis, increasing, as many as memory and patience allow."""
    initial, d = problem.start, problem.dimension
    if kind == "gaussian":
        return [0]
    laws = initial.measures if isinstance(initial, Ordered) and problem.attention.causal else ()
    grids = [c for c, law in enumerate(laws) if isinstance(law, Density)]
    wrong, field = "", "reference"
    if laws and kind == "finite-volume":
        wrong = f'"{kind}" does not know how slices of a text err; use "quadrature"'
    elif laws and kind == "quantile":
        wrong = f'"{kind}" leaves no place for s in a sequence; use "quadrature"'
    elif grids:
        wrong = f"measures[{grids[0]}] is a density on a grid, of which no finer nodes are known"
        wrong, field = f"{wrong}; compare runs by vl.distance", "initial"
    elif kind == "finite-volume" and d not in CELLS:
        wrong = f'"finite-volume" needs d <= 3 but the problem has d = {d}'
    elif kind != "finite-volume" and isinstance(initial, Density):
        wrong = f'is a density on a grid, for which "{kind}" knows no finer nodes; use "finite-volume"'
    if wrong:
        raise InputError(wrong, field)
    if kind == "finite-volume":
        return list(CELLS[d])
    if isinstance(initial, Particles):
        return [1]  # its nodes are the measure itself
    if kind == "quantile":
        return [256, 1024, 4096, 16384]
    least = len(initial.quadrature(1))
    each = [least * k**d * (math.prod(along(k)) if laws else 1) for k in _PER_AXIS]
    return [k for i, (k, count) in enumerate(zip(_PER_AXIS, each, strict=True)) if i < 2 or count <= _MOST_NODES]


def along(nodes: int) -> tuple[int, int]:
    """Return pieces of each part of a text, and places in each piece, beside so many nodes along each axis."""
    return nodes // 2, nodes // 2 + 1
