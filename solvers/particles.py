"""Lagrangian particles: x_i' = Gamma_mu(x_i) with mu the particles themselves, by DOP853 on the whole cloud.

With ``rescaled`` the unknown is z = Phi^{-1} x with Phi' = V Phi, Phi(0) = I, which stays bounded where tokens grow:

    z' = Phi^{-1} (Gamma(Phi z) - V Phi z)

Reference: Geshkovski, Letrouit, Polyanskiy, Rigollet (2023), arXiv:2305.05465.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError, choose
from vlasov.flow import Flow
from vlasov.measures import SAMPLINGS, Particles
from vlasov.problem import Problem
from vlasov.solvers.ode import integrate
from vlasov.solvers.ode.integrate import TIGHTEST, BlowUpWatch, accuracy_for, inside, segments, size, steps
from vlasov.solvers.ode.rescaling import Rescaling
from vlasov.solvers.ode.runge_kutta import CloudDOP853
from vlasov.solvers.record import Record, Snapshot

_MOST = 10**8  # particles
_METHODS = ("auto", "laplace", "all-pairs", "all-pairs-float32")
_SINGLE = 1e-5  # tightest tolerance for sums in single precision: their rounding must not look like local errors


@dataclass(frozen=True)
class Options:
    """Options of the solver "particles".

    Attributes
    ----------
    n
        Number of particles; see ``Measure.sample``. An initial measure of particles is taken as it is.
    sampling
        "sobol", "random", "quantile" or "quadrature".
    seed
        Makes "random" and "sobol" repeatable.
    tolerance
        Local error per step, relative to the size of the cloud.
    rescaled
        Integrate z = Phi^{-1} x.
    method
        How velocities are evaluated: "auto", "laplace" (linear cost, d <= 3), "all-pairs" (exact up to rounding) or
        "all-pairs-float32" (twice as fast, for tolerances from 1e-5 on).
    """

    n: int = 10_000
    sampling: str = "sobol"
    seed: int = 0
    tolerance: float = 1e-8
    rescaled: bool = False
    method: str = "auto"

    def __post_init__(self) -> None:
        if checks.integer(self.n, "n", least=1) > _MOST:
            raise InputError(f"is {self.n:g} but at most {_MOST:g} particles can be moved", "n")
        choose(self.sampling, SAMPLINGS, "sampling")
        choose(self.method, _METHODS, "method")
        checks.integer(self.seed, "seed", least=0, most=checks.SEEDS)
        checks.number(self.tolerance, "tolerance", above=TIGHTEST, below=1e-2)
        if self.method == "all-pairs-float32" and self.tolerance < _SINGLE:
            raise InputError(
                f'is {self.tolerance:g} but "all-pairs-float32" errs by 1e-7; ask for {_SINGLE:g} or more, or choose '
                '"all-pairs"',
                "tolerance",
            )


def check(problem: Problem, options: Options) -> None:
    """Refuse what particles cannot do."""
    if options.sampling == "quantile" and problem.dimension != 1:
        raise InputError(f'"quantile" needs d = 1 but the problem has d = {problem.dimension}; use "sobol"', "sampling")
    if options.rescaled and problem.attention.drift() is None:
        raise InputError(
            "needs a normalised attention, where a single token obeys x' = V x; leave it out for linear attention",
            "rescaled",
        )


def run(problem: Problem, options: Options, record: Record) -> None:
    """Integrate a cloud of particles into ``record``."""
    cloud = _initial(problem, options)
    flow = record.follow(problem.flow(tolerance=accuracy_for(options.tolerance), method=options.method))
    rescaling = Rescaling(flow, problem.horizon) if options.rescaled else None
    record.constants["weight"] = cloud.weights
    y, rtol = cloud.points.ravel(), options.tolerance
    atol = rtol * size(cloud)

    def snapshot(t: float, y: Array) -> Snapshot:
        z = y.reshape(cloud.points.shape)
        if rescaling is None:
            return _diagnostics(cloud if t == 0 else cloud.moved(z))  # its moments are known
        phi = rescaling.matrix(t)
        return _diagnostics(cloud.moved(z @ phi.T)) | {"rescaling": phi}

    record.begin(partial(snapshot, 0.0, y))
    for start, end in segments(flow.breakpoints, problem.horizon):
        watch = BlowUpWatch(end)  # growth rates jump with the parameters
        rhs = right_hand_side(flow, cloud, (start, end), rescaling)
        for step in steps(rhs, (start, end), y, rtol=rtol, atol=atol, stepper=CloudDOP853, taken=record.steps):
            due = record.due(step.t)
            dense = step.dense_output() if due and due[0] < step.t else None
            for time in due:
                record.add(time, snapshot(time, step.y if dense is None else dense(time)))
            y = step.y
            record.step(step.t, partial(snapshot, step.t, y))
            record.error_estimate += options.tolerance
            if watch.sees(step.t, integrate.growth_rate(y, step.f)):
                record.status, record.blow_up_time = "blow-up", watch.time
                return
    record.status = "completed"


def _initial(problem: Problem, options: Options) -> Particles:
    if isinstance(problem.initial, Particles):
        return problem.initial
    return problem.initial.sample(options.n, options.sampling, seed=options.seed)


def right_hand_side(
    flow: Flow, cloud: Particles, segment: tuple[float, float], rescaling: Rescaling | None = None
) -> integrate.Rhs:
    """The ODE on one segment of smooth parameters, for the cloud as one flat vector."""
    shape = cloud.points.shape

    def velocity(t: float, x: Array, out: Array) -> Array:
        return flow.velocity(cloud.moved(x), x, inside(t, *segment), out=out).values

    def physical(t: float, y: Array, out: Array) -> Array:
        velocity(t, y.reshape(shape), out.reshape(shape))
        return out

    def rescaled(t: float, y: Array, out: Array) -> Array:
        phi, result = rescaling.matrix(t), out.reshape(shape)  # type: ignore[union-attr]
        x = y.reshape(shape) @ phi.T
        relative = velocity(t, x, result) - x @ flow.values(inside(t, *segment)).T
        result[:] = np.linalg.solve(phi, relative.T).T
        return out

    return physical if rescaling is None else rescaled


def _diagnostics(cloud: Particles) -> Snapshot:
    return {
        "mean": cloud.mean,
        "covariance": cloud.covariance,
        "radius": cloud.support_radius,
        "mass": cloud.weights.sum(),
        "position": cloud.points,
    }
