"""Which solutions can be compared: those of one attention, at the output times that they share; and their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.problem import Problem
from vlasov.solvers import problem_of
from vlasov.solvers.dataset import RUN, require


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


def spread(times: Array, count: int) -> Array:
    """So many of them at most, evenly spread in time, the first and the last among them."""
    if times.size <= count:
        return times
    wanted = np.linspace(times[0], times[-1], count) if count > 1 else times[-1:]
    return times[np.unique([int(np.abs(times - t).argmin()) for t in wanted])]


def names(datasets: Sequence[xr.Dataset]) -> list[str]:
    """Their solvers, numbered where one solver made several."""
    solvers = [str(dataset.attrs["solver"]) for dataset in datasets]
    return [
        solver if solvers.count(solver) == 1 else f"{solver} {solvers[: i + 1].count(solver)}"
        for i, solver in enumerate(solvers)
    ]
