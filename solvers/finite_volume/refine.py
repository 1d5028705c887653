"""Twice the cells along each axis, where a run that chose them finds that it is wrong, and where that is cheap."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from vlasov.errors import InputError, SlowRunWarning, SolverError, warn
from vlasov.problem import Problem
from vlasov.remedies import with_remedy
from vlasov.solvers import memory
from vlasov.solvers.accuracy import NOTABLE
from vlasov.solvers.budget import Budget
from vlasov.solvers.finite_volume import blow_up, solver
from vlasov.solvers.finite_volume.judge import judge
from vlasov.solvers.finite_volume.options import PARTS, Options, cells, few_slices
from vlasov.solvers.finite_volume.partition import chosen, components
from vlasov.solvers.record import Record
from vlasov.solvers.references import is_text

_PAYS = 0.9  # errors that do not fall so far are not those of cells
_BYTES, _LARGE = 500, 1.0  # of a cell, with its fluxes and velocities; GB that are told of
_CHEAP = 2e7  # cells times evaluations of the velocity, of all runs together: some ten seconds


def run(problem: Problem, options: Options, record: Record) -> Record:
    """Integrate into the record and judge; again as long as the run is wrong, but less so. The best record."""
    alone = problem.unmasked  # what slices of a text see is the solver's to say; where there is one law it is that
    free = options.slices is None
    if is_text(problem):
        options = replace(options, frame=PARTS, slices=options.slices or few_slices(problem))
    else:
        problem = alone
    _tell_of_size(problem, options)
    solver.run(alone, options, record)
    unsure, spent = judge(problem, record), 0.0
    while _may_gain(options, record, unsure):
        spent += _work(record) * 2 ** (1 + problem.dimension)
        if spent > _CHEAP:
            break
        finer_cells = tuple(2 * int(count) for count in record.resolved["cells"])
        finer = Record(record.times, record.report, Budget(problem.horizon, options.max_steps, solver="finite-volume"))
        try:
            if free and options.slices:
                options = replace(options, slices=2 * options.slices)
            solver.run(alone, replace(options, cells=finer_cells, frame=record.resolved["frame"]), finer)
            unsure = judge(problem, finer)
        except (InputError, SolverError, np.linalg.LinAlgError, MemoryError):  # the run itself is done
            break
        if finer.status != record.status or not finer.largest_error <= _PAYS * record.largest_error:
            break
        finer.attributes["refinements"] = 1.0 + float(record.attributes.get("refinements", 0.0))
        record = finer
    blow_up.tell(problem, record)
    return record


def cells_in_all(problem: Problem, options: Options) -> int:
    """Number of cells of all grids with which a run begins, each part of a measure on its own."""
    grids = 1
    if is_text(problem):
        options, laws = replace(options, frame=PARTS), len(getattr(problem.initial, "measures", [0]))
        grids += (options.slices or few_slices(problem)) * (laws - 1)  # the first law has one
    else:
        with suppress(np.linalg.LinAlgError):  # of parameters that overflow, as the run says
            options = chosen(problem.unmasked, options)
        grids = len(components(problem.initial)) if options.frame == PARTS else 1
    return grids * math.prod(cells(options, problem.dimension))


def _tell_of_size(problem: Problem, options: Options) -> None:
    """Warn of grids that will take much memory; refuse those that will take more than is available."""
    count, in_all = cells(options, problem.dimension), cells_in_all(problem, options)
    size, parts, grid = 1e-9 * _BYTES * in_all, in_all // math.prod(count), " x ".join(map(str, count))
    if size < _LARGE:
        return
    slices = f" in {parts:,} slices" if options.slices else ""
    sentence = f"{slices}, which take about {size:,.2g} GB"
    if size > (there := 1e-9 * memory.available()):
        reason = f"are {grid}{sentence}, where {there:.2g} GB of memory are available"
        raise InputError(f"{reason}; take fewer" + (", or fewer slices" if slices else ""), "cells")
    each = f", and each velocity {parts * (parts + 1) // 2:,} sums over one in another" if slices else ""
    warn(
        with_remedy(f"finite-volume: {grid} cells{sentence}{each}", ["take fewer {cells}"], "finite-volume"),
        SlowRunWarning,
    )


def _may_gain(options: Options, record: Record, unsure: float) -> bool:
    """Whether the number of cells is ours to choose, the error notable, and known so well that less can be seen."""
    return options.cells is None and record.status == "completed" and unsure <= NOTABLE < record.largest_error


def _work(record: Record) -> float:
    assert record.flow is not None
    return float(record.flow.evaluations * record.series["density"][0].size)
