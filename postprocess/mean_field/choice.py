"""Which reference stands for the limit of a mean-field study, and how many nodes or cells it may be given."""

from __future__ import annotations

import math
from dataclasses import fields
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
    """Which reference: its kind, the nodes or cells per axis (zero for a Gaussian), and the steps of all clouds."""

    kind: str
    nodes: int
    grid: TimeGrid

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {"kind": self.kind, "nodes": self.nodes, **vars(self.grid)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Choice:
        """The choice that ``plain`` described."""
        return cls(plain["kind"], plain["nodes"], TimeGrid(*(tuple(plain[f.name]) for f in fields(TimeGrid))))


def kind_of(problem: Problem, reference: str) -> str:
    """The reference that is asked for, or the best one."""
    initial = problem.start
    if reference == "auto":
        if isinstance(initial, Density):  # no nodes are finer than its cells
            return "finite-volume"
        return "gaussian" if stays_gaussian(problem) else "quadrature"
    if reference == "gaussian" and not isinstance(initial, Gaussian):
        raise InputError(
            f'"gaussian" needs a Gaussian initial measure but this is a {initial.kind}; use "auto"', "reference"
        )
    if reference == "gaussian" and not stays_gaussian(problem):
        raise InputError(
            f'"gaussian" needs Gaussians that stay Gaussian, not {problem.block.kind}; use "auto"', "reference"
        )
    if reference == "quantile" and problem.dimension != 1:
        raise InputError(f'"quantile" needs d = 1 but the problem has d = {problem.dimension}; use "auto"', "reference")
    return reference


def ladder(problem: Problem, kind: str) -> list[int]:
    """Numbers of nodes per axis, increasing, as many as memory and patience allow."""
    initial = problem.start
    if kind == "gaussian":
        return [0]
    if isinstance(initial, Ordered) and problem.attention.causal:
        _check_text(initial, kind)
    if kind == "finite-volume":
        if problem.dimension not in CELLS:
            raise InputError(f'"finite-volume" needs d <= 3 but the problem has d = {problem.dimension}', "reference")
        return list(CELLS[problem.dimension])
    if isinstance(initial, Density):
        raise InputError(
            f'is a density on a grid, for which "{kind}" knows no finer nodes; use "finite-volume"', "reference"
        )
    if isinstance(initial, Particles):
        return [1]  # its nodes are the measure itself
    if kind == "quantile":
        return [256, 1024, 4096, 16384]
    least = len(initial.quadrature(1))
    text = isinstance(initial, Ordered) and problem.attention.causal
    each = [least * k**problem.dimension * (math.prod(along(k)) if text else 1) for k in _PER_AXIS]
    return [k for i, (k, count) in enumerate(zip(_PER_AXIS, each, strict=True)) if i < 2 or count <= _MOST_NODES]


def _check_text(initial: Ordered, kind: str) -> None:
    """Complain about a text whose limit nobody knows well enough."""
    if kind == "finite-volume":
        raise InputError(f'"{kind}" does not know how slices of a text err; use "quadrature"', "reference")
    if kind == "quantile":
        raise InputError(f'"{kind}" leaves no place for s in a sequence; use "quadrature"', "reference")
    grids = [c for c, law in enumerate(initial.measures) if isinstance(law, Density)]
    if grids:
        raise InputError(
            f"measures[{grids[0]}] is a density on a grid, of which no finer nodes are known; compare runs by "
            "vl.distance",
            "initial",
        )


def along(nodes: int) -> tuple[int, int]:
    """Pieces of each part of a text, and places in each piece, beside so many nodes along each axis."""
    return nodes // 2, nodes // 2 + 1
