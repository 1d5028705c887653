"""Causal sums with kernels: averages over prefixes. Sources stand in an order, and each target sees the first so many.

    S_i = sum_{j < c_i} w_j y_j k(<xi_i, y_j>) / W_i,   W_i = sum_{j < c_i} w_j

Sums over disjoint sets of sources add up, and so do the bounds on their errors: by halves of halves, as in
``tilting.prefixes``, from sums without masks; or by all pairs, bitwise blind to what is not seen. The exponential is
Z m of the tilted prefixes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.summing.evaluate import check, exponential, linear_plan, sum_up
from vlasov.summing.results import Kernel, KernelSums, longest
from vlasov.tilting import Counts, Request, Tilted, tilt_prefixes
from vlasov.tilting.choose import tell_if_long
from vlasov.tilting.prefixes import halves
from vlasov.tilting.results import QUADRATIC

_UNIT = 0.5 * float(np.finfo(float).eps)
_STRETCH = 1024  # terms of a running sum before its sums are added up
_FIXED, _ROUGHLY = 1e-4, 1e-6  # seconds of a call; what bounds themselves may be rounded by


def average_prefixes(
    points: Array,
    weights: Array,
    xi: Array,
    seen: Counts,
    kernel: Kernel,
    request: Request = Request(),
    *,
    workspace: Workspace | None = None,
) -> KernelSums:
    """sum_j w_j y_j k(<xi_i, y_j>) / sum_j w_j over the first ``seen[i]`` sources; parameters as in ``sum_up``.

    Parameters
    ----------
    seen
        c_i >= 1, shape (m,), not decreasing; every target sees a source that carries weight.
    """
    check(kernel, request)
    masses, relative = _running(weights, seen)
    if kernel.name == "exponential":
        with np.errstate(divide="ignore"):
            logs = np.log(weights)

        def tilted(asked: Request) -> Tilted:
            found = tilt_prefixes(points, logs, xi, seen, asked, workspace=workspace)
            of_masses = relative + _UNIT * float(np.abs(np.log(masses)).max(initial=0.0) + 2)
            return replace(found, log_mass=found.log_mass - np.log(masses), mass_error=found.mass_error + of_masses)

        return exponential(tilted, request)
    total, methods = _sums(points, weights, xi, seen, kernel, request, workspace)
    return total.over(masses, relative, methods)


def _running(terms: Array, seen: Counts) -> tuple[Array, float]:
    """Sums of the first so many numbers >= 0, and a bound on their relative errors."""
    stretches = -(-len(terms) // _STRETCH)
    table = np.zeros((stretches, _STRETCH))
    table.reshape(-1)[: len(terms)] = terms
    np.cumsum(table, axis=1, out=table)
    table[1:] += np.cumsum(table[:-1, -1])[:, None]
    return table.reshape(-1)[seen - 1], _UNIT * (_STRETCH + stretches + 2)


class SumOfParts:
    """Sums over disjoint sets of sources, or parts of a law, at m targets, with a bound on the error of each."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._first, self._bounds = np.zeros(shape), np.zeros(shape[0])

    def add(self, targets: slice | NDArray[np.int64], part: tuple[Array, Array | float]) -> None:
        """Take in the sums over another part, at some of the targets, with bounds on their errors."""
        first, bounds = part
        self._first[targets] += first
        rounded = np.abs(first).sum(axis=1) + np.abs(self._first[targets]).sum(axis=1)
        self._bounds[targets] += bounds + 4 * _UNIT * rounded

    def over(self, masses: Array, relative: float, method: str) -> KernelSums:
        """The sums over masses (m,), which have relative errors."""
        first = self._first / masses[:, None]
        bound = float((self._bounds / masses).max(initial=0.0)) * (1 + 2 * relative)
        return KernelSums(first, None, method, bound + 2 * (relative + _UNIT) * longest(first))


def _sums(
    points: Array,
    weights: Array,
    xi: Array,
    seen: Counts,
    kernel: Kernel,
    request: Request,
    workspace: Workspace | None,
) -> tuple[SumOfParts, str]:
    """sum_{j < c_i} w_j y_j k, and the methods."""
    from vlasov.summing import all_pairs

    n, d = points.shape
    moments, _ = _running(weights * np.hypot.reduce(np.abs(points), axis=1), seen)  # no square overflows
    each_as = request if request.method in QUADRATIC else request._replace(method="auto")

    def whole(sources: slice, targets: slice) -> tuple[tuple[Array, float], str]:
        found = sum_up(points[sources], weights[sources], xi[targets], kernel, each_as, workspace=workspace)
        return (found.first, found.error_bound), found.method

    def prefix(sources: slice, targets: slice) -> tuple[tuple[Array, Array], str]:
        counts = seen[targets] - sources.start
        first, each = all_pairs.prefix_sums(points[sources], weights[sources], xi[targets], counts, kernel, workspace)
        return (first, each * (1 + _ROUGHLY) * moments[targets]), "all-pairs"

    total = SumOfParts(xi.shape)
    by_halves, seconds = _by_halves(points, weights, xi, seen, kernel, request)
    tell_if_long(workspace, (n, len(xi), d), seconds, pairs=not by_halves, asked=request.method)
    leaf = halves.LEAF[d] if by_halves else n
    return total, halves.merge(n, seen, leaf, total, whole, prefix)


def _by_halves(
    points: Array, weights: Array, xi: Array, seen: Counts, kernel: Kernel, request: Request
) -> tuple[bool, float]:
    """Whether sums without a mask, at each level of halves, promise to be faster than all pairs; and the seconds."""
    from vlasov.summing import all_pairs

    (n, d), m = points.shape, len(xi)
    planned = linear_plan(points, weights, xi, kernel, request)
    slow = all_pairs.seconds(kernel, n // 2 + 1, m, d)
    if planned is None or n <= halves.LEAF[d]:
        return False, slow
    module, plan = planned
    some = slice(0, halves.LEAF[d])
    few = module.plan(points[some], weights[some], xi[some], kernel, request)
    fixed = min(getattr(few, "seconds", 0.0), plan.seconds)  # most of which goes into nodes

    def prefix(sources: int, targets: int) -> float:
        return all_pairs.seconds(kernel, sources // 2 + 1, targets, d)

    def of_piece(sources: int, targets: int, pieces: int) -> float:
        fast = _FIXED + fixed + (plan.seconds - fixed) / (2 * pieces)
        return min(all_pairs.seconds(kernel, sources, targets, d), fast)

    prefixes = int(np.count_nonzero(np.diff(seen))) + 1
    found = halves.seconds((n, m), prefixes, halves.LEAF[d], of_piece, prefix)
    return (True, found) if request.method != "auto" or found < slow else (False, slow)
