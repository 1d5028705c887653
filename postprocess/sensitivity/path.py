"""A solution by tokens with all that its derivative needs: the steps of DOP853, their stages, and J at each.

    y_new = y + h sum_j b_j k_j,   k_s = f(t + c_s h, y_s),   y_s = y + h sum_j a_sj k_j

Steps are those of the particle solver's stepper for tokens and a change h' = J h that goes along, since changes may
grow where tokens rest; they end at output times and where parameters jump. From their sizes the discrete flow is made
again, stage by stage, so that M, its derivative, is exact, and so is its transpose.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from vlasov.checks import Array, finite
from vlasov.errors import SolverError
from vlasov.flow import Flow
from vlasov.linearised import Linearised
from vlasov.measures import Particles
from vlasov.solvers.ode import integrate
from vlasov.solvers.ode.clouds import Tokens, right_hand_side
from vlasov.solvers.ode.dop853 import STAGES, A, B, C
from vlasov.solvers.ode.integrate import BlowUpWatch, inside, segments, size
from vlasov.solvers.ode.runge_kutta import CloudDOP853

KEPT = 1.5e9  # bytes of linearisations, beyond which they are made anew for each product
STATES = 1.5e9  # bytes of stages, beyond which they are made anew too
MOST_STEPS = 4000
NODES = 3  # of Gauss in time in each step, for integrals


class Node(NamedTuple):
    """A place of the quadrature in time: when, and the tokens there."""

    t: float
    points: Array


class Step:
    """One step: where it begins, and its stages, each with its derivative."""

    def __init__(self, path: Path, t: float, h: float, y: Array, segment: tuple[float, float]) -> None:
        self.t, self.h, self.start, self.segment, self._path = t, h, y, segment, path
        self._stages: list[Array] = []
        self._linear: list[Linearised | None] = [None] * STAGES

    def time(self, stage: int) -> float:
        """Return t + c_s h, where parameters have the values of this segment."""
        return inside(self.t + C[stage] * self.h, *self.segment)

    def stages(self) -> list[Array]:
        """Return y_s, s = 0, ..., 11, which are kept if there is memory for all steps."""
        if self._stages:
            return self._stages
        flow, cloud = self._path.flow, self._path.cloud
        stages, slopes = [self.start], np.empty((STAGES, *self.start.shape))
        for s in range(1, STAGES):
            flow.velocity(cloud.moved(stages[-1]), stages[-1], self.time(s - 1), out=slopes[s - 1])
            stages.append(self.start + self.h * mixed(A[s, :s], slopes))
        if self._path.keeps_states:
            self._stages = stages
        return stages

    def at(self, stage: int) -> Linearised:
        """Return J at a stage, which is kept if there is memory for it."""
        if (kept := self._linear[stage]) is not None:
            return kept
        linear = self._path.flow.linearised(self._path.cloud.moved(self.stages()[stage]), self.time(stage))
        if self._path.takes(linear):
            self._linear[stage] = linear
        return linear

    def forget(self) -> None:
        """Free the derivatives."""
        self._linear = [None] * STAGES


class Path:
    """Tokens from the first of increasing times on, through all of them, as far as there is a solution.

    ``tolerance`` is the local error of a step, relative to the size of the cloud, and to that of a change.

    Attributes: ``reached``, the times that were reached, with the tokens there, ``outputs``; ``steps``, and for each
    time that was reached, how many of the steps end before it, ``ends``; ``nodes``, places of the quadrature in time,
    step by step; ``kept``, bytes of derivatives; ``status``, "completed", "blow-up" at ``blow_up_time``, or "stopped"
    for a ``reason``.
    """

    def __init__(self, cloud: Particles, flow: Flow, times: Array, tolerance: float) -> None:
        self.cloud, self.flow, self.steps = cloud, flow, list[Step]()
        self.reached, self.ends, self.outputs = [float(times[0])], [0], [cloud.points]
        self.nodes: list[list[Node]] = []
        self.status, self.blow_up_time, self.reason = "completed", math.nan, ""
        self.kept, self._products = 0.0, 0
        self._nodes = np.polynomial.legendre.leggauss(NODES)[0]
        try:
            self._integrate(times, tolerance)
        except SolverError as error:
            self.status, self.reason = "stopped", str(error)
        self._drop_steps()
        self.keeps_states = cloud.points.nbytes * STAGES * len(self.steps) <= STATES

    def _integrate(self, times: Array, tolerance: float) -> None:
        """Steps of the particle solver's stepper, cut at output times."""
        tokens, points, change = Tokens(self.cloud, self.flow), self.cloud.points.ravel(), _generic(self.cloud)
        atol, waiting, end = tolerance * size(self.cloud), times[1:].tolist(), float(times[-1])
        count = points.size
        first = float(times[0])
        for start, stop in segments(self.flow.breakpoints, end):
            if stop <= first:
                continue
            watch, start = BlowUpWatch(math.inf), max(start, first)
            stops = sorted({stop, *(t for t in waiting if start < t <= stop)})
            rhs, next_step, began = _with_change(tokens, (start, stop)), 0.0, start
            while stops:
                y = np.concatenate([points, change * (size(self.cloud) / np.sqrt(np.mean(change**2)))])
                for method in integrate.steps(
                    rhs, (began, stops[0]), y, rtol=tolerance, atol=atol,
                    stepper=_longer(tokens, next_step), taken=len(self.steps),
                ):  # fmt: skip
                    self._take(method, points, (start, stop))
                    cut = method.t - method.t_old < 0.9 * next_step
                    next_step = max(method.h_abs, next_step) if cut else method.h_abs
                    points, change, began = method.y[:count].copy(), method.y[count:], method.t
                    rate = integrate.growth_rate(points, method.f[:count])
                    if watch.sees(method.t, rate) or not finite(points):
                        self.status, self.blow_up_time = "blow-up", watch.time
                        return
                    if len(self.steps) > MOST_STEPS:
                        raise SolverError(f"more than {MOST_STEPS:,} steps at t = {method.t:.6g}; shorten the horizon")
                began = stops.pop(0)
                if waiting and waiting[0] == began:
                    self.reached.append(waiting.pop(0))
                    self.ends.append(len(self.steps))
                    self.outputs.append(points.reshape(self.cloud.points.shape))

    def _take(self, method: CloudDOP853, before: Array, segment: tuple[float, float]) -> None:
        """Keep a step, and the tokens at its Gauss nodes in time."""
        t, h, shape, dense = method.t_old, method.t - method.t_old, self.cloud.points.shape, method.dense_output()
        self.steps.append(Step(self, t, h, before.reshape(shape), segment))
        times = t + h * (1 + self._nodes) / 2

        def points(at: float) -> Array:
            return dense(at)[: before.size].reshape(shape).copy()

        self.nodes.append([Node(inside(at, *segment), points(at)) for at in times.tolist()])

    @property
    def smooth(self) -> list[tuple[slice, Node, Node]]:
        """Steps between which no parameter jumps, with the tokens at the beginning of the first and the last's end."""
        cuts = [k for k, (a, b) in enumerate(itertools.pairwise(self.steps), 1) if a.segment != b.segment]
        found, ends = [], [*(step.start for step in self.steps[1:]), self.outputs[-1]]
        for start, stop in itertools.pairwise([0, *cuts, len(self.steps)] if self.steps else []):
            first, last = self.steps[start], self.steps[stop - 1]
            at = inside(last.t + last.h, *last.segment)
            found.append((slice(start, stop), Node(first.t, first.start), Node(at, ends[stop - 1])))
        return found

    def takes(self, linear: Linearised) -> bool:
        """Whether a derivative fits beside those that are kept; one that does not tell its size is not kept."""
        size = getattr(linear, "nbytes", math.inf)
        if self.kept + size > KEPT:
            return False
        self.kept += size
        return True

    def forward(self, h: Array, count: int) -> Array:
        """Return M h over the first ``count`` steps."""
        for step in self.steps[:count]:
            h = _forward(step, h)
            self._tick()
        return h

    def backward(self, p: Array, count: int) -> Array:
        """Return M^T p, by the same stages in reverse."""
        for step in reversed(self.steps[:count]):
            p = _backward(step, p)
            self._tick()
        return p

    def _tick(self) -> None:
        self._products += STAGES
        self.flow.patience.tick("products", self._products)

    def cut(self, outputs: int, reason: str) -> None:
        """Keep the first output times only."""
        self.status, self.reason = "stopped", self.reason or reason
        del self.reached[outputs:], self.ends[outputs:], self.outputs[outputs:]
        self._drop_steps()

    def _drop_steps(self) -> None:
        """Drop the steps after the last output time that was reached."""
        self.steps, self.nodes = self.steps[: self.ends[-1]], self.nodes[: self.ends[-1]]

    def forget(self) -> None:
        """Free all derivatives."""
        self.kept = 0.0
        for step in self.steps:
            step.forget()


def mixed(coefficients: Array, slopes: Array) -> Array:
    """sum_j c_j k_j; not by BLAS, whose last bits depend on the number of threads."""
    used = np.flatnonzero(coefficients)
    total = coefficients[used[0]] * slopes[used[0]]
    for j in used[1:]:
        total += coefficients[j] * slopes[j]
    return total


def _forward(step: Step, h: Array) -> Array:
    slopes = np.empty((STAGES, *h.shape))
    for s in range(STAGES):
        slopes[s] = step.at(s).tangent(h + step.h * mixed(A[s, :s], slopes) if s else h)
    return h + step.h * mixed(B, slopes)


def _backward(step: Step, p: Array) -> Array:
    duals, total = np.empty((STAGES, *p.shape)), p.copy()
    for s in reversed(range(STAGES)):
        q = B[s] * p
        for r in range(s + 1, STAGES):
            if A[r, s]:
                q += A[r, s] * duals[r]
        duals[s] = step.at(s).adjoint(step.h * q)
        total += duals[s]
    return total


def _generic(cloud: Particles) -> Array:
    """Return a change of all tokens, flat: a shift, a linear map and noise, so that no way to grow is missed."""
    random, (n, d) = np.random.default_rng(0), cloud.points.shape
    away = (cloud.points - cloud.mean) / size(cloud)
    change: Array = random.normal(size=d) + away @ random.normal(size=(d, d)) + random.normal(size=(n, d))
    return change.ravel()


def _with_change(tokens: Tokens, segment: tuple[float, float]) -> integrate.Rhs:
    """Return the right-hand side of x' = Gamma(x), h' = J h, flat, on a segment of smooth parameters."""
    velocity, (cloud, flow, _) = right_hand_side(tokens, segment), tokens
    count, shape = cloud.points.size, cloud.points.shape

    def slope(t: float, y: Array, out: Array) -> Array:
        velocity(t, y[:count], out[:count])
        linear = flow.linearised(cloud.moved(y[:count].reshape(shape)), inside(t, *segment))
        out[count:] = linear.tangent(y[count:].reshape(shape)).ravel()
        return out

    return slope


def _longer(tokens: Tokens, next_step: float) -> Callable[..., CloudDOP853]:
    """The tokens' stepper, which begins with the step that the last one would have gone on with."""

    def stepper(*given: Any, **how: Any) -> CloudDOP853:
        method = tokens.stepper(*given, **how)
        method.h_abs = next_step or method.h_abs
        return method

    return stepper
