"""The chain of stability numbers: what was measured, what is possible nearby, and what the theory allows.

    W_2(t) / W_2(0) <= optimal growth <= exp int lambda <= exp int L (a posteriori) <= exp int L(R) (a priori)

The second and the third are local: they are the derivative of the flow along one of the solutions, and hold for others
that stay close to it. Where two are farther apart than that, they are told as local, and may be exceeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.postprocess.sensitivity.along import Along, along, left_out, nothing

_NEAR = 0.02  # of the deviation: solutions so close that the derivative tells how they part
_ROUNDING = 1e-6


class Pairs(NamedTuple):
    """For each pair the growth that is possible nearby; all doubts."""

    each: list[Along]
    doubt: str


def left_out_of(runs: Sequence[xr.Dataset], *, same: bool) -> str:
    """Return why growth is not computed unless it is asked for; "" where it takes little time."""
    return left_out([runs[_whose(runs)]] if same else runs, runs[0]["time"].values)


def of_pairs(
    runs: Sequence[xr.Dataset], pairs: Sequence[tuple[int, int]], names: Sequence[str], *, same: bool, aloud: bool
) -> Pairs:
    """Return the growth of small differences along the solutions; solutions of one problem have one."""
    tokens, local = _whose(runs), dict[int, Along]()
    each = list[Along]()
    for pair in pairs:
        ends = [tokens] if same else pair
        local |= {k: _local(runs[k], aloud) for k in ends if k not in local}
        each.append(_larger(*(local[k] for k in ends)))
    doubts = [f"optimal growth along {names[k]}: {growth.doubt}" for k, growth in local.items() if growth.doubt]
    return Pairs(each, "; ".join(doubts))


def _whose(runs: Sequence[xr.Dataset]) -> int:
    """Of solutions of one problem, the one along which the derivative is asked for: with tokens, where one has them."""
    able = [k for k, run in enumerate(runs) if run.attrs["solver"] != "layers"]
    return next((k for k in able if "position" in runs[k]), able[0] if able else 0)


def _local(run: xr.Dataset, aloud: bool) -> Along:
    """Return the growth of small differences along a run, at its times."""
    times = run["time"].values
    found = along(run, times, aloud=aloud)
    if found.since != times[0] and not np.isnan(found.growth).all():
        return nothing(times, f"growth is known from t = 0 on, and the first common time is {times[0]:.4g}")
    return found


def _larger(one: Along, other: Along | None = None) -> Along:
    """The larger ones of two solutions, since the way between them lies along both; unknown where one is."""
    if other is None:
        return one
    growth, error, logarithmic, norm = (np.maximum(a, b) for a, b in zip(one[:4], other[:4], strict=True))
    return Along(growth, error, logarithmic, norm)


def far(one: xr.Dataset, distances: Array, errors: Array, optimal: Array) -> Array:
    """At which times two solutions are too far apart for the derivative: by their distance, or by what was measured.

    Distances are known up to errors.
    """
    size = np.sqrt(np.maximum(np.trace(one["covariance"].values, axis1=1, axis2=2), 1e-300))
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = ~(np.maximum.accumulate(distances / size) <= _NEAR)
        least = (distances - errors) / (distances[0] + errors[0])
        found: Array = apart | (least > optimal * (1 + _ROUNDING))
    return found
