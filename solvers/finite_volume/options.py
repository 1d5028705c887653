"""Options of the solver "finite-volume", checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from vlasov import checks
from vlasov.attention import Attention, Masked, MultiHead
from vlasov.errors import InputError, choose, some
from vlasov.measures import Mixture, Sequence as Ordered
from vlasov.problem import Problem
from vlasov.solvers.budget import MAX_STEPS
from vlasov.solvers.finite_volume.schemes import SCHEMES
from vlasov.solvers.references import is_text

FRAMES = ("moving", "fixed", "rescaled")  # one for all of the measure
AUTO, PARTS = "auto", "parts"
DEFAULT_CELLS = {1: 512, 2: 128, 3: 64}  # along each axis
CELLS_OF_PARTS = {1: 64, 2: 40, 3: 24}
_FEWEST, _MOST = 8, 10**8
_FEW_SLICES, _MORE_SLICES, _MOST_SLICES = 2, 4, 200  # of each law of a sequence; and so many for all


@dataclass(frozen=True)
class Options:
    """Options of the solver "finite-volume".

    Attributes
    ----------
    cells
        Along each axis; one number serves all. 512, 128 and 64 for d = 1, 2, 3 if not given, and twice as many, again
        and again, where the run then finds an error above 1e-2 and that takes seconds only (``refinements`` of them).
    reconstruction
        "upwind5" (order 5), "weno5" (order 5, for rough data), "muscl" (order 2) or "upwind" (order 1).
    frame
        "moving": the grid follows the mean and the covariance; of a mixture it lies along the directions in which parts
        are narrow and apart. "parts": each part of a mixture has such a grid of its
        own, by default of 64, 40 and 24 cells along each axis. "auto": "parts" where parts are narrower than a few
        cells of one grid for all of them, else "moving"; and "moving" where an extent is given, where there are more
        than 32 parts, where they feel each other so strongly across their own width that the flow tears them, and where
        the attention does not say its Jacobian. "fixed": physical coordinates. "rescaled": z = Phi^{-1} x with
        Phi' = V Phi.
    extent
        Of the grid, in the coordinates of the frame: L for [-L, L] along each axis, or one such number or pair [lower,
        upper] for each axis. Chosen from the problem if not given. A moving frame begins with the mean at zero and unit
        covariance.
    slices
        Of each law of a ``Sequence`` under a mask but the first, along s, each with a density of its own; the first has
        one, since its tokens see that law only. If not given, six for two laws, fewer each for more of them, and twice
        as many where ``cells`` are doubled. Errors of moments fall spectrally, since laws change smoothly along s,
        but steeply where a law begins and tokens leave each other fast: there one slice more may err a little more, as
        the run tells. Under Sinkhorn attention in second order. As a ``Sequence`` (``vl.measure(run)``) laws are
        constant across slices.
    max_steps
        A run that takes more, or that is foreseen to take many more, stops with an error and its last state.
    """

    cells: int | Sequence[int] | None = None
    reconstruction: str = "upwind5"
    frame: str = "auto"
    extent: float | Sequence[Any] | None = None
    slices: int | None = None
    max_steps: int = MAX_STEPS

    @property
    def follows(self) -> bool:
        """Whether frames follow the mean and the covariance of what is in them."""
        return self.frame not in ("fixed", "rescaled")

    def __post_init__(self) -> None:
        checks.integer(self.max_steps, "max_steps", least=1)
        if self.slices is not None:
            checks.integer(self.slices, "slices", least=1, most=_MOST_SLICES)
        choose(self.reconstruction, SCHEMES, "reconstruction")
        choose(self.frame, (AUTO, *FRAMES, PARTS), "frame")
        if self.cells is not None:
            for name, count in _named(self.cells, "cells"):
                if checks.integer(count, name, least=_FEWEST) > _MOST:
                    raise InputError(f"is {count} but a grid has at most {_MOST:g} cells", name)
        if self.extent is not None:
            for name, reach in _named(self.extent, "extent"):
                _interval(reach, name)


def check(problem: Problem, options: Options) -> None:
    """Refuse what a grid cannot do."""
    d = problem.dimension
    if d > 3:
        raise InputError(f'has d = {d}, but "finite-volume" needs d <= 3; use the solver "particles"', "initial")
    if problem.post_norm is not None:
        sentence = 'is "post", which keeps tokens on an ellipsoid, where there are no cells; use the solver "particles"'
        raise InputError(sentence, "layer_norm.placement")
    if is_text(problem):
        _check_sequence(problem, options)
    elif options.slices is not None:
        raise InputError(f"is {options.slices}, but what is cut into slices is a vl.Sequence under a mask", "slices")
    with np.errstate(all="ignore"):
        initial = problem.initial
        torn = problem.block.tears_tails(initial.covariance) and not math.isfinite(initial.support_radius)
    if torn:
        raise InputError(
            f"reaches to infinity, from where tokens leave every ball at once under {problem.attention.kind} "
            'attention: it has no solution; use a box, a ball, a ring, or the solver "particles" for a sample',
            "initial",
        )
    if options.frame == PARTS and not isinstance(problem.initial, Mixture):
        raise InputError(f'is "parts", but a {problem.initial.kind} has one; use "moving"', "frame")
    if options.frame == PARTS and not has_slopes(problem.block):
        raise InputError(
            f'is "parts", whose frames follow a Jacobian that {problem.block.kind} does not say; use "moving"',
            "frame",
        )
    if options.frame == "rescaled" and problem.block.drift() is None:
        raise InputError(
            'is "rescaled", which needs a normalised attention, where a single token obeys x\' = V x; use "moving"',
            "frame",
        )
    if np.prod(cells(options, d), dtype=float) > _MOST:
        raise InputError(f"make {np.prod(cells(options, d), dtype=float):g} cells in all; at most {_MOST:g}", "cells")
    intervals(options, d)


def few_slices(problem: Problem) -> int:
    """Of each law of a sequence, where none are asked for."""
    assert isinstance(problem.initial, Ordered)
    return _FEW_SLICES + _MORE_SLICES // max(1, len(problem.initial.measures) - 1)


def _check_sequence(problem: Problem, options: Options) -> None:
    if not isinstance(problem.initial, Ordered):
        raise InputError(
            f'is {some(problem.initial.kind)}, of which a grid has no density; use the solver "particles"', "initial"
        )
    if not isinstance(problem.attention, Masked):
        raise InputError(
            f'is {problem.attention.kind}, with masks inside; put vl.Masked around all of it, or use "particles"',
            "attention",
        )
    if problem.layer_norm is not None:
        sentence = 'is "pre", which slices of a text do not know; use the solver "particles"'
        raise InputError(sentence, "layer_norm.placement")
    if options.frame not in (AUTO, PARTS):
        raise InputError(f'is "{options.frame}", but slices of a text have frames of their own; use "parts"', "frame")
    if not has_slopes(problem.attention.attention):
        raise InputError(
            f"is {problem.attention.attention.kind} under a mask, which says no Jacobian for frames to follow; use the "
            'solver "particles"',
            "attention",
        )


def has_slopes(attention: Attention) -> bool:
    """Whether the attention says its Jacobian, which frames of parts follow."""
    if isinstance(attention, MultiHead):
        return all(has_slopes(head) for head in attention.heads)
    return attention.heads_at(0.0) is not None or type(attention).jacobian is not Attention.jacobian


def cells(options: Options, dimension: int) -> tuple[int, ...]:
    """Number of cells along each axis."""
    if options.cells is None:
        return ((CELLS_OF_PARTS if options.frame == PARTS else DEFAULT_CELLS)[dimension],) * dimension
    if not _several(options.cells):
        return (int(options.cells),) * dimension  # type: ignore[arg-type]
    if len(options.cells) != dimension:
        raise InputError(f"has {len(options.cells)} numbers but d = {dimension}; give one for each axis", "cells")
    return tuple(options.cells)


def intervals(options: Options, dimension: int) -> list[tuple[float, float]] | None:
    """The extent that was asked for, along each axis; None if it is to be chosen."""
    if options.extent is None:
        return None
    if not _several(options.extent):
        return [_interval(options.extent, "extent")] * dimension
    if len(options.extent) != dimension:
        raise InputError(f"has {len(options.extent)} entries but d = {dimension}; give one for each axis", "extent")
    return [_interval(reach, name) for name, reach in _named(options.extent, "extent")]


def _several(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _named(value: Any, name: str) -> list[tuple[str, Any]]:
    return [(f"{name}[{k}]", entry) for k, entry in enumerate(value)] if _several(value) else [(name, value)]


def _interval(value: Any, name: str) -> tuple[float, float]:
    if not _several(value):
        reach = checks.number(value, name, above=0.0)
        return -reach, reach
    if len(value) != 2:
        raise InputError(f"is {checks.short(value)} where a pair [lower, upper] is needed", name)
    lower, upper = (checks.number(end, f"{name}[{i}]") for i, end in enumerate(value))
    if not lower < upper:
        raise InputError(f"is [{lower:g}, {upper:g}]; the upper end must be the larger one", name)
    return lower, upper
