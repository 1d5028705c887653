"""Sums over prefixes from sums without masks: halves of the sources, halves of these, and so on.

Targets that see the left half of a stretch and more see all of it, which is a sum without a mask:

    sources    0 ........ n/2 ........ n
    targets    [see < n/2]  [see > n/2: all of the left half, and a prefix of the right]

log2(n) levels, each with as many sources and targets as one sum. Whatever can be merged over disjoint sets of sources
can be summed so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.tilting.results import joined

Counts = NDArray[np.int64]
_CALLS = 2.0  # times what their sums take that halves take, for all the calls
LEAF = {1: 512, 2: 1024, 3: 2048}  # sources of which all pairs take as long as another level of halves
_Some = TypeVar("_Some", contravariant=True)


class Part(NamedTuple):
    """log Z (m,) and means (m, d) over some sources, with bounds of their errors, the mean's Euclidean."""

    log_mass: Array
    mean: Array
    error_bound: float
    mass_error: float


class Merged(Protocol[_Some]):
    """What adds up over disjoint sets of sources."""

    def add(self, targets: slice, part: _Some) -> None:
        """Take in the sums over another set of sources, at some of the targets."""


Way = Callable[[slice, slice], tuple[_Some, str]]  # sums over some sources at some targets, and the method


def merge(n: int, seen: Counts, leaf: int, total: Merged[_Some], whole: Way[_Some], prefix: Way[_Some]) -> str:
    """Hand all that targets see to ``total``: sums over ``whole`` stretches, and over each one's ``prefix`` of a few.

    Returns the methods that took part.
    """
    methods = set()
    for sources, targets, masked in visits(n, seen, leaf):
        part, method = (prefix if masked else whole)(sources, targets)
        total.add(targets, part)
        methods.add(method)
    return joined(methods)


Pairs = Callable[[int, int], float]  # seconds of so many sources and targets


def seconds(
    size: tuple[int, int], prefixes: int, leaf: int, whole: Callable[[int, int, int], float], part: Pairs
) -> float:
    """Estimated time of n sources and m targets: at each level half of a sum without a mask, in ever more pieces."""
    (sources, targets), pieces, total = map(float, size), 1, 0.0
    while sources > leaf and pieces < 2 * prefixes:
        total += pieces * whole(int(sources / 2), int(targets / 2) + 1, pieces)
        sources, targets, pieces = sources / 2, targets / 2, 2 * pieces
    leaves = 0.0 if prefixes < pieces else pieces * part(int(sources), int(targets) + 1)
    return _CALLS * total + leaves


class Visit(NamedTuple):
    """Targets that see all of these sources or, where ``masked``, a prefix of them."""

    sources: slice
    targets: slice
    masked: bool


def visits(n: int, seen: Counts, leaf: int) -> Iterator[Visit]:
    """Pairs of stretches that together are all that targets see of n sources; ``seen`` (m,) must not decrease.

    Stretches of ``leaf`` sources or fewer are not halved.
    """
    todo = [(0, n)]
    while todo:
        low, high = todo.pop()
        first, last = (int(end) for end in np.searchsorted(seen, (low, high), side="right"))
        if first == last:
            continue
        if seen[first] == high or high - low <= leaf:  # all of it, or few
            yield Visit(slice(low, high), slice(first, last), bool(seen[first] < high))
            continue
        middle = _cut(seen, low, high)
        beyond = int(np.searchsorted(seen, middle, side="right"))
        yield Visit(slice(low, middle), slice(beyond, last), False)
        todo += [(low, middle), (middle, high)]


def _cut(seen: Counts, low: int, high: int) -> int:
    """What some target sees, next to the middle and before the end: nobody sees a part only of those of equal s."""
    beyond = int(np.searchsorted(seen, (low + high) // 2, side="right"))
    below = int(seen[beyond - 1]) if beyond > 0 else low
    above = int(seen[beyond]) if beyond < len(seen) else high
    if below <= low or (above < high and above + below < low + high):
        return above
    return below


class Total:
    """Sums over disjoint sets of sources, merged: log Z and means at m targets, with bounds of their errors."""

    def __init__(self, m: int, d: int, radius: float) -> None:
        """``radius``: all sources are in a ball of it."""
        self.log_mass, self.mean = np.full(m, -np.inf), np.zeros((m, d))
        self._radius, self._bound, self._mass_error, self._merged = radius, 0.0, 0.0, 0

    def add(self, targets: slice, part: Part) -> None:
        """Take in the sums over another set of sources, at some of the targets."""
        log_mass, mean = self.log_mass[targets], self.mean[targets]
        with np.errstate(invalid="ignore"):  # sets without mass
            total = np.logaddexp(log_mass, part.log_mass)
            share = np.where(part.log_mass > -np.inf, np.exp(part.log_mass - total), 0.0)[:, None]
        mean += share * np.where(share > 0, part.mean - mean, 0.0)
        log_mass[...] = total
        self._bound = max(self._bound, part.error_bound)
        self._mass_error = max(self._mass_error, part.mass_error)
        self._merged += 1

    def bounds(self) -> tuple[float, float]:
        """Of the error of each mean, and of each log mass.

        Shares that are wrong by factors within e^{+-e} move a mean by (e^{2 e} - 1) R at most. Each merger rounds the
        logarithm of the mass, and the mean; a target meets at most log2 n + 1 of them, of all that there were.
        """
        finite = self.log_mass[np.isfinite(self.log_mass)]
        units = 4.5e-16 * (2 + math.log2(self._merged + 1))
        mass_error = self._mass_error + units * (2 + float(np.abs(finite).max(initial=0.0)))
        return self._bound + (math.expm1(2 * mass_error) + 2 * units) * self._radius, mass_error
