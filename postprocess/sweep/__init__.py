"""Many runs of one case with other values of its parameters: one Dataset with the parameters as coordinates.

A point of this study is a run: the tables of the case with these values, solved; ``saved`` says what is kept of it,
``values`` how parameters are given. A run that fails is a result too.
"""

from __future__ import annotations

import copy
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.cases.settings import PROBLEM, problem_from, put, tokens_replace
from vlasov.cases.solving import task
from vlasov.checks import Array
from vlasov.codec import encode, kind_is_ours
from vlasov.errors import InputError, did_you_mean
from vlasov.kinds import Kind
from vlasov.postprocess.panels import Curve, Image, Panel, Table, thinned
from vlasov.postprocess.studies.front import front
from vlasov.postprocess.studies.run import REASON, is_plain, label_of
from vlasov.postprocess.studies.study import Study, option
from vlasov.postprocess.sweep.saved import RUNS, Saved, Unsavable, check_saved
from vlasov.postprocess.sweep.values import check_parameters, check_runs, parsed
from vlasov.problem import Problem
from vlasov.solvers.accuracy import doubt
from vlasov.solvers.driver import Plan, prepare, solve
from vlasov.solvers.sampling import undrawn

FAILED, NOT_RUN = "failed", "not run"  # beside the statuses of runs
_SOLVERS = "solvers"
_OF_RUNS = {
    "status": "how the run ended",
    REASON: "why it failed, or is not to be trusted",
    "error_estimate": "largest of the estimated errors over time",
    "blow_up_time": "time of the blow-up",
}
_TITLES = {"mean": "mean m", "covariance": "eigenvalues of Σ", "blow_up_time": "blow-up time t*"}
_LETTERS = {"mean": "m", "covariance": "λ"}
_MOST_LINES, _MOST_PANELS, _MOST_ROWS = 6, 6, 40
_CONSTANT = 1e-12  # relative: what changes less is rounding, and left out where something else changes
_WIDE = 30.0  # ratio of the largest to the smallest value of a parameter from which its axis is logarithmic


def _lines(dataset: xr.Dataset, dims: list[str]) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield a title and numbers over the runs by their labels, of what was saved and of blow-ups."""
    beside = {*_OF_RUNS, "time", *(f"{path}_value" for path in json.loads(dataset.attrs["parameters"]))}
    names = [name for name in map(str, dataset.data_vars) if name not in beside and {*dims} <= {*dataset[name].dims}]
    for name in [*names, "blow_up_time"]:
        values, at = dataset[name], ""
        if "time" in values.dims:
            values, at = values.isel(time=-1), f" at t = {float(dataset['time'][-1]):.4g}"
        elif "time_index" in values.dims:  # each run to its own end
            values, at = values.isel(time_index=dataset["time"].notnull().sum("time_index") - 1), " at the end"
        array = values.transpose(*dims, ...).values.astype(float)
        inner = array.shape[len(dims) :]
        if name == "covariance" and len(inner) == 2:
            array, inner = _eigenvalues(array), inner[:1]
        if math.prod(inner) > _MOST_LINES or not np.isfinite(array).any():
            continue
        letter = f"{_LETTERS[name]}_" if name in _LETTERS else f"{name} "
        lines = {letter + ",".join(str(k + 1) for k in place): array[(..., *place)] for place in np.ndindex(*inner)}
        yield _TITLES.get(name, name) + at, lines if inner else {name: array}


def _eigenvalues(matrices: Array) -> Array:
    """Return the eigenvalues, the largest first; NaN where there is no matrix."""
    finite: Array = np.asarray(np.isfinite(matrices).all(axis=(-2, -1), keepdims=True))
    values = np.linalg.eigvalsh(np.where(finite, matrices, 0.0))[..., ::-1]
    return np.where(finite[..., 0], values, np.nan)


def _varies(line: Array) -> bool:
    finite = line[np.isfinite(line)]
    return finite.size > 0 and float(np.ptp(finite)) > _CONSTANT * max(1.0, float(np.abs(finite).max()))


def _panels(dataset: xr.Dataset) -> list[Panel | Image]:
    dims = [str(dim) for dim in dataset["status"].dims]
    if len(dims) > 2:
        sentence = f"has {len(dims)} parameters where one or two can be drawn; select with .sel or .isel"
        raise InputError(sentence, "dataset")
    groups = list(_lines(dataset, dims)) if dims else []
    groups = [group for group in groups if any(map(_varies, group[1].values()))] or groups
    axes = [_places(dataset, dim) for dim in dims]
    shown: list[Panel | Image] = []
    for title, lines in groups:
        if len(dims) == 1:
            ((x, label, texts),) = axes
            order, wide = np.argsort(x, kind="stable"), bool(x.min() > 0 and x.max() > _WIDE * x.min())
            curves = [Curve(name, x[order], line[order]) for name, line in lines.items()]
            shown.append(Panel(title, label, curves, logx=wide, texts=texts))
            continue
        (x, across, x_texts), (y, up, y_texts) = axes
        at = "".join(title.partition(" at ")[1:])
        names = {name: title if len(lines) == 1 else name + at for name in lines}
        shown += [Image(names[name], across, up, (x, y), line, (x_texts, y_texts)) for name, line in lines.items()]
    return shown[:_MOST_PANELS]


def _places(dataset: xr.Dataset, dim: str) -> tuple[Array, str, list[str]]:
    """Return where runs stand on an axis, its label, and texts that stand there if values are no numbers."""
    name = dim
    if dim == RUNS:
        numbers = [str(c) for c in dataset.coords if dataset[c].dims == (RUNS,) and dataset[c].dtype.kind in "if"]
        name = next((c for c in numbers if np.unique(dataset[c]).size == dataset.sizes[RUNS]), dim)
    values = dataset[name].values if name in dataset.coords else np.arange(dataset.sizes[dim])
    if values.dtype.kind in "iuf":
        return values.astype(float), f"place in {name}" if f"{name}_value" in dataset else name, []
    return np.arange(values.size, dtype=float), name, [str(value) for value in values]


def _tables(dataset: xr.Dataset) -> list[Table]:
    if not dataset["status"].dims:
        return []
    ends = {"status": "ended", "blow_up_time": "blow-up at", "error_estimate": "error"}
    frame = dataset[list(ends)].to_dataframe().reset_index()
    names = [name for name in frame if name not in ends]
    frame[names] = [[f"{v:g}" if isinstance(v, float) else str(v) for v in row] for row in frame[names].values.tolist()]
    rows = frame[[*names, *ends]].values.tolist()
    shown = f": {_MOST_ROWS} of {len(rows):,} runs" if len(rows) > _MOST_ROWS else ""
    return [Table(f"{dataset.attrs['title']}{shown}", [*names, *ends.values()], thinned(rows, _MOST_ROWS))]


def _notes(dataset: xr.Dataset) -> list[str]:
    names, counts = np.unique(dataset["status"].values, return_counts=True)
    ends = ", ".join(f"{count:,} {name}" for name, count in zip(names, counts, strict=True))
    return [f"Solver {dataset.attrs['solver']}, {dataset['status'].size:,} runs: {ends}."]


def _check_options(options: Any, name: str) -> dict[str, Any]:
    if options is None or (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
        return dict(options or {})
    raise InputError(f'is {checks.short(options)} where a table such as {{"n": 100}} is needed', name)


@dataclass(frozen=True, eq=False)
class Sweep(Study):
    """Solve d_t mu + div(mu Gamma_mu) = 0 for all values of parameters: ``{"attention.beta": [1, 2, 4]}``.

    Returns
    -------
    xarray.Dataset
        What was saved (parameters, its own dimensions), and of each run ``status``, ``reason``, ``error_estimate`` and
        ``blow_up_time`` (parameters). Parameters whose values are not single numbers or texts have places 0, 1, ... as
        coordinates and values in NAME_value. NaN stands where a run failed, after the end of a run that blew up, and
        where what is saved is smaller than elsewhere. Where a coordinate differs from run to run, such as time where
        the horizon is swept, it is a variable over places, time_index. The attribute ``trouble`` says what went wrong.

    Examples
    --------
    In d = 1 with V = 1 the blow-up comes at 1 / (2 A s) for the variance s; beta multiplies A:

    >>> problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 1.0), horizon=2.0)
    >>> values = {"attention.beta": [1.0, 2.0], "initial.covariance": [[[0.5]], [[1.0]]]}
    >>> vl.sweep(problem, values, solver="gaussian")["blow_up_time"].values.round(6)
    array([[1.  , 0.5 ],
           [0.5 , 0.25]])
    """

    kind: ClassVar = Kind(
        "sweep",
        'what vl.sweep returned or "vlasov sweep" wrote',
        title="A case for many values of its parameters",
        variables=_OF_RUNS | dict.fromkeys(("component", "component_b"), "physical coordinate"),
        panels=_panels,
        tables=_tables,
        notes=_notes,
    )
    processes: ClassVar = True
    fatal: ClassVar = (Unsavable,)

    parameters: Mapping[str, Sequence[Any] | ArrayLike] = option(
        MISSING,
        'Lists of values by "section.key", as ``--set`` has them: parts of the problem ("attention.A", '
        '"initial.radius", "horizon"), options of the solver ("solvers.particles.n"), or "attention.beta", which '
        "multiplies A in all heads.",
        check=check_parameters,
        free=True,
    )
    solver: str | None = option(None, "As in ``vl.solve``; the case's first if not given.")
    save: str | Callable[[xr.Dataset], Any] | Sequence[str | Callable[[xr.Dataset], Any]] = option(
        ("mean", "covariance"),
        "Variables of a run by name, and functions of its Dataset, which return a number, an array or a DataArray.",
    )
    product: bool = option(
        True,
        "All combinations; or the first values of all, the second of all, and so on, along the dimension run.",
        check=checks.flag,
        flag="--product/--zip",
    )
    times: ArrayLike | None = option(
        None,
        "Output times; those of the case, or 101 equidistant ones, which they also are where the horizon is swept.",
    )
    options: Mapping[str, Any] | None = option(
        None, "Options of the solver, before those of the case.", check=_check_options, flag="-"
    )
    saved: tuple[Saved, ...] = field(init=False)
    tables: dict[str, Any] = field(init=False)
    values: dict[str, list[Any]] = field(init=False)
    runs: list[dict[str, Any]] = field(init=False)

    @classmethod
    def from_settings(cls, settings: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
        fixed, swept = parsed(settings)
        if not swept:
            sentence = "gives no parameter several values; write --set attention.beta=1:10:0.5, for example"
            raise InputError(sentence, "--set")
        return fixed, {"parameters": swept}

    def validate(self) -> None:
        """Check all runs."""
        values: Any = self.parameters
        in_folder = self.output is not None and not str(self.output).endswith(".nc")
        saved, runs = check_saved(self.save, in_folder=in_folder), check_runs(values, self.product)
        what = task(self.case, self.solver, self.times)
        usual = self.times is None and "horizon" in values  # the case's own times are for its horizon
        times = None if what.times is None or usual else checks.vector(what.times, "times").tolist()
        self.put(values=values, runs=runs, saved=saved, save=tuple(one.name for one in saved), tables=_tables_of(self))
        self.put(solver=what.solver, times=times, options=encode(what.options | dict(self.options or {})) or None)
        self._planned({})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # each run repeats what the case warns of
            for run in runs:
                self._check(run)
        kinds = re.findall(r'"kind": "([^"]*)"', json.dumps([self.tables, values]))
        self.put(processes=all(map(kind_is_ours, kinds)))  # processes import no other kinds

    def _check(self, run: Mapping[str, Any]) -> None:
        try:
            self._planned(run)
        except InputError as mistake:
            if mistake.sentence.endswith(("?", ".")):  # not known, whatever its value
                raise
            only = mistake.field in run and len(run) == 1
            where = checks.short(run[mistake.field]) if only else f"in the run with {label_of(run)}"
            raise InputError(f"{mistake.sentence} ({where})", mistake.field) from None

    def _planned(self, changes: Mapping[str, Any]) -> tuple[Problem, dict[str, Any], Plan]:
        """Return problem, options and plan of a run; all that can be checked before it begins is checked."""
        tables, options, solver = dict(self.tables), dict(self.options or {}), str(self.solver)
        for head in {path.partition(".")[0] for path in changes} & set(tables):
            tables[head] = copy.deepcopy(tables[head])
        if tokens_replace(tables.get("initial"), changes.get("initial")):
            options = undrawn(options)
        for path, value in changes.items():
            head, _, rest = path.partition(".")
            if head in PROBLEM:
                put(tables, path, copy.deepcopy(value))
            elif head != _SOLVERS:
                raise InputError(f"is not a part of a problem; {did_you_mean(head, (*PROBLEM, _SOLVERS))}", path)
            elif not rest.startswith(f"{solver}."):
                example = f'"{_SOLVERS}.{solver}.OPTION"'
                raise InputError(f'is no option of "{solver}", the solver that runs; give {example}', path)
            else:
                options[rest.removeprefix(f"{solver}.")] = value
        problem = problem_from(tables)
        try:
            return problem, options, prepare(problem, solver, times=self.times, options=options)
        except InputError as mistake:
            if mistake.field in options:
                raise mistake.inside(f"{_SOLVERS}.{solver}") from None
            raise

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        return self.values if self.product else {RUNS: self.runs}

    def identity(self) -> dict[str, Any]:
        saved = [[one.name, one.digest] if one.digest else one.name for one in self.saved]
        return super().identity() | {"tables": self.tables, "save": saved}

    def attributes(self) -> dict[str, Any]:
        own = {"case": self.case.name, "parameters": json.dumps(list(self.parameters)), "product": int(self.product)}
        return super().attributes() | own

    def for_workers(self) -> Self:
        sent = super().for_workers()
        sent.put(parameters={}, values={}, runs=[])  # a worker has the values of its points
        return sent

    def measure(self, prepared: Any, **point: Any) -> xr.Dataset:
        problem, options, plan = self._planned(point if self.product else point[RUNS])
        run = solve(problem, plan.solver, times=self.times, case=self.case.name, **options)
        times = xr.DataArray(plan.times, dims="time")
        numbers = {name: float(run.attrs[name]) for name in ("error_estimate", "blow_up_time")}
        words = {"status": run.attrs["status"], "doubt": doubt(run)}
        return xr.Dataset({one.name: one.of(run, times) for one in self.saved} | words | numbers)

    def finish(self, dataset: xr.Dataset, prepared: Any) -> xr.Dataset:
        dims, doubts = tuple(self.axes), dataset["doubt"].values
        reasons = dataset[REASON].values if REASON in dataset else np.full(doubts.shape, "")
        status = np.where(reasons == "", np.where(dataset["status"] == "", NOT_RUN, dataset["status"]), FAILED)
        doubtful = np.flatnonzero(doubts)
        if doubtful.size:
            label, first = label_of(self.runs[doubtful[0]]), str(doubts.ravel()[doubtful[0]]).rstrip(".")
            words = f"{doubtful.size:,} of {doubts.size:,} runs are doubtful, the first ({label}): {first}"
            trouble = filter(None, [dataset.attrs.get("trouble"), f"{words}; see the variable reason"])
            dataset.attrs["trouble"] = "; ".join(trouble)
        told = {"status": (dims, status), REASON: (dims, np.where(reasons == "", doubts, reasons))}
        dataset = dataset.drop_vars(["doubt", REASON], errors="ignore").assign(told)
        for path, values in self.values.items():
            dataset = _with_values(dataset, path, values, path if self.product else RUNS)
        return dataset.drop_vars(RUNS, errors="ignore")


def _tables_of(study: Sweep) -> dict[str, Any]:
    """Return the tables of the problem as the case's file has them, beta included; else those of the problem."""
    problem = study.case.problem
    tables = {key: study.case.tables[key] for key in PROBLEM if key in study.case.tables} | {"name": problem.name}
    try:
        same = problem_from(tables) == problem
    except InputError:
        same = False
    return encode(tables) if same else problem.to_dict()


def _with_values(dataset: xr.Dataset, path: str, values: list[Any], dim: str) -> xr.Dataset:
    """Return the Dataset with the values of a parameter: as a coordinate, or a variable beside places."""
    if is_plain(values):
        return dataset.assign_coords({path: (dim, values, {"long_name": path})})
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError):
        array = np.array([json.dumps(value) for value in values])
    inner = [f"{path}_{k}" for k in range(array.ndim - 1)]
    return dataset.assign({f"{path}_value": ((dim, *inner), array, {"long_name": f"values of {path}"})})


sweep = front(Sweep)
