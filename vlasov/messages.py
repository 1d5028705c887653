"""Sentences that runs say about themselves: statuses, errors, warnings and advice, as templates with named fields.

Each names the section of docs/howto/when-a-run-stops.md that says why it came, and what to do.
"""

from __future__ import annotations

from typing import NamedTuple

STATUSES_OF_RUNS = {
    "completed": "The run reached its horizon.",
    "blow-up": "The measure leaves every ball in finite time, which is physics and no failure.",
    "stopped": "The run ended before its horizon, for another reason than a blow-up.",
}
#: Of the trajectories of ``vl.covariances``.
STATUSES_OF_GAUSSIANS = STATUSES_OF_RUNS | {
    "diverging": "The covariance has grown by the factor `most_growth` with no blow-up ahead.",
    "stopped": "The trajectory needs more than `max_steps`, or its steps are lost beside t.",
}
#: Of the runs of a sweep.
STATUSES_OF_SWEEPS = STATUSES_OF_RUNS | {
    "failed": "The run raised an error, which stands in `reason`; the other runs went on.",
    "not run": "The sweep was interrupted before this run's turn.",
}


class Message(NamedTuple):
    """A template, and the section of the manual that explains it. A call returns the sentence."""

    section: str
    template: str

    def __call__(self, **values: object) -> str:
        return self.template.format(**values)


_SECTION = "too-many-steps"
STEPS_NEEDED = Message(
    _SECTION,
    "stopped at t = {time:.6g} of {horizon:g} after {steps:,} steps and {seconds:.3g} s: about {expected} steps and "
    "{left} would be needed, where max_steps is {max_steps:,}",
)
AT_ORIGIN = Message(
    _SECTION,
    "pre-norm jumps at the origin, and flows that take tokens there do not go on: take data that stay away from it, or "
    'the solver "layers"',
)

_SECTION = "a-state-that-is-not-finite"
NON_FINITE_STATE = Message(
    _SECTION,
    "non-finite state in step {step} at t = {time:.12g} with dt = {dt:.3g}: the velocity is NaN or infinite there; "
    "lower the tolerance or look at the attention's parameters at that time",
)
NON_FINITE_MOMENT = Message(
    _SECTION, "the {name} is not finite at t = {time:.12g}: the state has left the floating-point numbers"
)
NON_FINITE_LAYER = Message(
    _SECTION,
    "layer {layer} of {count}, from t = {time:.12g}: tokens are not finite after it; take more layers or a shorter "
    "horizon, look at the parameters at that time, or keep tokens from growing by vl.LayerNorm",
)
NON_FINITE_CLOUD = Message(
    _SECTION,
    "a cloud of {tokens} tokens is not finite at t = {time:.6g}: it blows up, sooner than the limit may; choose a "
    "shorter horizon",
)

_SECTION = "steps-that-are-lost"
STEP_LOST = Message(
    _SECTION,
    "step {step} at t = {time:.12g}: the step size {dt:g} is lost in rounding; fewer cells, or the solver "
    '"particles", may go on',
)
FRAMES_TOO_FAST = Message(
    _SECTION,
    "step {step} at t = {time:.6g}: how the frames move changes so fast that steps of {dt:.1g} are needed; the solver "
    '"particles" may follow the tokens',
)
FRAMES_LOST = Message(_SECTION, '{mistake}; the solver "particles" may follow the tokens')
STEP_FAILED = Message(_SECTION, "step {step} at t = {time:.12g}: {reason} Loosen the tolerance.")
TOO_MANY_EVALUATIONS = Message(_SECTION, "more than {evaluations:,} evaluations at t = {time:.12g}")

_SECTION = "matrices-memory-files"
LINEAR_ALGEBRA = Message(
    _SECTION,
    "linear algebra fails after step {step} ({error}): numbers of the problem are too far apart; scale the attention's "
    "parameters or the initial measure",
)
NOT_WRITTEN = Message(_SECTION, '"{path}" could not be written: {reason}')
NOTHING_WRITTEN = Message(_SECTION, 'nothing could be written beside "{path}": {reason}')
CAME_MEANWHILE = Message(
    _SECTION, '"{path}" came while this was computed, and holds something else; the result is in "{place}"'
)

_SECTION = "what-is-off"
STOPPED_EARLY = Message(_SECTION, "it stopped at t = {time:.4g}, before its horizon")
ERROR_OF = Message(_SECTION, "the {name} is off by an estimated {error:.2g} {unit} at t = {time:.4g}")
ERROR_UNKNOWN_FROM = Message(_SECTION, "the error of the {name} is not known from t = {time:.4g} on")
ERROR_ESTIMATE = Message(_SECTION, "the estimated error is {error:.2g}")
ERROR_UNKNOWN = Message(_SECTION, "its error is not known")

_SECTION = "too-few-tokens"
TOO_FEW_TOKENS = Message(
    _SECTION, "{tokens:,} tokens ({sampling}) stand for the initial measure no better{start}; {remedy}{until}"
)
OFF_AT_START = Message(_SECTION, ", off by {error:.1g} at t = 0")
MORE_TOKENS = Message(_SECTION, "by their rate n={n:,.0f} will do")
NO_NUMBER_OF_TOKENS = Message(_SECTION, "no number of tokens that anyone would move will do: stop earlier")
QUADRATURE = Message(_SECTION, 'sampling="quadrature" with n={n} is right to {error:g}')
GAUSSIAN_IS_EXACT = Message(_SECTION, 'the solver "gaussian" is exact here')
FINITE_VOLUME = Message(_SECTION, 'the solver "finite-volume" may do better')
ONLY_FEW_NODES = Message(_SECTION, "only {nodes:,} nodes say so, since more take too long; {remedy}")
COMPARE_TOKENS = Message(_SECTION, 'hold them against more, or against the solver "finite-volume"')
RAISE_N = Message(_SECTION, "raise n")
FIRST_TOKENS = Message(
    _SECTION,
    "under a mask the first of them see few others, and without normalisation they leave at any n as the law does not: "
    'sampling="quadrature" shows each place all of its law',
)

_SECTION = "errors-of-steps-are-amplified"
STEPS_AMPLIFIED = Message(_SECTION, "errors of steps of tolerance {tolerance:g} are amplified{where}; {remedy}{until}")
NEAR_BLOW_UP = Message(_SECTION, " near the blow-up at t = {time:.6g}")
TIGHTER = Message(_SECTION, "by proportion tolerance={tolerance:.0e} will do")
NO_TOLERANCE = Message(_SECTION, "no tolerance will do: stop earlier")
UNTIL = Message(_SECTION, "; until t = {time:.4g} errors are below {error:g}")

NOT_FOLLOWED = Message(
    "no-cloud-can-be-followed-so-far",
    "particles: V makes errors of the mean grow so fast that from t = {time:.4g} on rounding is a notable part of the "
    "spread: no cloud of tokens can be followed so far, and the run stops there",
)
ROUNDING_GROWS = Message(
    "rounding-errors-grow-over-layers",
    "rounding errors grow over {layers} layers; take fewer layers, or a shorter horizon{until}",
)

_SECTION = "the-grid-is-too-coarse"
TOO_COARSE = Message(_SECTION, "the grid is too coarse for this flow")
NARROW = Message(_SECTION, "the density has clusters or waves that are no wider than cells")
STEEP = Message(_SECTION, "tilts reached {tilt:.3g} per standard deviation, where velocities jump from cell to cell")
FEW_SLICES = Message(_SECTION, "slices or cells are too few for this flow")
PARTICLES_AGREE = Message(
    _SECTION,
    'the solver "particles" with sampling="quadrature" and n={n}{each} agrees with fewer nodes to {error:.1g}',
)
MORE_CELLS = Message(_SECTION, "take more cells: nodes in pieces of the density's own agree with fewer to {error:.1g}")
MORE_SLICES = Message(_SECTION, "take slices={slices}, and more cells")
PARTICLES_ARE_THESE = Message(_SECTION, 'the solver "particles" moves these tokens themselves')
COMPARE_GRID = Message(_SECTION, 'hold it against the solver "particles", or against more {what}')

_SECTION = "mass-left-the-grid"
MASS_LEFT = Message(_SECTION, "{percent:.2g} % of the mass left the grid, whose extent is too small")
MASS_TORN = Message(_SECTION, "{share:.1g} of the mass left the grids of the parts, which the flow pulls apart")

_SECTION = "tails-beyond-the-grid"
TAILS = Message(
    _SECTION,
    "tails that the grid does not hold were continued as those of a Gaussian, {misfit:.1g} standard deviations off",
)
TAILS_UNKNOWN = Message(_SECTION, "the velocity is no sum of tilted means, so that nobody knows which tails it needs")

_SECTION = "a-second-method-knows-no-better"
NO_BETTER = Message(_SECTION, "a second method beside it knows no better")
NO_SECOND = Message(_SECTION, "its error is not known, since no second method came to an end beside it")

BLOW_UP_TIME = Message(
    "the-time-of-a-blow-up",
    'the time of the blow-up is {known} only; the solver "particles" may tell it better',
)

_SECTION = "it-takes-long-slowrunwarning"
STEPS_EXPECTED = Message(
    _SECTION,
    "t = {time:.4g} of {horizon:g} after {steps:,} steps and {seconds:.3g} s: about {expected} steps and {left} are "
    "expected",
)
ERROR_TAKES_LONG = Message(
    _SECTION, "the run is done, but how wrong it is takes long to know, {seconds:.3g} s in all by now"
)
TAKES_LONG = Message(_SECTION, "{what} takes long: {seconds:.3g} s so far")
GROWTH_TAKES_LONG = Message(_SECTION, "the growth of small changes takes about {expected}")
STEP_TAKES_LONG = Message(
    _SECTION,
    "t = {time:.4g} of {horizon:g} after {steps:,} steps: the next has taken {seconds:.3g} s so far, {done}",
)

MESSAGES: dict[str, Message] = {name: value for name, value in list(globals().items()) if isinstance(value, Message)}
