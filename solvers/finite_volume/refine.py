"""Twice the cells along each axis, where a run that chose them finds that it is wrong, and where that is cheap."""

from __future__ import annotations

import math
from dataclasses import replace

from vlasov.errors import InputError, SolverError
from vlasov.problem import Problem
from vlasov.solvers.accuracy import NOTABLE
from vlasov.solvers.budget import Budget
from vlasov.solvers.finite_volume import solver
from vlasov.solvers.finite_volume.judge import judge
from vlasov.solvers.finite_volume.options import Options
from vlasov.solvers.record import Record

_PAYS = 0.5  # errors that do not fall so far are not those of cells
_CHEAP = 3e7  # cells times evaluations of the velocity: some ten seconds


def refine(problem: Problem, options: Options, record: Record) -> None:
    """Put a better run into the record as long as it is wrong, but less so each time."""
    before = math.inf
    while record.largest_error <= _PAYS * before and _is_worth_it(options, record):
        before = record.largest_error
        cells = tuple(2 * int(count) for count in record.resolved["cells"])
        finer = Record(record.times, record.report, Budget(problem.horizon, options.max_steps))
        try:
            solver.run(problem, replace(options, cells=cells, frame=record.resolved["frame"]), finer)
            judge(problem, finer)
        except (InputError, SolverError):
            return
        if finer.status != record.status or not finer.largest_error < record.largest_error:
            return
        finer.attributes["refinements"] = 1.0 + float(record.attributes.get("refinements", 0.0))
        vars(record).update(vars(finer))


def _is_worth_it(options: Options, record: Record) -> bool:
    """Whether the number of cells is ours to choose, the error notable, and the next run cheap."""
    if options.cells is not None or record.status != "completed" or record.largest_error <= NOTABLE:
        return False
    cells = record.series["density"][0].size
    return float(cells * record.flow.evaluations) * 2 ** (1 + len(record.resolved["cells"])) <= _CHEAP  # type: ignore[union-attr]
