"""Twice the cells along each axis, where a run that chose them finds that it is wrong, and where that is cheap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vlasov.errors import InputError, SolverError
from vlasov.problem import Problem
from vlasov.solvers.accuracy import NOTABLE
from vlasov.solvers.budget import Budget
from vlasov.solvers.finite_volume import blow_up, solver
from vlasov.solvers.finite_volume.judge import judge
from vlasov.solvers.finite_volume.options import PARTS, Options, few_slices, is_text
from vlasov.solvers.record import Record

_PAYS = 0.9  # errors that do not fall so far are not those of cells
_CHEAP = 2e7  # cells times evaluations of the velocity, of all runs together: some ten seconds


def run(problem: Problem, options: Options, record: Record) -> Record:
    """Integrate into the record and judge; again as long as the run is wrong, but less so. The best record."""
    alone = _unmasked(problem)
    free = options.slices is None
    if is_text(problem):
        options = replace(options, frame=PARTS, slices=options.slices or few_slices(problem))
    else:
        problem = alone
    solver.run(alone, options, record)
    unsure, spent = judge(problem, record), 0.0
    while _may_gain(options, record, unsure):
        spent += _work(record) * 2 ** (1 + problem.dimension)
        if spent > _CHEAP:
            break
        cells = tuple(2 * int(count) for count in record.resolved["cells"])
        finer = Record(record.times, record.report, Budget(problem.horizon, options.max_steps))
        try:
            if free and options.slices:
                options = replace(options, slices=2 * options.slices)
            solver.run(alone, replace(options, cells=cells, frame=record.resolved["frame"]), finer)
            unsure = judge(problem, finer)
        except (InputError, SolverError, np.linalg.LinAlgError, MemoryError):  # the run itself is done
            break
        if finer.status != record.status or not finer.largest_error <= _PAYS * record.largest_error:
            break
        finer.attributes["refinements"] = 1.0 + float(record.attributes.get("refinements", 0.0))
        record = finer
    blow_up.tell(problem, record)
    return record


def _unmasked(problem: Problem) -> Problem:
    """Without the mask: what slices of a text see is the solver's to say, and where there is one law it is that."""
    if not problem.attention.causal:
        return problem
    given = {"initial": problem.initial, "horizon": problem.horizon, "name": problem.name}
    return Problem.trusted(attention=problem.attention.unmasked, **given)


def _may_gain(options: Options, record: Record, unsure: float) -> bool:
    """Whether the number of cells is ours to choose, the error notable, and known so well that less can be seen."""
    return options.cells is None and record.status == "completed" and unsure <= NOTABLE < record.largest_error


def _work(record: Record) -> float:
    assert record.flow is not None
    return float(record.flow.evaluations * record.series["density"][0].size)
