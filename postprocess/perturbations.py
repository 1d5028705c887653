"""Changes of where a solution begins: a measure that is moved, scaled or exchanged, or tokens that are drawn again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vlasov import checks
from vlasov.errors import InputError
from vlasov.measures import Measure, Particles
from vlasov.problem import Problem
from vlasov.solvers.sampling import undrawn

_WITHOUT_SEED = ("quadrature", "quantile")


def shifted(problem: Problem, by: float) -> Problem:
    """Move the initial measure by the vector (1, ..., 1) / sqrt(d), times ``by``."""
    by, d = checks.number(by, "shift"), problem.dimension
    return _from_image(problem, np.eye(d), np.full(d, by / np.sqrt(d)), "shift")


def scaled(problem: Problem, by: float) -> Problem:
    """Make the initial measure ``by`` times as wide, about its mean."""
    by, mean = checks.number(by, "scale", above=0.0), problem.initial.mean
    return _from_image(problem, by * np.eye(problem.dimension), mean - by * mean, "scale")


def exchanged(problem: Problem, initial: Measure, options: dict[str, Any]) -> tuple[Problem, dict[str, Any]]:
    """Return the problem with another initial measure, and the options that the solver then takes."""
    if initial.dimension != problem.dimension:
        raise InputError(f"has d = {initial.dimension} but the case has d = {problem.dimension}", "initial")
    if isinstance(initial, Particles) and not isinstance(problem.initial, Particles):
        options = undrawn(options)
    return replace(problem, initial=initial), options


def resampled(problem: Problem, solver: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the solver's options with another seed, if that draws other tokens."""
    if solver != "particles" or isinstance(problem.initial, Particles):
        raise InputError("needs the solver particles and an initial measure that is none of particles", "resample")
    if options.get("sampling") in _WITHOUT_SEED:
        how = "draws nothing at random; add --set solvers.particles.sampling=sobol"
        raise InputError(f'needs another sampling than "{options["sampling"]}", which {how}', "resample")
    if seed == options.get("seed", 0):
        raise InputError(f"is {seed}, the seed of the first solution; give another", "resample")
    return {**options, "seed": seed}


def _from_image(problem: Problem, matrix: checks.Array, shift: checks.Array, field: str) -> Problem:
    image = problem.initial.image(matrix, shift)
    if image is None:
        raise InputError(f"is not possible for a {problem.initial.kind}; give --initial with another measure", field)
    return replace(problem, initial=image)
