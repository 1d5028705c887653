"""The ODE of a cloud of tokens, x_i' = Gamma_mu(x_i), as one flat vector; and its moments at given times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vlasov import messages
from vlasov.checks import Array
from vlasov.errors import SolverError
from vlasov.flow import Flow
from vlasov.measures import Particles
from vlasov.solvers.ode.coordinates import Coordinates, Physical
from vlasov.solvers.ode.integrate import Rhs, inside, segments, size, steps

if TYPE_CHECKING:
    from vlasov.solvers.ode.runge_kutta import CloudDOP853

Moments = tuple[Array, Array]  # mean and covariance
Look = Callable[[], None]
_EACH = 24  # evaluations of velocities, at most and on average, for a step: twelve, and as many for rejected ones
_ANY = 1e300  # an error that is allowed where steps are given
_PHYSICAL = Physical()


def unseen() -> None:
    """Nobody looks at steps."""


class Tokens(NamedTuple):
    """Tokens that move: at time zero, by which flow, and in which coordinates."""

    cloud: Particles
    flow: Flow
    coordinates: Coordinates = _PHYSICAL

    @property
    def state(self) -> Array:
        """The state of the ODE at time zero, as one flat vector."""
        return self.coordinates.state(self.cloud.points).ravel()

    def placed(self, t: float, y: Array) -> Particles:
        """The cloud at time t, from the state of the ODE."""
        return self.cloud.moved(self.coordinates.place(t, y.reshape(self.cloud.points.shape)))

    @property
    def size(self) -> float:
        """Root mean square of the state, by which errors are measured."""
        return size(self.cloud.moved(self.state.reshape(self.cloud.points.shape)))

    def stepper(self, rhs: Rhs, t: float, y: Array, end: float, *, rtol: float, atol: float) -> CloudDOP853:
        """The method that moves them."""
        from vlasov.solvers.ode.runge_kutta import CloudDOP853

        shape = self.cloud.points.shape
        settle = None if isinstance(self.coordinates, Physical) else self.coordinates.settle
        return CloudDOP853(rhs, t, y, end, rtol=rtol, atol=atol, settle=settle and (lambda y: settle(y.reshape(shape))))


def right_hand_side(tokens: Tokens, segment: tuple[float, float]) -> Rhs:
    """The ODE on one segment of smooth parameters, for the cloud as one flat vector."""
    cloud, flow, coordinates = tokens
    shape = cloud.points.shape

    def slope(t: float, y: Array, out: Array) -> Array:
        inner = inside(t, *segment)
        x = coordinates.place(inner, y.reshape(shape))
        velocity = flow.velocity(cloud.moved(x), x, inner, out=out.reshape(shape)).values
        coordinates.slope(inner, x, velocity)
        return out

    return slope


def moments(
    tokens: Tokens, times: Sequence[float], tolerance: float, most: int, look: Look = unseen
) -> Iterator[Moments]:
    """Mean and covariance at increasing times, by steps of its own, each of which calls ``look``.

    Ends early rather than take more than ``most`` steps.
    """
    return _told(states(tokens, times, tolerance, most, look))


def states(
    tokens: Tokens, times: Sequence[float], tolerance: float, most: int, look: Look = unseen
) -> Iterator[Particles]:
    """The cloud at increasing times, as ``moments``; each lasts until the next is asked for."""
    y, waiting, count = tokens.state, list(times), 0
    yield from _at_rest(tokens, y, waiting)
    atol = tolerance * tokens.size
    for segment in segments(tokens.flow.breakpoints, times[-1]) if waiting else []:
        rhs = _at_most(tokens.flow.evaluations + _EACH * most, tokens.flow, right_hand_side(tokens, segment))
        for step in steps(rhs, segment, y, rtol=tolerance, atol=atol, stepper=tokens.stepper, taken=count):
            yield from _due(tokens, step, waiting)
            y, count = step.y, count + 1
            look()
            if count > most:
                return


def _at_most(evaluations: int, flow: Flow, rhs: Rhs) -> Rhs:
    """The same velocities, so many of them: rejected steps cost as much as others, and are not counted as steps."""

    def limited(t: float, y: Array, out: Array) -> Array:
        if flow.evaluations > evaluations:
            raise SolverError(messages.TOO_MANY_EVALUATIONS(evaluations=evaluations, time=t))
        return rhs(t, y, out)

    return limited


def moments_in_steps(tokens: Tokens, times: Sequence[float], ends: Sequence[float]) -> Iterator[Moments]:
    """Mean and covariance at increasing times, by steps that end at given times, the jumps of parameters among them."""
    y, waiting = tokens.state, list(times)
    yield from _told(_at_rest(tokens, y, waiting))
    for start, end in segments(tokens.flow.breakpoints, max(ends, default=0.0)) if waiting else []:
        rhs = right_hand_side(tokens, (start, end))
        method = tokens.stepper(rhs, start, y, end, rtol=0.0, atol=_ANY)
        for reached in (t for t in ends if start < t <= end):
            method.h_abs = reached - method.t
            method.step()
            if method.status == "failed":
                return
            yield from _told(_due(tokens, method, waiting))
        y = method.y


def _at_rest(tokens: Tokens, y: Array, waiting: list[float]) -> Iterator[Particles]:
    if waiting and waiting[0] == 0.0:
        waiting.pop(0)
        yield tokens.placed(0.0, y)


def _due(tokens: Tokens, step: CloudDOP853, waiting: list[float]) -> Iterator[Particles]:
    """At those times that a step has passed, which are taken from the list."""
    dense = step.dense_output() if waiting and waiting[0] < step.t else None
    while waiting and waiting[0] <= step.t:
        time = waiting.pop(0)
        yield tokens.placed(time, step.y if dense is None or time == step.t else dense(time))


def _told(clouds: Iterator[Particles]) -> Iterator[Moments]:
    return ((cloud.mean, cloud.covariance) for cloud in clouds)
