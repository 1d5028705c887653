"""The code of a step, made for eight covariances of a dimension: what kernels call; see ``layout`` for where things are.

Each function takes the memory, and three literal numbers: d, whether there are means, and the order of the method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from numba.core import types
from numba.extending import intrinsic

from vlasov.compiled.lanes import Lane, Memory, magnitude, rough_power, sqrt, where
from vlasov.compiled import lanes
from vlasov.solvers.covariances import formulas, layout as places
from vlasov.solvers.covariances.layout import (
    ACTIVE,
    ATTEMPTS,
    BEFORE,
    BLOWN_UP,
    DIRECT,
    DIVERGING,
    END,
    EXPECTED,
    FATE,
    FLOOR,
    FORCED,
    GROWTH,
    INVERSE,
    LARGEST,
    MOST,
    NATURAL,
    RATE,
    REACHED,
    RUNNING,
    STEP,
    STEPS,
    STOPPED,
    TARGET,
    UNIT,
    Layout,
    layout,
)

RESOLUTION, AGREEMENT = 1e-9, 0.1  # as in ``solvers.ode.integrate.BlowUpWatch``
_SAFETY, _SHRINK, _GROW, _MINOR = 0.9, 0.2, 8.0, 0.01
_LEAST = 1e-30  # squares of errors below which steps grow no faster
_SHORTEST = 1e-12  # step in s
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
    """How far this step goes, and its first velocity: in s, or in t where it would pass the next output."""
    growth, natural = memory[GROWTH], memory[NATURAL]
    left = memory[TARGET] - memory[at.state + at.n - 1]
    direct = (natural >= left * growth) | (memory[FORCED] > 0)
    memory[DIRECT] = where(direct, 1.0, 0.0)
    memory[STEP] = where(direct, left, natural)
    pace = where(direct, 1.0, 1 / growth)
    for c in range(at.n - 1):
        memory[at.stages + c] = memory[at.slope + c] * pace
    memory[at.stages + at.n - 1] = pace


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


def clear(memory: Memory, at: Layout) -> None:
    """No heads yet."""
    for c in range(at.d * at.d):
        memory[at.matrix + c] = 0.0
    for c in range(at.d):
        memory[at.moved + c] = 0.0


def head(memory: Memory, at: Layout, number: Any, *, kind: int) -> None:
    """Add V C A to B, and V (m_0 + C A alpha) to b + B alpha."""
    d = at.d
    first = memory.shifted(at.heads, memory.times(number, at.head))
    V, A, P = (memory.matrix(memory.shifted(i * d * d, first), d, d) for i in range(3))
    factor = memory.matrix(at.trial, d, d)
    if kind == formulas.SINKHORN:
        shrunk = formulas.sinkhorn(memory.matrix(at.turned, d, d), memory.matrix(at.rows, d, d))
    else:
        shrunk = formulas.l2(factor, P) if kind == formulas.L2 else formulas.softmax(factor)
    memory.put(at.matrix, (memory.matrix(at.matrix, d, d) + V @ (shrunk @ A)).flat)
    if at.means:
        mean = memory.matrix(at.trial + d * d, d, 1)[:, 0]
        moved = memory.matrix(at.moved, d, 1)[:, 0] + V @ formulas.drift(kind, mean, shrunk, A, P)
        memory.put(at.moved, moved)


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
    B = memory.matrix(at.matrix, d, d)
    factor = memory.matrix(at.trial, d, d)
    squares = formulas.dot(list(B.flat), list(B.flat))
    slope = [*(B @ factor).flat]
    if at.means:
        slope += [memory[at.moved + i] for i in range(d)]
    pace = where(memory[DIRECT] > 0, 1.0, 1 / sqrt(squares + memory[FLOOR]))
    memory[RATE] = squares
    memory.put(at.found, slope)
    memory.put(memory.shifted(at.stages, memory.times(stage, at.n)), [one * pace for one in slope] + [pace])


def regauge(memory: Memory, at: Layout) -> None:
    """F U in place of F, which is the same covariance: the next rotations will be small."""
    turned = memory.matrix(at.turned, at.d, at.d)
    memory.put(at.trial, turned.flat)
    memory.put(at.found, (memory.matrix(at.matrix, at.d, at.d) @ turned).flat)


def judge(memory: Memory, at: Layout) -> Any:
    """Accept the step or not, choose the next one; which problems ask for attention."""
    last = at.n - 1
    direct = memory[DIRECT] > 0
    target, step, natural = memory[TARGET], memory[STEP], memory[NATURAL]
    t = where(direct, target, memory[at.trial + last])
    size, error = _measured(memory, at, t)
    good, late = error <= 1.0, t > target
    accepted = good & ~late
    power = rough_power(where(error > _LEAST, error, _LEAST), -0.5 / at.tableau.order)
    factor = where(error < 1 / _LEAST, _between(_SHRINK, _SAFETY * power, _GROW), _SHRINK)
    length = where(direct, step * memory[GROWTH], step) * factor
    kept = where(direct, where(length > natural, length, natural), where(late, natural, length))
    half = 0.5 * natural  # or a step in s that is too long, and one in t that is too rough, would alternate for ever
    natural = where(good, kept, where(direct & (length > half), half, length))
    memory[NATURAL] = natural
    memory[FORCED] = where(good & late, 1.0, 0.0)
    fate = where((t >= target) & accepted, REACHED, RUNNING)
    attempts = memory[ATTEMPTS] + 1.0
    memory[ATTEMPTS] = attempts
    memory[STEPS] = memory[STEPS] + where(accepted, 1.0, 0.0)
    fate = where((attempts >= memory[MOST]) | ~(natural > _SHORTEST), STOPPED, fate)
    ahead, blown = _foresee(memory, at, t, accepted)
    fate = where(accepted & (size > memory[LARGEST]) & ~ahead, DIVERGING, fate)
    fate = where(blown, BLOWN_UP, fate)
    memory[FATE] = fate
    for c in range(last):
        memory[at.state + c] = where(accepted, memory[at.trial + c], memory[at.state + c])
        memory[at.slope + c] = where(accepted, memory[at.found + c], memory[at.slope + c])
    memory[at.state + last] = where(accepted, t, memory[at.state + last])
    growth = sqrt(memory[RATE] + memory[FLOOR])
    memory[GROWTH] = where(accepted, growth, memory[GROWTH])
    return (fate > RUNNING).bits()


def _measured(memory: Memory, at: Layout, t: Any) -> tuple[Any, Any]:
    """|F|^2 at the end of the step, and the square of the local error of F, alpha and t in units of the tolerance."""
    square, unit = at.d * at.d, memory[UNIT]

    def size(first: int, last: int) -> tuple[Any, Any]:
        before, after = ([memory[place + c] for c in range(first, last)] for place in (at.state, at.trial))
        old, new = formulas.dot(before, before), formulas.dot(after, after)
        return new, where(new > old, new, old)

    new, scale = size(0, square)
    parts = [(0, square, unit / (scale + _TINY)), (at.n - 1, at.n, unit / (t * t + _TINY))]
    if at.means:
        parts.append((square, at.n - 1, unit / (scale + size(square, at.n - 1)[1] + _TINY)))
    squares = []
    for weights in at.tableau.errors:
        off = [_weighted(memory, at, weights, c) for c in range(at.n)]
        total = [formulas.dot(off[first:last], off[first:last]) * weight for first, last, weight in parts]
        squares.append(sum(total[1:], total[0]) * (memory[STEP] * memory[STEP]))
    if len(squares) == 1:
        return new, squares[0]
    five, three = squares
    return new, where(five > 0, five * five / (five + _MINOR * three), 0.0 * five)


def _foresee(memory: Memory, at: Layout, t: Any, accepted: Any) -> tuple[Any, Any]:
    """Whether a blow-up lies ahead, and whether it is so near that its time is known: see ``BlowUpWatch``."""
    before, inverse, expected = memory[BEFORE], memory[INVERSE], memory[EXPECTED]
    now = 1 / sqrt(memory[RATE])
    falls = (now < inverse) & (inverse < math.inf)
    foreseen = where(falls, t + now * (t - before) / (inverse - now), math.inf)
    agree = magnitude(foreseen - expected) <= AGREEMENT * (expected - before)
    ahead = agree & (foreseen <= memory[END])
    blown = accepted & ahead & (foreseen - t < RESOLUTION * t) & (t < memory[END])
    for place, value, old in ((BEFORE, t, before), (INVERSE, now, inverse), (EXPECTED, foreseen, expected)):
        memory[place] = where(accepted, value, old)
    return ahead, blown


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
rotate_rows = _intrinsic(rotate, types.int64)
finish_stage = _numbered(finish)
turn_state = _intrinsic(regauge)
judge_step = _intrinsic(judge, types.int64)
