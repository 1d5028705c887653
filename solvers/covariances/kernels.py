"""Loops over covariances, sixteen at a time: whoever is done makes room for the next.

What is computed for one does not depend on its neighbours: neither on their order nor on the number of threads.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import types

from vlasov.compiled.lanes import WIDTH
from vlasov.compiled.pointers import address, call
from vlasov.jit import kernel
from vlasov.solvers.covariances import code
from vlasov.solvers.covariances.formulas import L2, SINKHORN, SOFTMAX
from vlasov.solvers.covariances.layout import (
    ATTEMPTS,
    BEFORE,
    END,
    EXPECTED,
    FATE,
    INVERSE,
    LARGEST,
    MOST,
    NATURAL,
    RATE,
    REACHED,
    RUNNING,
    STATE,
    STEPS,
    TARGET,
    TIME,
    UNIT,
    layout,
)

_FIRST = 0.01  # step, in units of 1 / |B|
_SWEEPS = 20  # of rotations at most; five or six suffice
_TABLE, _LIST = types.Array(types.float64, 2, "C"), types.Array(types.int64, 1, "C")


@cache
def addresses(d: int, means: bool, order: int) -> tuple[int, int, int]:
    """Where the code is of a first velocity and of a step, made on first use; and the slot of last velocities."""
    D, MEANS, ORDER, STAGES = d, int(means), order, layout(d, means, order).tableau.stages

    @kernel()
    def velocity(memory, kinds, stage):  # type: ignore[no-untyped-def]
        """Of the trial states."""
        if kinds.size == 1 and kinds[0] == SOFTMAX:
            code.softmax_alone(memory, D, MEANS, ORDER, stage)
            return
        code.clear_heads(memory, D, MEANS, ORDER)
        for h in range(kinds.size):
            if kinds[h] == SOFTMAX:
                code.softmax_head(memory, D, MEANS, ORDER, h)
            elif kinds[h] == L2:
                code.l2_head(memory, D, MEANS, ORDER, h)
            else:
                code.turn_factor(memory, D, MEANS, ORDER, h)
                for _ in range(_SWEEPS if D > 1 else 0):
                    if code.rotate_rows(memory, D, MEANS, ORDER) == 0:
                        break
                code.sinkhorn_head(memory, D, MEANS, ORDER, h)
        code.finish_stage(memory, D, MEANS, ORDER, stage)

    @kernel()
    def begin(memory, kinds):  # type: ignore[no-untyped-def]
        """The velocities of trial states, at the beginning."""
        velocity(memory, kinds, STAGES)

    @kernel()
    def step(memory, kinds, events):  # type: ignore[no-untyped-def]
        """Try steps until a problem asks for attention; the first of ``events`` says which do, as bits."""
        happened = 0
        while happened == 0:
            code.begin_step(memory, D, MEANS, ORDER)
            for stage in range(1, STAGES + 1):
                code.combine_stages(memory, D, MEANS, ORDER, stage)
                velocity(memory, kinds, stage)
            happened = code.judge_step(memory, D, MEANS, ORDER)
            if kinds[kinds.size - 1] == SINKHORN:
                code.turn_state(memory, D, MEANS, ORDER)
        events[0] = happened

    last = layout(d, means, order).last
    return address(begin, _TABLE, _LIST), address(step, _TABLE, _LIST, _LIST), last


@kernel()
def load(memory, lane, initial, parameters, times, horizon, settings):  # type: ignore[no-untyped-def]
    """Begin a problem in a lane, but for its first velocity; settings: tolerance, growth, attempts, squares, heads."""
    size = 0.0
    for c in range(initial.size):
        memory[STATE + c, lane] = initial[c]
        if c < settings[3]:
            size += initial[c] * initial[c]
    heads = int(settings[4])
    for c in range(parameters.size):
        memory[heads + c, lane] = parameters[c]
    memory[TIME, lane], memory[END, lane] = 0.0, horizon
    memory[TARGET, lane] = times[0] if times.size > 0 else horizon
    memory[BEFORE, lane], memory[INVERSE, lane], memory[EXPECTED, lane] = 0.0, 0.0, 0.0
    memory[UNIT, lane], memory[LARGEST, lane] = 1.0 / settings[0] / settings[0], settings[1] * size
    memory[MOST, lane], memory[STEPS, lane], memory[ATTEMPTS, lane] = settings[2], 0.0, 0.0
    memory[FATE, lane] = RUNNING


@kernel()
def start(memory, kinds, n, fresh, codes):  # type: ignore[no-untyped-def]
    """The first velocities of problems that are fresh, and their first steps."""
    trial, first, last = STATE + n, STATE + 2 * n, codes[2]
    for lane in range(WIDTH):
        for c in range(n):
            memory[trial + c, lane] = memory[STATE + c, lane]
    call(codes[0], (memory, kinds))
    for lane in range(WIDTH):
        if fresh[lane]:
            for c in range(n):
                memory[first + c, lane] = memory[last + c, lane]
            rate = memory[RATE, lane] ** 0.5
            memory[NATURAL, lane] = min(memory[END, lane], _FIRST / rate if rate > 0.0 else np.inf)
            fresh[lane] = False


@kernel()
def record(memory, lane, covariance, mean):  # type: ignore[no-untyped-def]
    """Sigma = F F^T and alpha, of the state."""
    d = len(covariance)
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for k in range(d):
                total += memory[STATE + i * d + k, lane] * memory[STATE + j * d + k, lane]
            covariance[i, j] = total
            covariance[j, i] = total
    for i in range(mean.size):
        mean[i] = memory[STATE + d * d + i, lane]


@kernel()
def settle(memory, lane, times, passed, covariance, mean, last, last_mean, summary):  # type: ignore[no-untyped-def]
    """See to a problem that asks for attention; how many outputs it has passed, -1 when it is over."""
    t, fate = memory[TIME, lane], memory[FATE, lane]
    while passed < times.size and times[passed] == t:
        record(memory, lane, covariance[passed], mean[passed])
        passed += 1
    if fate == REACHED and t < memory[END, lane]:
        memory[TARGET, lane] = times[passed] if passed < times.size else memory[END, lane]
        return passed
    record(memory, lane, last, last_mean)
    summary[0], summary[1], summary[2] = fate, t, memory[EXPECTED, lane]
    summary[3], summary[4] = memory[STEPS, lane], memory[ATTEMPTS, lane]
    return -1


@kernel()
def run(problem, kinds, memory, settings, codes, results, thread, threads):  # type: ignore[no-untyped-def]
    """All problems of a thread.

    Parameters
    ----------
    problem
        Initial states (b, n); parameters, output times (., m) and horizons (., 1), with one row or b.
    memory
        For each thread (slots, lanes).
    settings
        See ``load``.
    codes
        See ``addresses``.
    results
        Covariances (b, m, d, d) and means (b, m, d) at output times; the last of them (b, d, d) and (b, d); and
        (b, 5): what became of it, when, the blow-up that was foreseen, steps, attempts.
    """
    initial, parameters, times, horizons = problem
    covariance, mean, last, last_mean, summary = results
    mine, n, following = memory[thread], initial.shape[1], thread
    mine[:] = 0.0
    mine[TARGET], mine[END], mine[MOST] = np.inf, np.inf, np.inf
    holds, passed = np.full(WIDTH, -1), np.zeros(WIDTH, np.int64)
    fresh, events, alive = np.zeros(WIDTH, np.bool_), np.full(1, 2**WIDTH - 1), 0
    while True:
        for lane in range(WIDTH):
            if not events[0] >> lane & 1:
                continue
            i = holds[lane]
            if i >= 0:
                own = times[i % len(times)]
                passed[lane] = settle(
                    mine, lane, own, passed[lane], covariance[i], mean[i], last[i], last_mean[i], summary[i]
                )
                if passed[lane] >= 0:
                    continue
                alive -= 1
                holds[lane] = -1
            if following < len(initial):
                i, following = following, following + threads
                own = times[i % len(times)]
                load(
                    mine, lane, initial[i], parameters[i % len(parameters)], own, horizons[i % len(horizons), 0],
                    settings,
                )  # fmt: skip
                passed[lane] = 0
                while passed[lane] < own.size and own[passed[lane]] == 0.0:
                    record(mine, lane, covariance[i, passed[lane]], mean[i, passed[lane]])
                    passed[lane] += 1
                if passed[lane] < own.size:
                    mine[TARGET, lane] = own[passed[lane]]
                elif own.size > 0:
                    mine[TARGET, lane] = mine[END, lane]
                holds[lane], fresh[lane] = i, True
                alive += 1
        if alive == 0:
            return
        if fresh.any():
            start(mine, kinds, n, fresh, codes)
        call(codes[1], (mine, kinds, events))
