"""Which solutions can be compared, and when: those of one attention, at output times that they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.problem import Problem
from vlasov.solvers import problem_of
from vlasov.solvers.dataset import RUN, require

_ROUNDING = 1e-9  # of the last time


def common(datasets: Sequence[xr.Dataset]) -> tuple[list[Problem], Array]:
    """The problems, which have one attention, and the output times that all share."""
    for i, dataset in enumerate(datasets):
        require(dataset, RUN, f"datasets[{i}]")
        if not dataset.attrs.get("problem"):
            raise InputError(
                "has a Python function among its parameters, which a Dataset does not keep; compare its states by "
                "vl.distance(run, other, time=...)",
                f"datasets[{i}]",
            )
    problems = [problem_of(dataset) for dataset in datasets]
    for i, problem in enumerate(problems[1:], start=1):
        if problem.to_dict()["attention"] != problems[0].to_dict()["attention"]:
            raise InputError(
                "has another attention than the first one; compare solutions of one attention", f"datasets[{i}]"
            )
        if problem.dimension != problems[0].dimension:
            sentence = (
                f"has d = {problem.dimension} but the first one d = {problems[0].dimension}; compare in one space"
            )
            raise InputError(sentence, f"datasets[{i}]")
    every = [dataset["time"].values for dataset in datasets]
    times = every[0]
    for other in every[1:]:
        times = times[np.isin(times, other)]
    if not times.size or (times.size == 1 and min(own.size for own in every) > 1):
        shared = f"only t = {times[0]:g}" if times.size else "no output time"
        raise InputError(f"have {shared} in common; run them with the same times=...", "datasets")
    return problems, times


def same(problems: Sequence[Problem]) -> bool:
    """Whether all begin with one measure."""
    return all(problem.to_dict()["initial"] == problems[0].to_dict()["initial"] for problem in problems[1:])


def pick(every: Array, times: int | ArrayLike) -> Array:
    """Return so many of the common times, evenly spread with the first and the last; or the first and those named.

    Named times after the last common one are left out, as a solution leaves out those after its blow-up.
    """
    if isinstance(times, int | np.integer):
        count = checks.integer(times, "times", least=1)
        wanted = np.linspace(every[0], every[-1], count) if count > 1 else every[-1:]
        return every if every.size <= count else every[np.unique(_nearest(every, wanted))]
    wanted = checks.vector(times, "times")
    wanted = wanted[wanted <= every[-1] * (1 + _ROUNDING)]
    places = _nearest(every, wanted)
    missing = wanted[np.abs(every[places] - wanted) > _ROUNDING * every[-1]]
    if missing.size:
        sentence = f"name t = {missing[0]:g}, which is no output time of all solutions; name those that are"
        raise InputError(sentence, "times")
    return every[np.union1d(0, places)]


def _nearest(every: Array, wanted: Array) -> NDArray[np.intp]:
    return np.abs(every[:, None] - wanted).argmin(axis=0)
