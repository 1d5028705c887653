"""The solver "layers": the discrete Transformer, x <- x + h Gamma_mu(x), layer by layer; see ``transformer``.

What is solved is the layered map on the measure, not the flow: ``mean_error`` and ``covariance_error`` say how far the
tokens are from the same layers applied to the measure itself, by rounding and by sampling. How far the layers are from
the flow, which is O(h), is what ``vl.depth_study`` measures.

References: Vaswani et al. (2017), arXiv:1706.03762; Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError, choose
from vlasov.measures import SAMPLINGS, Particles
from vlasov.problem import Problem
from vlasov.solvers import layer_errors
from vlasov.solvers.particles import check_sampling, diagnostics
from vlasov.solvers.record import Record, Snapshot
from vlasov.solvers.sampling import MOMENTS, initial_cloud, sampling_error
from vlasov.solvers.transformer import Stack, alone, states

DEPTH = 48  # where none is given
MOST = 100_000  # layers
_MOST_TOKENS = 10**8
_METHODS = ("auto", "laplace", "all-pairs")
_OUTPUTS = 101
_WHOLE = 1e-9  # relative error of the horizon as a multiple of the step
_SAMPLED = "parameters of a layer are those at its left end"


@dataclass(frozen=True)
class Options:
    """Options of the solver "layers".

    Attributes
    ----------
    depth
        The number of layers L, with h = horizon / L: 48 if neither this nor ``step`` is given.
    step
        h itself, of which the horizon is a whole multiple: with 1 a layer is a unit of time, x <- x + Gamma(x).
        Parameters that jump do so between two layers; those that move otherwise are sampled at the left end.
    n, sampling, moments, seed
        As for "particles".
    method
        How velocities are evaluated: "auto", "laplace" (linear cost, d <= 3) or "all-pairs" (exact up to rounding).
    """

    depth: int | None = None
    step: float | None = None
    n: int = 10_000
    sampling: str = "sobol"
    moments: str = "auto"
    seed: int = 0
    method: str = "auto"

    def __post_init__(self) -> None:
        if self.depth is not None and self.step is not None:
            raise InputError("stands beside step; give either the number of layers, or the step", "depth")
        if self.depth is not None:
            checks.integer(self.depth, "depth", least=1, most=MOST)
        if self.step is not None:
            checks.number(self.step, "step", above=0.0)
        if checks.integer(self.n, "n", least=1) > _MOST_TOKENS:
            raise InputError(f"is {self.n:g} but at most {_MOST_TOKENS:g} tokens can be moved", "n")
        choose(self.sampling, SAMPLINGS, "sampling")
        choose(self.moments, MOMENTS, "moments")
        choose(self.method, _METHODS, "method")
        checks.integer(self.seed, "seed", least=0, most=checks.SEEDS)

    @property
    def max_steps(self) -> int:
        """More than there may be layers: their number is known before."""
        return 2 * MOST


def check(problem: Problem, options: Options) -> None:
    """Refuse what layers cannot do."""
    check_sampling(problem, options)
    stack = stack_of(problem, options)
    if options.step is not None and (jumps := stack.jumps_inside()):
        raise InputError(
            f"is {options.step:g}, but a parameter jumps at t = {jumps[0]:g}, inside a layer, and {_SAMPLED}; put "
            "jumps between layers, or give depth",
            "step",
        )


def stack_of(problem: Problem, options: Options) -> Stack:
    """The layers that are asked for."""
    horizon, breakpoints = problem.horizon, problem.block.breakpoints
    if options.step is None:
        return Stack(DEPTH if options.depth is None else options.depth, horizon, breakpoints)
    ratio = horizon / options.step
    if not ratio <= MOST + 0.5:
        raise InputError(f"is {options.step:g}, of which the horizon has {ratio:.4g}; at most {MOST:,} layers", "step")
    count = max(1, round(ratio))
    if abs(ratio - count) > _WHOLE * count:
        low = max(1, math.floor(ratio))
        raise InputError(
            f"is {options.step:g}, but the horizon {horizon:g} is no whole multiple of it; take a horizon of "
            f"{low * options.step:g} or {(low + 1) * options.step:g}, or a step of {horizon / count:.12g}",
            "step",
        )
    return Stack(count, horizon, breakpoints)


def output_times(problem: Problem, options: Options, asked: Array | None) -> Array:
    """Those asked for, if each is that after a layer; else those of all layers, or of 101 that are evenly chosen."""
    stack = stack_of(problem, options)
    if asked is not None:
        layers = stack.layers(asked)
        if (np.diff(layers) <= 0).any():
            raise InputError("are closer together than layers; leave some out", "times")
        return asked
    return stack.time(np.unique(np.round(np.linspace(0, stack.count, min(_OUTPUTS, stack.count + 1)))))


def run(problem: Problem, options: Options, record: Record) -> None:
    """Move tokens through the layers into ``record``, then see how wrong their moments are."""
    stack = stack_of(problem, options)
    if options.step is None:
        record.resolved = {"depth": stack.count}
    cloud = initial_cloud(problem, options.n, options.sampling, options.seed, options.moments)
    flow = record.follow(alone(problem).flow(method=options.method))
    record.budget.remedies = ("lower {n}", "take fewer layers")
    flow.patience.needed = f", and there are {stack.count:,} layers"
    record.constants["weight"] = cloud.weights
    if cloud.s is not None:
        record.constants["s"] = cloud.s
    record.attributes |= {"sampling_error": sampling_error(cloud, problem.start), "layer_step": stack.step}
    record.attributes["parameters_sampled"] = _SAMPLED
    due = dict(zip(stack.layers(record.times).tolist(), record.times.tolist(), strict=True))
    for layer, x in enumerate(states(problem, stack, cloud, flow)):
        latest = partial(_snapshot, cloud, x, layer)
        if layer == 0:
            record.begin(latest)
            continue
        if layer in due:
            record.add(due[layer], latest())
        record.step(due.get(layer, float(stack.time(layer))), latest)
    record.end("completed")
    layer_errors.tell(problem, stack, cloud, record, options.sampling)


def _snapshot(cloud: Particles, x: Array, layer: int) -> Snapshot:
    return diagnostics(cloud if layer == 0 else cloud.moved(x)) | {"layer": layer}
