"""``solve``: checks a problem, a solver and its options, runs the solver, and returns the Dataset."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from vlasov import checks, messages
from vlasov.checks import Array
from vlasov.compiling import Stopwatch
from vlasov.errors import InputError, LateInputError, SolverError, choose, interrupted
from vlasov.measures import Particles
from vlasov.problem import Problem
from vlasov.solvers import dataset as schema, memory
from vlasov.solvers.budget import Budget
from vlasov.solvers.files import as_path
from vlasov.solvers.options import parse
from vlasov.solvers.progress import progress_bar, silent
from vlasov.solvers.record import Record
from vlasov.solvers.sampling import check_own_tokens
from vlasov.solvers.targets import check_suffix, check_target, origin, rescue

SOLVERS = {
    "gaussian": "vlasov.solvers.gaussian",
    "particles": "vlasov.solvers.particles",
    "finite-volume": "vlasov.solvers.finite_volume",
    "layers": "vlasov.solvers.layers",
}
_LOOKING_BACK = ("finite-volume",)  # solvers whose estimates of errors need all states at the end
_JUMPING = ("layers",)  # solvers that need no flow
OUTPUTS = 101  # output times where none are asked for
_LARGE = 1e8  # bytes of states: fewer fit everywhere


def solve(
    problem: Problem,
    solver: str,
    *,
    times: ArrayLike | None = None,
    progress: bool = False,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    case: str = "",
    save: str | Sequence[str] | None = None,
    **options: Any,
) -> xr.Dataset:
    """Solve a problem: ``vl.solve`` (``vlasov.cases.solving``) without cases, and without warnings of doubtful results.

    If the run fails or is interrupted, ``output`` stays as it was, and the states until then are in another file beside
    it, run.partial.nc for run.nc, with status "stopped".
    """
    plan = prepare(problem, solver, times=times, output=output, overwrite=overwrite, save=save, options=options)
    watch = Stopwatch()
    # Moments of large states overflow before the states do.
    bar = progress_bar(problem.horizon, what=_waited_for(plan)) if progress else nullcontext(silent)
    with np.errstate(all="ignore"), bar as report:
        budget = Budget(problem.horizon, plan.options.max_steps, solver=plan.solver)
        stored, asked = (None if solver in _LOOKING_BACK else plan.keep), schema.in_time(plan.keep or frozenset())
        record = Record(plan.times, report, budget, stored, asked)
        try:
            record = _run(plan, problem, record)
        except (SolverError, KeyboardInterrupt) as error:
            record.status = "stopped"  # also where it was done, and its error was still looked for
            if plan.output is not None and record.reached:
                with rescue():  # who presses Ctrl-C twice loses nothing
                    place = schema.save_partial(_dataset(problem, plan, record, case, watch), plan.output)
                error.add_note(f"The solution up to t = {record.reached[-1]:.12g} is in {place}.")
            raise
    result = _dataset(problem, plan, record, case, watch)
    if plan.output is not None:
        schema.save(result, plan.output, overwrite=overwrite)
    return result


def _waited_for(plan: Plan) -> str:
    """What takes the time of a run, for its progress bar."""
    n = getattr(plan.options, "n", None)
    return f"{plan.solver}, {n:,} tokens" if isinstance(n, int) else plan.solver


def _run(plan: Plan, problem: Problem, record: Record) -> Record:
    """The record that the solver fills, or a better one that it returns."""
    try:
        return plan.run(problem, plan.options, record) or record
    except SolverError:
        record.rescue()  # not after an interruption, in which the latest state may be half a step
        raise
    except (SystemError, RuntimeError) as error:
        if interrupted(error):
            raise KeyboardInterrupt from None
        raise
    except MemoryError:
        record.rescue()
        raise _out_of_memory(plan, problem) from None
    except np.linalg.LinAlgError as error:
        record.rescue()
        raise SolverError(messages.LINEAR_ALGEBRA(step=record.steps, error=error)) from error


def _out_of_memory(plan: Plan, problem: Problem) -> LateInputError:
    """What takes the memory of a run, and what would take less."""
    options, initial, field = plan.options, problem.initial, "initial"
    if plan.solver == "finite-volume":
        laws = len(getattr(initial, "measures", ()))
        slices = f" in {1 + (laws - 1) * options.slices:,} slices" if options.slices else ""  # the first law has one
        cells = "as many as by default" if options.cells is None else checks.short(options.cells)
        field, size = "cells", f"is {cells}{slices}"
    elif isinstance(initial, Particles):
        field, size = "initial.points", f"are {len(initial):,}"
    elif plan.solver in ("particles", "layers"):
        field, size = "n", f"is {options.n:,}"
    else:
        size = f"has d = {problem.dimension}"
    return LateInputError(f"{size}, for which memory does not suffice; take fewer, or fewer output times", field)


class States(NamedTuple):
    """States that a run will return: how many, of how many tokens, cells or moments, and the bytes of all."""

    times: int
    size: int
    parts: str  # "tokens", "cells" or "moments"
    nbytes: int
    refined: bool  # whether the run may choose more cells

    def __str__(self) -> str:
        more = ", or more where the run refines its grid" if self.refined else ""
        return f"{self.times:,} states of {self.size:,} {self.parts}{more}"


class Plan(NamedTuple):
    """A run that has been checked: which solver, with which options, for which outputs."""

    solver: str
    run: Callable[[Problem, Any, Record], Record | None]
    options: Any
    times: Array
    output: Path | None
    origin: str  # empty where a parameter is a Python function
    states: States
    keep: frozenset[str] | None  # variables of the Dataset; None for all

    @property
    def resolved(self) -> dict[str, Any]:
        """All options with their values, defaults included."""
        return dataclasses.asdict(self.options)


def prepare(
    problem: Problem,
    solver: str,
    *,
    times: ArrayLike | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    save: object = None,
    options: Mapping[str, Any] | None = None,
) -> Plan:
    """Check everything that can be checked before any work is done; parameters as in ``solve``."""
    if not isinstance(problem, Problem):
        raise InputError(f"is a {type(problem).__name__} where a vlasov Problem is needed", "problem")
    overwrite = checks.flag(overwrite, "overwrite")
    (module, chosen), keep = resolve(solver, options or {}), schema.kept(save)
    if not problem.block.continuous and solver not in _JUMPING:
        raise InputError(
            f'is {problem.block.kind}, whose velocities jump, so no solver follows its flow; use the solver "layers"',
            "attention",
        )
    module.check(problem, chosen)
    if isinstance(problem.initial, Particles) and hasattr(chosen, "n"):
        chosen = _with_own_tokens(len(problem.initial), chosen, options or {})
    outputs = output_times(times, problem.horizon)
    if own := getattr(module, "output_times", None):  # of a solver that does not pass every time
        outputs = own(problem, chosen, None if times is None else outputs)
    target, made = None if output is None else as_path(output, "output"), ""
    with suppress(InputError) if target is None else nullcontext():  # Python functions, which no file can hold
        apart = [] if keep is None else [sorted(keep)]
        made = origin("run", problem.to_json(), solver, dataclasses.asdict(chosen), outputs.tolist(), *apart)
    if target is not None:
        check_suffix(target)
        check_target(target, made, overwrite=overwrite)
    expected = _states(problem, solver, chosen, outputs.size, keep)
    if expected.nbytes > _LARGE and expected.nbytes > (there := memory.available()):
        sentence = f"ask for {expected}, which take {1e-9 * expected.nbytes:,.3g} GB, where {1e-9 * there:,.3g} GB of "
        raise InputError(f"{sentence}memory are available; take fewer times or fewer {expected.parts}", "times")
    return Plan(solver, module.run, chosen, outputs, target, made, expected, keep)


def _with_own_tokens(count: int, chosen: Any, options: Mapping[str, Any]) -> Any:
    """Return the options with the number of the initial measure's own tokens; refuse options that draw others."""
    usual = type(chosen)()
    drawn = {name: (getattr(chosen, name), getattr(usual, name)) for name in ("sampling", "moments", "seed")}
    check_own_tokens(count, options.get("n"), drawn)
    return dataclasses.replace(chosen, n=count)


def _states(problem: Problem, solver: str, options: Any, times: int, keep: frozenset[str] | None) -> States:
    """Return the states that a run holds, as far as they are known before; grids may be refined later."""
    d, refined = problem.dimension, False
    if solver == "finite-volume":
        from vlasov.solvers.finite_volume import cells_in_all

        size, parts, numbers, refined = cells_in_all(problem, options), "cells", 1, options.cells is None
    elif solver == "gaussian" or not (keep is None or schema.holds_states(keep)):
        size, parts, numbers = d + d * d, "moments", 0
    else:
        size, parts, numbers = options.n, "tokens", d
    matrices = 2 if getattr(options, "rescaled", False) else 1
    return States(times, size, parts, 8 * times * (size * numbers + d + matrices * d * d), refined)


def resolve(solver: str, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """A solver's module, and its options with their values checked."""
    module = import_module(SOLVERS[choose(solver, SOLVERS, "solver")])
    return module, parse(module.Options, options, solver)


def _dataset(problem: Problem, plan: Plan, record: Record, case: str, watch: Stopwatch) -> xr.Dataset:
    """The Dataset of a run that has ended."""
    if plan.origin:
        record.attributes["origin"] = plan.origin
    seconds, record.attributes["compile_seconds"] = watch.read()
    options = plan.resolved | record.resolved
    return schema.build(problem, plan.solver, options, record, case=case, wall_seconds=seconds, keep=plan.keep)


def output_times(times: ArrayLike | None, horizon: float, field: str = "times") -> Array:
    """Return increasing output times in [0, horizon]; the usual ones for None."""
    if times is None:
        return np.linspace(0.0, horizon, OUTPUTS)
    outputs = checks.vector(times, field)
    if outputs.size == 0:
        raise InputError("is empty; give at least one output time", field)
    if (np.diff(outputs) <= 0).any():
        raise InputError("must increase; sort them and leave out repetitions", field)
    if outputs[0] < 0 or outputs[-1] > horizon:
        raise InputError(f"run from {outputs[0]:g} to {outputs[-1]:g} but must lie in [0, {horizon:g}]", field)
    return outputs
