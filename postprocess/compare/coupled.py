"""Tokens that the velocity of another solution moves from where the solution's own begin: how far they come apart.

    d_p(t) = (E |y(t) - x(t)|^p)^{1/p},   y(0) = x(0),   (y - x)' = Gamma_nu(y) - Gamma_mu(x)

with the measures mu and nu of the two solutions. It sees velocities, not how well n tokens stand for a density, and
bounds W_p between mu and the cloud that nu moves. The difference is small and smooth in time, so that Heun's method on
output times follows it; every second of them tells the error.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Particles, Sequence as Ordered
from vlasov.postprocess.compare.along_tokens import (
    Variables,
    deviations,
    obstacle,
    spread_times,
    targets,
    tokens_beside,
)
from vlasov.solvers import measure, problem_of
from vlasov.solvers.ode.integrate import inside, segments

_LEAST_TIMES = 3  # fewer say nothing of their error
_MOST_TIMES = 17  # of output times: two velocities of a density each, of 4 to 30 ms


def distances(
    runs: Sequence[xr.Dataset], at: Array, pairs: Mapping[str, tuple[int, int]], orders: Sequence[float]
) -> Variables:
    """Return d_p of each pair of particles and a density by time and order; nothing if no pair has it."""
    values, errors = np.full((2, len(pairs), at.size, len(orders)), np.nan)
    for i, _, tokens, run in tokens_beside(runs, pairs):
        with suppress(InputError):
            values[i], errors[i] = coupled(runs[tokens], runs[run], at, orders)
    if np.isnan(values).all():
        return {}
    return {"coupled": (("pair", "time", "p"), values), "coupled_error": (("pair", "time", "p"), errors)}


def coupled(tokens: xr.Dataset, run: xr.Dataset, at: Array, orders: Sequence[float]) -> tuple[Array, Array]:
    """Return d_p and its uncertainty, (times, orders), between particles and a run, at times ``at`` from t = 0 on.

    NaN where a parameter jumps between output times, and for texts, of which slices do not say the velocity.
    """
    problem, common = problem_of(tokens), np.intersect1d(tokens["time"].values, run["time"].values)
    times, pieces = spread_times(common, at, _MOST_TIMES), segments(problem.block.breakpoints, float(at[-1]))
    first = measure(tokens, 0)
    assert isinstance(first, Particles)
    text = problem.block.causal and isinstance(problem.initial, Ordered)
    if (
        text
        or times.size < _LEAST_TIMES
        or obstacle(problem, tokens)
        or not np.isin([start for start, _ in pieces], times).all()
    ):
        return np.full((at.size, len(orders)), np.nan), np.full((at.size, len(orders)), np.nan)
    chosen, weights = targets(first)
    s = first.s[chosen] if first.s is not None and problem.block.causal else None
    positions = {t: tokens["position"].sel(time=t).values[chosen] for t in times.tolist()}
    flows, own = (problem.flow(), problem.flow()), dict[tuple[float, float], Array]()

    def difference(t: float, when: float, apart: Array) -> Array:
        """Return Gamma_nu(x + apart) - Gamma_mu(x) at time t, by the parameters at ``when``."""
        x = positions[t]
        if (t, when) not in own:
            own[t, when] = flows[0].velocity(measure(tokens, t), x, when, s=s).values
        return flows[1].velocity(measure(run, t), x + apart, when, s=s).values - own[t, when]

    def follow(steps: Array) -> dict[float, Array]:
        """Return y - x (m, d) at the times of steps."""
        apart, states = np.zeros_like(positions[0.0]), {0.0: np.zeros_like(positions[0.0])}
        for start, end in pieces:
            here = steps[(start <= steps) & (steps <= end)].tolist()
            rate = difference(here[0], here[0], apart)
            for before, t in itertools.pairwise(here):
                ahead = difference(t, inside(t, start, end), apart + (t - before) * rate)
                apart = states[t] = apart + (t - before) / 2 * (rate + ahead)
                rate = difference(t, inside(t, start, end), apart)
        return states

    fine = follow(times)
    coarse = follow(np.unique([*times[::2], times[-1], *(start for start, _ in pieces)]))
    values, errors = np.empty((2, at.size, len(orders)))
    for j, p in enumerate(orders):
        powers = np.array([np.linalg.norm(fine[t], axis=1) ** p for t in at.tolist()])
        means = powers @ weights
        spreads = np.sqrt(np.square(powers - means[:, None]) @ weights * np.square(weights).sum())
        values[:, j] = means ** (1 / p)
        gaps = [(np.linalg.norm(fine[t] - state, axis=1) ** p @ weights) ** (1 / p) for t, state in coarse.items()]
        errors[:, j] = (
            (means + deviations(1 / np.square(weights).sum()) * spreads) ** (1 / p)
            - values[:, j]
            + np.interp(at, list(coarse), gaps)
        )
    return values, errors
