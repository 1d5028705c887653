"""Energies along a solution, and the identity that they obey: what is gained is what the dissipation adds up to.

    log E(t) - log E(0) = int_0^t D / E        F(t) - F(0) = int_0^t D

The integral is that of polynomials through the ten output times around each step, exact for polynomials of degree nine;
how far it may be off is told by those through eight. So the identity is seen as well as the outputs resolve D.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.gradient_flow import energy, matrix
from vlasov.measures import Measure, Memory
from vlasov.patience import Patience
from vlasov.problem import Problem
from vlasov.tilting.results import joined

_POINTS, _FEWER = 10, 8  # of the polynomials


class Balance(NamedTuple):
    """Energies at output times, shape (k,) each; see ``vlasov.gradient_flow.Energy``.

    Attributes
    ----------
    identity_error
        How far what is gained since the first time is from the integral of the rate.
    quadrature_error
        How much of that may be the integral's own error, as two orders tell.
    """

    value: Array
    rate: Array
    log_dissipation: Array
    speed: Array
    error: Array
    method: str
    identity_error: Array
    quadrature_error: Array


def check(problem: Problem) -> None:
    """Complain about what has no energy, before any sum."""
    try:
        matrix(problem.attention)
    except InputError as mistake:
        raise mistake.inside("problem") from None
    for name in ("layer_norm", "mlp"):
        if getattr(problem, name) is not None:
            sentence = "moves tokens, too, and energies are those of attention alone; leave it out"
            raise InputError(sentence, f"problem.{name}")


def along(problem: Problem, states: Sequence[Measure], times: Array, *, tolerance: float = 1e-10) -> Balance:
    """The energy of each state of a solution at its time, and the identity between them."""
    check(problem)
    attention, workspace, memory = problem.attention, Workspace(Patience()), Memory()
    found = [energy(attention, state, tolerance=tolerance, workspace=workspace, memory=memory) for state in states]
    value, rate, log_dissipation, speed, error = (np.array([one[k] for one in found]) for k in range(5))
    off, doubt = np.full((2, times.size), np.nan)
    known = int(np.argmin(np.isfinite(np.append(rate, np.nan))))  # up to where the energy becomes infinite
    integral, doubt[:known] = running_integral(times[:known], rate[:known])
    off[:known] = np.abs(value[:known] - value[:1] - integral)
    return Balance(value, rate, log_dissipation, speed, error, joined(one.method for one in found), off, doubt)


def running_integral(times: Array, values: Array) -> tuple[Array, Array]:
    """int_{t_0}^{t_k} of the function with these values, and an estimate of its error, at every time, (k,) each."""
    if times.size < 2:
        return np.zeros(times.size), np.zeros(times.size)
    steps = _steps(times, values, min(_POINTS, times.size))
    fewer = _steps(times, values, min(_FEWER, max(1, times.size - 1)))
    rounding = 4 * np.finfo(float).eps * np.abs(steps)
    return _running(steps), _running(np.abs(steps - fewer) + rounding)


def _running(steps: Array) -> Array:
    return np.concatenate([[0.0], np.cumsum(steps)])


def _steps(times: Array, values: Array, points: int) -> Array:
    """The integral over each step of the polynomial through so many of the times around it, shape (k - 1,)."""
    first = np.clip(np.arange(times.size - 1) + 1 - points // 2, 0, times.size - points)
    around = first[:, None] + np.arange(points)
    middle, half = (times[1:] + times[:-1])[:, None] / 2, (times[1:] - times[:-1])[:, None] / 2
    nodes, weights = np.polynomial.legendre.leggauss((points + 1) // 2)
    held = (times[around] - middle) / half  # in units in which the step is [-1, 1]
    total = np.zeros(times.size - 1)
    for j in range(points):  # Lagrange's polynomials, at Gauss' nodes
        others = np.delete(held, j, axis=1)
        basis = ((nodes[:, None] - others[:, None]) / (held[:, j, None] - others)[:, None]).prod(axis=2)
        total += values[around[:, j]] * (basis @ weights)
    return total * half[:, 0]
