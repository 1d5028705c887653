"""Into which parts a measure falls, whether each is given a frame of its own, and which of them a part sees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vlasov.measures import Measure, Mixture
from vlasov.problem import Problem
from vlasov.solvers.finite_volume import initial
from vlasov.solvers.finite_volume.options import AUTO, PARTS, Options, cells, has_slopes

_NARROW = 0.35  # a cell of one grid over the deviation of the narrowest part: beyond, parts are more accurate
_TEARING = 1.5  # exponents across a part's deviation
_MOST_PARTS = 32  # each is a source for all


def chosen(problem: Problem, options: Options) -> Options:
    """The same with the frame that is best: one for each part where parts are narrower than cells of one grid.

    Its extent is known without parts only; and parts that feel each other across their own width are torn by the flow,
    so that no frame of their own holds them.
    """
    if options.frame != AUTO:
        return options
    found, several = [component for _, component in components(problem.initial)], False
    if 1 < len(found) <= _MOST_PARTS and options.extent is None and has_slopes(problem.block):
        several = _are_narrow(problem, found, min(cells(options, problem.dimension))) and not _tear(problem, found)
    return replace(options, frame=PARTS if several else "moving")


def _are_narrow(problem: Problem, found: Sequence[Measure], count: int) -> bool:
    """Whether the narrowest part is narrower than a few cells of one grid of so many, but none is flat."""
    whole = problem.initial
    values, vectors = np.linalg.eigh(whole.covariance)
    spreads = np.array([np.linalg.eigvalsh(component.covariance) for component in found])
    if values[0] <= 0 or (spreads[:, 0] <= initial.FLAT * spreads[:, -1]).any():
        return False
    whitening = vectors / np.sqrt(values)
    least = min(np.linalg.eigvalsh(whitening.T @ component.covariance @ whitening)[0] for component in found)
    reach = np.max([np.abs(whitening.T @ (component.mean - whole.mean)).max() for component in found])
    cell = 2 * (reach + initial.TAILS * math.sqrt(least)) / count
    return cell > _NARROW * math.sqrt(least)


def _tear(problem: Problem, found: Sequence[Measure]) -> bool:
    """Whether tilts by the distances between parts change much across the width of one."""
    means = np.array([component.mean for component in found])
    apart = np.ptp(means, axis=0)
    widths = [math.sqrt(np.linalg.eigvalsh(component.covariance)[-1]) for component in found]
    strength = max((float(np.linalg.norm(a, 2)) for a in problem.block.tilts(0.0)), default=0.0)
    return strength * max(widths) * float(np.linalg.norm(apart)) > _TEARING


def components(measure: Measure, weight: float = 1.0) -> list[tuple[float, Measure]]:
    """Weights and parts of a mixture, of mixtures in it too, without those of weight zero."""
    if not isinstance(measure, Mixture):
        return [(weight, measure)]
    pairs = zip(measure.weights.tolist(), measure.components, strict=True)
    return [found for w, component in pairs if w > 0 for found in components(component, weight * w)]
