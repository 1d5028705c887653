"""The code of a step, made for many covariances at a time: what kernels call; see ``layout`` for where things are.

Each function takes the memory, and three literal numbers: d, whether there are means, and the order of the method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from numba.core import types
from numba.extending import intrinsic

from vlasov.compiled import lanes
from vlasov.compiled.lanes import Lane, Memory, magnitude, rough_power, sqrt, where
from vlasov.solvers.covariances import formulas, layout as places
from vlasov.solvers.covariances.layout import (
    ACTIVE,
    ATTEMPTS,
    BEFORE,
    BLOWN_UP,
    DIVERGING,
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
    STEEPEST,
    STEP,
    STEPS,
    STOPPED,
    TARGET,
    TIME,
    UNIT,
    Layout,
    layout,
)
from vlasov.solvers.ode.integrate import AGREEMENT, RESOLUTION

_SAFETY, _SHRINK, _GROW, _MINOR = 0.9, 0.2, 8.0, 0.01
_LEAST = 1e-30  # squares of errors below which steps grow no faster
_SHORTEST = 1e-14  # step, as a share of t
_STEEP, _TOWARDS = 4.0, 0.6  # step times |B| at most; share of the way to a blow-up
_PLANNED = 0.8  # of that at most: |B| may grow on the way
_TINY = 1e-200
_FILES = tuple(str(module.__file__) for module in (lanes, formulas, places))


def _made(body: Callable[..., Any], result: Any) -> Any:
    """What writes the code of an intrinsic."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        d, means, order = (signature.args[1 + i].literal_value for i in range(3))
        memory = Memory(context, builder, signature.args[0], arguments[0])
        found = body(memory, layout(d, bool(means), order), *arguments[4:])
        return context.get_dummy_value() if result == types.void else found

    return generate


def begin(memory: Memory, at: Layout) -> None:
    """How far this step goes: to the next output at most."""
    left, natural = memory[TARGET] - memory[TIME], memory[NATURAL]
    memory[STEP] = where(natural < left, natural, left)
    memory[STEEPEST] = 0.0


def combine(memory: Memory, at: Layout, stage: Any) -> None:
    """The state at a stage, from 1 on; at the last one, the state at the end of the step."""
    table, step = at.tableau, memory[STEP]

    def weigh(weights: Any) -> None:
        def one(c: Any) -> None:
            total = memory[memory.shifted(at.state, c)]
            total = total + step * _weighted(memory, at, weights, c)
            memory[memory.shifted(at.trial, c)] = total

        memory.each(at.n, one)

    rows = [*(table.A[i, :i] for i in range(table.stages)), table.B]
    memory.choose(stage, [partial(weigh, row) if i else (lambda: None) for i, row in enumerate(rows)])


def _weighted(memory: Memory, at: Layout, weights: Any, c: Any) -> Lane:
    """sum_j w_j k_j of a component."""
    total = None
    for j, weight in enumerate(weights):
        if weight != 0:
            part = memory[memory.shifted(at.stages + j * at.n, c)] * float(weight)
            total = part if total is None else total + part
    assert total is not None
    return total


def head(memory: Memory, at: Layout, number: Any, *, kind: int) -> None:
    """Add V C A to B, and V (m_0 + C A alpha) to b + B alpha."""
    d = at.d
    B, moved = _head(memory, at, memory.shifted(at.heads, memory.times(number, at.head)), kind)
    memory.put(at.matrix, (memory.matrix(at.matrix, d, d) + B).flat)
    if at.means:
        memory.put(at.moved, memory.matrix(at.moved, d, 1)[:, 0] + moved)


def clear(memory: Memory, at: Layout) -> None:
    """No heads yet."""
    for c in range(at.d * at.d):
        memory[at.matrix + c] = 0.0
    for c in range(at.d):
        memory[at.moved + c] = 0.0


def _head(memory: Memory, at: Layout, first: Any, kind: int) -> tuple[Any, Any]:
    d = at.d
    V, A, P = (memory.matrix(memory.shifted(i * d * d, first), d, d) for i in range(3))
    if kind == formulas.SINKHORN:
        shrunk = formulas.sinkhorn(memory.matrix(at.turned, d, d), memory.matrix(at.rows, d, d))
    else:
        factor = memory.matrix(at.trial, d, d)
        shrunk = formulas.l2(factor, P) if kind == formulas.L2 else formulas.softmax(factor)
    mean = memory.matrix(at.trial + d * d, d, 1)[:, 0] if at.means else None
    return V @ (shrunk @ A), V @ formulas.drift(kind, mean, shrunk, A, P) if at.means else None


def turn(memory: Memory, at: Layout, number: Any) -> None:
    """F and M of a head of Sinkhorn's, before any rotation."""
    d, factor = at.d, memory.matrix(at.trial, at.d, at.d)
    first = memory.shifted(at.heads, memory.times(number, at.head))
    A = memory.matrix(memory.shifted(d * d, first), d, d)
    memory.put(at.turned, factor.flat)
    memory.put(at.rows, (factor.T @ (A @ factor)).flat)
    memory[ACTIVE] = 1.0


def rotate(memory: Memory, at: Layout) -> Any:
    """A sweep of rotations; which problems need another one."""
    d, active = at.d, memory[ACTIVE] > 0
    turned, rows = memory.matrix(at.turned, d, d), memory.matrix(at.rows, d, d)
    again = formulas.sweep(turned, rows, active)
    memory.put(at.turned, turned.flat)
    memory.put(at.rows, rows.flat)
    memory[ACTIVE] = where(again, 1.0, 0.0)
    return again.bits()


def finish(memory: Memory, at: Layout, stage: Any) -> None:
    """The velocity of a stage, from B."""
    d = at.d
    moved = [memory[at.moved + i] for i in range(d)] if at.means else []
    _finish(memory, at, stage, memory.matrix(at.matrix, d, d), moved)


def alone(memory: Memory, at: Layout, stage: Any) -> None:
    """The velocity of a stage, where there is one head, of softmax."""
    B, moved = _head(memory, at, at.heads, formulas.SOFTMAX)
    _finish(memory, at, stage, B, moved if at.means else [])


def _finish(memory: Memory, at: Layout, stage: Any, B: Any, moved: Any) -> None:
    squares = formulas.dot(list(B.flat), list(B.flat))
    memory[RATE] = squares
    memory[STEEPEST] = where(squares <= memory[STEEPEST], memory[STEEPEST], squares)  # NaN stays
    slope = [*(B @ memory.matrix(at.trial, at.d, at.d)).flat, *moved]
    memory.put(memory.shifted(at.stages, memory.times(stage, at.n)), slope)


def regauge(memory: Memory, at: Layout) -> None:
    """F U in place of F where a step was accepted, which is the same covariance: the next rotations will be small."""
    d, accepted = at.d, memory[ACTIVE] > 0
    turned = memory.matrix(at.turned, d, d)
    slope = memory.matrix(at.matrix, d, d) @ turned
    for c, (entry, speed) in enumerate(zip(turned.flat, slope.flat, strict=True)):
        memory[at.state + c] = where(accepted, entry, memory[at.state + c])
        memory[at.stages + c] = where(accepted, speed, memory[at.stages + c])


def judge(memory: Memory, at: Layout) -> Any:
    """Accept the step or not, choose the next one; which problems ask for attention."""
    target, step, natural, steepest = memory[TARGET], memory[STEP], memory[NATURAL], memory[STEEPEST]
    t = where(natural < target - memory[TIME], memory[TIME] + step, target)
    size, error = _measured(memory, at)
    # A blow-up behind something larger but harmless shows in B; nothing steps over it.
    accepted = (error <= 1.0) & (step * step * steepest <= _STEEP * _STEEP)
    power = rough_power(where(error > _LEAST, error, _LEAST), -0.5 / at.tableau.order)
    factor = where(error < 1 / _LEAST, _between(_SHRINK, _SAFETY * power, _GROW), _SHRINK)
    following = step * factor
    following = where(accepted, where(following > natural, following, where(step < natural, natural, following)),
                      where(following < 0.5 * step, following, 0.5 * step))  # fmt: skip
    ahead, near, foreseen = _foresee(memory, t, accepted)
    following = where(following < foreseen, following, foreseen)
    memory[NATURAL] = following
    attempts = memory[ATTEMPTS] + 1.0
    memory[ATTEMPTS] = attempts
    memory[STEPS] = memory[STEPS] + where(accepted, 1.0, 0.0)
    fate = where((t >= target) & accepted, REACHED, RUNNING)
    fate = where((attempts >= memory[MOST]) | ~(following > _SHORTEST * t), STOPPED, fate)
    fate = where(accepted & (size > memory[LARGEST]) & ~ahead, DIVERGING, fate)
    fate = where(accepted & ahead & near, BLOWN_UP, fate)
    memory[FATE] = fate
    for c in range(at.n):
        memory[at.state + c] = where(accepted, memory[at.trial + c], memory[at.state + c])
        memory[at.stages + c] = where(accepted, memory[at.last + c], memory[at.stages + c])
    memory[TIME] = where(accepted, t, memory[TIME])
    memory[ACTIVE] = where(accepted, 1.0, 0.0)
    return (fate > RUNNING).bits()


def _measured(memory: Memory, at: Layout) -> tuple[Any, Any]:
    """|F|^2 at the end of the step, and the square of the local error of F and alpha in units of the tolerance."""
    square, unit = at.d * at.d, memory[UNIT]

    def size(first: int, last: int) -> tuple[Any, Any]:
        before, after = ([memory[place + c] for c in range(first, last)] for place in (at.state, at.trial))
        old, new = formulas.dot(before, before), formulas.dot(after, after)
        return new, where(new > old, new, old)

    new, scale = size(0, square)
    parts = [(0, square, unit / (scale + _TINY))]
    if at.means:
        parts.append((square, at.n, unit / (scale + size(square, at.n)[1] + _TINY)))
    squares = []
    for weights in at.tableau.errors:
        off = [_weighted(memory, at, weights, c) for c in range(at.n)]
        total = [formulas.dot(off[first:last], off[first:last]) * weight for first, last, weight in parts]
        squares.append(sum(total[1:], total[0]) * (memory[STEP] * memory[STEP]))
    if len(squares) == 1:
        return new, squares[0]
    five, three = squares
    return new, where(five > 0, five * (five / (five + _MINOR * three)), 0.0 * five)


def _foresee(memory: Memory, t: Any, accepted: Any) -> tuple[Any, Any, Any]:
    """Whether a blow-up lies ahead, and whether it is so near that its time is known; how far the next step may go.

    As ``solvers.ode.integrate.BlowUpWatch``.
    """
    before, inverse, expected = memory[BEFORE], memory[INVERSE], memory[EXPECTED]
    now = 1 / sqrt(memory[RATE])
    falls = (now < inverse) & (inverse < math.inf)
    foreseen = where(falls, t + now * (t - before) / (inverse - now), math.inf)
    agree = magnitude(foreseen - expected) <= AGREEMENT * (expected - before)
    ahead = agree & (foreseen <= memory[END])
    near = (foreseen - t < RESOLUTION * t) & (t < memory[END])
    for place, value, old in ((BEFORE, t, before), (INVERSE, now, inverse), (EXPECTED, foreseen, expected)):
        memory[place] = where(accepted, value, old)
    farthest = where(
        _TOWARDS * (foreseen - t) < _PLANNED * _STEEP * now, _TOWARDS * (foreseen - t), _PLANNED * _STEEP * now
    )
    return ahead, near, where(accepted, farthest, math.inf)


def _between(least: float, number: Any, most: float) -> Any:
    number = where(number > least, number, least)
    return where(number < most, number, most)


def _intrinsic(body: Callable[..., Any], result: Any = types.void) -> Any:
    """The function for kernels."""

    def typed(typing_context, memory, d, means, order):  # type: ignore[no-untyped-def]
        return result(memory, d, means, order), _made(body, result)

    typed.files = _FILES  # type: ignore[attr-defined]  # see ``vlasov.jit``
    return intrinsic(prefer_literal=True)(typed)


def _numbered(body: Callable[..., Any], result: Any = types.void) -> Any:
    """The same, with a whole number."""

    def typed(typing_context, memory, d, means, order, number):  # type: ignore[no-untyped-def]
        return result(memory, d, means, order, types.int64), _made(body, result)

    typed.files = _FILES  # type: ignore[attr-defined]  # see ``vlasov.jit``
    return intrinsic(prefer_literal=True)(typed)


begin_step = _intrinsic(begin)
combine_stages = _numbered(combine)
clear_heads = _intrinsic(clear)
softmax_head = _numbered(partial(head, kind=formulas.SOFTMAX))
l2_head = _numbered(partial(head, kind=formulas.L2))
sinkhorn_head = _numbered(partial(head, kind=formulas.SINKHORN))
turn_factor = _numbered(turn)
softmax_alone = _numbered(alone)
rotate_rows = _intrinsic(rotate, types.int64)
finish_stage = _numbered(finish)
turn_state = _intrinsic(regauge)
judge_step = _intrinsic(judge, types.int64)
