"""What becomes of covariances: converged, blown up, diverging; and a limit's rank, by how eigenvalues decay.

An eigenvalue that vanishes falls like a power of t, or faster: log-log slopes between late times tell it from one that
stays, whatever their sizes. Slopes must agree over all parts of the last decade of time, since eigenvalues in order
change places where a falling one passes a staying one; that of one that stays must not grow, as where a fall is about
to begin; and that of one that falls must not flatten, as where a small limit is about to show. Where slopes are not
clear yet, the trajectory goes on to a later time. No finite time can tell all: an eigenvalue that begins to fall
later than that counts as staying.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.solvers.covariances import covariances

Truth = NDArray[np.bool_]
FATES = ("converged", "blown up", "diverging", "undecided")
CONVERGED, BLOWN_UP, DIVERGING, UNDECIDED = range(4)
_STILL, _FALLS = 0.02, -0.4  # slopes d log(lambda) / d log(t)
_FLATTER = (1e-3, 0.05, 0.25)  # how much those of falling ones may rise in a decade: more, the later it is
_SLOWLY, _FADES = 0.4, 0.5  # slopes of one that stays, while it settles; how much over a decade
_DECADE, _PARTS, _LATER_ONES = 10.0, 4, len(_FLATTER) - 1
_ROUNDING, _NOISE = 1e-13, 1e-7  # of the largest eigenvalue; of slopes
_LATEST = 6  # decades beyond the horizon, to which a rank that should not be is followed
_STEPS, _FEWEST, _MOST = 10, 100_000, 1_000_000  # for each unit of time, and at least and at most


class Outcomes(NamedTuple):
    """Of each trajectory: its fate, the rank of its limit (-1 if it has none), its last state and when that was."""

    fate: Array
    rank: Array
    last: Array
    time: Array
    slope: Array  # of each eigenvalue, over the last decade of time


def outcomes(
    attention: Attention | Sequence[Attention],
    initial: Array,
    horizon: float,
    *,
    later: int = _LATER_ONES,
    confirmed: bool = False,
) -> Outcomes:
    """Integrate; where it is not clear yet, to ten times the horizon, so many times.

    Parameters
    ----------
    later
        How many times.
    confirmed
        Ask for the same rank at the first two horizons.
    """
    found = _until(attention, initial, horizon, _FLATTER[0])
    for k in range(1, later + 1):
        chosen = found.fate == UNDECIDED
        if confirmed and k == 1:
            chosen |= found.fate == CONVERGED
        if not chosen.any():
            break
        before = found.fate[chosen] == CONVERGED
        ranks = found.rank[chosen]
        _look_again(found, chosen, attention, initial, horizon * _DECADE**k, _FLATTER[k])
        changed = before & (found.rank[chosen] != ranks) & (found.fate[chosen] == CONVERGED)
        found.fate[np.flatnonzero(chosen)[changed]] = UNDECIDED
    return found


def confirm_larger(
    found: Outcomes, largest: Array, attention: Sequence[Attention], initial: Array, horizon: float, *, later: int
) -> None:
    """Follow limits of a rank above the largest known to ever later times, in place; what stays above is counted.

    Slopes can be those of a limit for a decade and begin to fall after it: the larger rank is the one that asks for
    proof. One that is not clear at the end is undecided.
    """
    chosen = (found.fate == CONVERGED) & (found.rank > largest)
    for k in range(later + 1, _LATEST + 1):
        if not chosen.any():
            return
        _look_again(found, chosen, attention, initial, horizon * _DECADE**k, _FLATTER[-1])
        chosen &= (found.fate == UNDECIDED) | (found.rank > largest)


def _look_again(
    found: Outcomes, chosen: Truth, attention: Attention | Sequence[Attention], initial: Array, horizon: float,
    flatter: float,
) -> None:  # fmt: skip
    """What becomes of the chosen ones until a later time, in place."""
    places = np.flatnonzero(chosen)
    some = attention if isinstance(attention, Attention) else [attention[i] for i in places.tolist()]
    again = _until(some, initial[places], horizon, flatter)
    for old, new in zip(found, again, strict=True):
        old[places] = new


def _until(attention: Attention | Sequence[Attention], initial: Array, horizon: float, flatter: float) -> Outcomes:
    times = horizon * _DECADE ** np.linspace(-1.0, 0.0, _PARTS + 1)
    times[-1] = horizon
    most = int(min(max(_STEPS * horizon, _FEWEST), _MOST))
    run = covariances(attention, initial, horizon, times=times, max_steps=most, check=False)
    b, d = initial.shape[:2]
    fate = np.full(b, UNDECIDED)
    status, slope = run["status"].values, np.full((b, d), np.nan)
    fate[status == "blow-up"] = BLOWN_UP
    fate[status == "diverging"] = DIVERGING
    rank, done = np.full(b, -1), status == "completed"
    spectra = np.linalg.eigvalsh(run["covariance"].values[done])[..., ::-1]
    slope[done], stays, falls = _decay(spectra, flatter)
    grows = (slope[done] > _STILL).any(axis=1)
    clear = (stays | falls).all(axis=1)
    fate[done] = np.where(clear, CONVERGED, UNDECIDED)  # one that still grows may blow up yet
    rank[done] = np.where(clear & ~grows, stays.sum(axis=1), -1)
    return Outcomes(fate, rank, run["last_covariance"].values, run["end_time"].values, slope)


def _decay(spectra: Array, flatter: float) -> tuple[Array, Truth, Truth]:
    """Slopes of eigenvalues (b, times, d) at the end; which of them stay, and which vanish, over the last decade."""
    seen = spectra > _ROUNDING * spectra[..., :1]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.log(spectra[:, 1:] / spectra[:, :-1]) * (_PARTS / np.log(_DECADE))
    slopes = np.where(seen[:, 1:] & seen[:, :-1], slopes, -np.inf)
    sizes = np.abs(slopes)
    settles = (sizes[:, -1] <= sizes[:, 0]) | (sizes[:, -1] < _NOISE)
    slows = (sizes < _SLOWLY).all(axis=1) & (sizes[:, -1] < _FADES * sizes[:, 0])  # as 1 / t, by 0.18
    stays: Truth = ((sizes < _STILL).all(axis=1) & settles) | slows
    with np.errstate(invalid="ignore"):  # slopes of exponentials are -inf
        changes = np.abs(np.diff(slopes, axis=1))
        steady = changes[:, -1] < _FADES * changes[:, 0]  # they tend to an exponent
    falls: Truth = (slopes < _FALLS).all(axis=1) & ((slopes[:, -1] <= slopes[:, 0] + flatter) | steady)
    return slopes[:, -1], stays, falls


def shares(found: Outcomes) -> dict[str, float]:
    """Of trajectories, by fate."""
    return {name: float((found.fate == k).mean()) for k, name in enumerate(FATES)}


def rank_counts(found: Outcomes) -> dict[str, int]:
    """How many limits have each rank."""
    converged = found.rank[found.fate == CONVERGED]
    return {str(rank): int((converged == rank).sum()) for rank in range(found.last.shape[1] + 1)}
