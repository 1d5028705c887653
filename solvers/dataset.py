"""The output schema, "vlasov-1": the one vocabulary of every solver's Dataset, written, read and turned into measures.

Every Dataset has coordinates ``time`` and ``component`` and the variables of ``SCHEMA`` that its solver provides; its
attributes rebuild the problem and say what was done. A Dataset read back from disk is worth the same as the one
returned. Densities have the frame's axes xi, eta, zeta; ``vl.on_grid`` gives them in physical ones.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from vlasov import __version__, checks, messages
from vlasov.checks import Array
from vlasov.errors import InputError, SolverError, choose, short, some
from vlasov.kinds import Kind
from vlasov.measures import Density, Gaussian, Measure, Mixture, Particles, Sequence
from vlasov.problem import Problem
from vlasov.solvers.files import as_path, damage, write_sealed
from vlasov.solvers.record import ERRORS, Record
from vlasov.solvers.targets import check_place, check_suffix, origin_of, partial_target, undisturbed

_SCHEMA = 1
_OURS = f"vlasov-{_SCHEMA}"
_NAMED = re.compile(r"vlasov-(\d{1,9})")
CONVENTIONS = f"CF-1.11 {_OURS}"
AXES = ("xi", "eta", "zeta")  # of the frame, the first d of them
_ONCE = ("x", "y", "z")  # their names in files older than 0.1.0
RUN = Kind("run", 'what vl.solve returned or "vlasov run" wrote', title="The solution in time")
CITATION = (
    "Castin, Ablin, Carrillo, Peyre (2025): A Unified Perspective on the Dynamics of Deep Transformers, "
    "arXiv:2501.18322"
)


class Variable(NamedTuple):
    """Dimensions and long name of a variable."""

    dims: tuple[str, ...]
    long_name: str


SCHEMA = {
    "mean": Variable(("time", "component"), "mean of the measure"),
    "covariance": Variable(("time", "component", "component_b"), "covariance of the measure"),
    "radius": Variable(("time",), "largest distance from the origin in the support"),
    "mass": Variable(("time",), "total mass"),
    "mean_error": Variable(("time",), "estimated error of the mean, in standard deviations"),
    "covariance_error": Variable(("time",), "estimated error of the covariance, relative to its norm"),
    "density_error": Variable(("time",), "estimated error of the density in L1"),
    "position": Variable(("time", "particle", "component"), "token positions"),
    "weight": Variable(("particle",), "token weights"),
    "s": Variable(("particle",), "place in the sequence, from 0 to 1"),
    "layer": Variable(("time",), "layers passed"),
    "rescaling": Variable(("time", "component", "component_b"), "matrix Phi of the rescaled positions z = Phi^-1 x"),
    "density": Variable(("time", *AXES), "density in the frame, cell averages"),
    "frame_origin": Variable(("time", "component"), "origin of the frame: position = origin + matrix z"),
    "frame_matrix": Variable(("time", "component", "component_b"), "matrix of the frame: position = origin + matrix z"),
    "part_weight": Variable(("part",), "share of the mass of each part of a mixture"),
    "part_s": Variable(("part",), "place of each part in a sequence: the middle of its slice of [0, 1]"),
    **{axis: Variable((axis,), "frame coordinate") for axis in AXES},
    "blow_up_time": Variable((), "time of the blow-up"),
    "error_estimate": Variable((), "largest of the estimated errors over time"),
    "steps": Variable((), "number of steps in time"),
}


_MASKED = '"kind": "masked"'  # in the problem's text: who sees whom is said by places
OF_FRAMES = ("frame_origin", "frame_matrix")
_GO_TOGETHER = {"position": ("weight",), "density": OF_FRAMES}

_STATE = {"position": ("weight", "s"), "density": (*OF_FRAMES, *AXES, "part_weight", "part_s")}
_ALWAYS = ("mean", "covariance", *ERRORS)  # what every run has

#: Those that every part of a mixture has for itself, where a run gave each a frame of its own.
OF_PARTS = ("density", *OF_FRAMES)


def _dims(name: str, *, parts: bool) -> tuple[str, ...]:
    first, *rest = SCHEMA[name].dims
    return (first, "part", *rest) if parts and name in OF_PARTS else (first, *rest)


def kept(save: object) -> frozenset[str] | None:
    """Return the variables of a run that keeps these by name, with what belongs to them; None for all."""
    if save is None:
        return None
    names = [choose(name, SCHEMA, "save") for name in ([save] if isinstance(save, str) else checks.items(save, "save"))]
    if not names:
        raise InputError("is empty; give at least one variable", "save")
    return frozenset(_ALWAYS).union(names, *(_STATE.get(name, ()) for name in names))


def in_time(keep: frozenset[str]) -> frozenset[str]:
    """Return those of the variables to keep that a solver follows in time."""
    return frozenset(name for name in keep.difference(ERRORS) if SCHEMA[name].dims[:1] == ("time",))


def holds_states(keep: frozenset[str]) -> bool:
    """Return whether a run that keeps these variables holds tokens or a density."""
    return not keep.isdisjoint(_STATE)


def build(
    problem: Problem,
    solver: str,
    options: dict[str, Any],
    record: Record,
    *,
    case: str,
    wall_seconds: float,
    keep: frozenset[str] | None = None,
) -> xr.Dataset:
    """Return the Dataset of a run with the variables to keep, or all."""
    assert record.flow is not None  # every solver says what it follows
    parts = "part_weight" in record.constants
    variables = {
        name: (_dims(name, parts=parts)[: np.ndim(values)], values, {"long_name": SCHEMA[name].long_name, "units": "1"})
        for name, values in (record.series | record.constants).items()
        if keep is None or name in keep
    }
    told = {
        "blow_up_time": record.blow_up_time,
        "error_estimate": record.largest_error,
        "steps": record.steps,
    }
    scalars = {name: ((), value, {"long_name": SCHEMA[name].long_name, "units": "1"}) for name, value in told.items()}
    dataset = xr.Dataset(
        variables | scalars,
        {"time": ("time", np.array(record.reached), {"long_name": "time", "units": "1"})} | labels(problem.dimension),
    )
    dataset.attrs = {
        **provenance(problem, RUN),
        "case": case,
        "solver": solver,
        "options": json.dumps(options),
        "status": record.status,
        **told,
        "method": ", ".join(sorted(record.flow.methods)),
        "velocity_error_bound": record.flow.error_bound,
        "velocity_evaluations": record.flow.evaluations,
        **record.flow.told,
        "advice": "",
        **record.attributes,
        "wall_seconds": wall_seconds,
    }
    if keep is not None:
        dataset.attrs["saved"] = ", ".join(name for name in SCHEMA if name in dataset.data_vars and name not in told)
    return dataset


def labels(dimension: int) -> dict[str, Any]:
    """Coordinates that name the components of vectors and matrices: x_1, ..., x_d."""
    names = [f"x_{k}" for k in range(1, dimension + 1)]
    return {name: (name, names, {"long_name": "physical coordinate"}) for name in ("component", "component_b")}


def provenance(problem: Problem, kind: Kind) -> dict[str, Any]:
    """Return attributes of every Dataset: its kind and problem, and by which version it was made."""
    try:
        text = problem.to_json()
    except InputError:  # a parameter is a Python function: fine in memory, refused when a file is written
        text = ""
    return {
        "Conventions": CONVENTIONS,
        "kind": kind.name,
        "title": problem.name or _title(problem),
        "problem": text,
        "vlasov_version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "citation": CITATION,
    }


def _title(problem: Problem) -> str:
    around = problem.block.kind.removeprefix(problem.attention.kind)
    title = f"{problem.attention.kind} attention{around} on {some(problem.initial.kind)}"
    return (title[0].upper() + title[1:]).replace("gaussian", "Gaussian")


def several(datasets: tuple[Any, ...]) -> list[Any]:
    """Return what a function was called with as a list: one argument or more, or a single list of them."""
    single = len(datasets) == 1 and isinstance(datasets[0], list | tuple)
    if not (items := list(datasets[0] if single else datasets)):
        raise InputError("is empty; give at least one solution", "datasets")
    return items


def tell_apart(datasets: Collection[xr.Dataset], labels: Collection[str] | None = None) -> list[str]:
    """Return the labels, else names that tell solutions apart: by solver, title or case, or by solver and number."""
    if labels is not None:
        if len(labels) != len(datasets):
            raise InputError(f"holds {len(labels)} names for {len(datasets)} solutions; give one each", "labels")
        return [str(label) for label in labels]
    for attribute in ("solver", "title", "case"):
        names = [str(dataset.attrs.get(attribute, "")) for dataset in datasets]
        if all(names) and len(set(names)) == len(names):
            return names
    solvers = [str(dataset.attrs.get("solver", "run")) for dataset in datasets]
    return [
        solver if solvers.count(solver) == 1 else f"{solver} {solvers[:place].count(solver)}"
        for place, solver in enumerate(solvers, 1)
    ]


def require(dataset: Any, kind: Kind, field: str = "dataset") -> None:
    """Complain about a Dataset that is not of this kind, or whose time, moments or texts are not what they should be.

    One that names no kind is a run if it has a run's moments.
    """
    if isinstance(dataset, xr.Dataset):
        _refuse_newer(dataset, field)
    found = dataset.attrs.get("kind") if isinstance(dataset, xr.Dataset) else None
    if isinstance(dataset, xr.Dataset) and "kind" not in dataset.attrs and _has_moments(dataset):
        found = RUN.name
    if found != kind.name:
        what = f'a Dataset of kind "{found}"' if isinstance(found, str) else "no Dataset that vlasov made"
        raise InputError(f'is {what} where kind "{kind.name}" is needed; give {kind.made_by}', field)
    if kind is RUN:
        _check_run(dataset, field)


def _check_run(dataset: xr.Dataset, field: str) -> None:
    for name in ("time", "mean", "covariance"):
        dims = SCHEMA[name].dims if name in SCHEMA else ("time",)
        if name in dataset and dataset[name].dims != dims:
            given = f'its "{name}" has the dimensions {dataset[name].dims} where {dims} are needed'
            raise InputError(f"{given}; keep them, as in run.isel(time=[0])", field)
    needed = {"time", "mean", "covariance"}.union(*(_GO_TOGETHER.get(str(name), ()) for name in dataset.data_vars))
    if "position" in dataset and _MASKED in str(dataset.attrs.get("problem", "")):
        needed.add("s")
    for name in sorted(needed | (set(SCHEMA) & set(dataset.variables))):
        if name not in dataset.variables:
            raise InputError(f'has no "{name}"; give {RUN.made_by}', field)
        if dataset[name].dtype.kind not in "iuf":
            raise InputError(f'its "{name}" holds no numbers; give {RUN.made_by}', field)
    if not (np.diff(dataset["time"].values) > 0).all():
        raise InputError("its output times do not increase; sort them, as in run.sortby('time')", field)
    if "weight" in dataset and (dataset["weight"].values < 0).any():
        raise InputError("its weights are negative; give " + RUN.made_by, field)
    for name in ("problem", "solver", "status"):
        if not isinstance(dataset.attrs.get(name, ""), str):
            raise InputError(f'its "{name}" is {short(dataset.attrs[name])} where a text is needed', field)


def require_states(dataset: xr.Dataset, field: str = "dataset") -> None:
    """Complain about a run of which statistics alone were kept, whose moments would pass for a Gaussian."""
    saved = dataset.attrs.get("saved")
    if saved and dataset.attrs.get("solver") != "gaussian" and not _STATE.keys() & set(dataset.variables):
        sentence = f"keeps statistics alone ({saved}), where its states are needed"
        raise InputError(f"{sentence}; solve it again without save= (--save)", field)


def _has_moments(dataset: xr.Dataset) -> bool:
    return all(name in dataset and dataset[name].dims == SCHEMA[name].dims for name in ("mean", "covariance"))


def problem_of(dataset: xr.Dataset) -> Problem:
    """The problem that a Dataset solves, rebuilt from its attributes.

    Parameters
    ----------
    dataset
        A solution, or another Dataset of ours with the attribute ``problem``.

    Examples
    --------
    >>> run = vl.solve("gaussian-blow-up", "gaussian", times=[0.1])
    >>> vl.solvers.problem_of(run).attention.kind
    'softmax'
    """
    text = dataset.attrs.get("problem", "")
    if not text:
        raise InputError("is empty: a parameter was a Python function, which is not kept; build it again", "problem")
    return Problem.from_json(text)


def measure(dataset: xr.Dataset, time: int | float = -1) -> Measure:
    """A solution's state as a measure again. MIND THE POINT: time=1 is the second output, time=1.0 is t = 1.

    Parameters
    ----------
    dataset
        A solution.
    time
        A whole number is an index into the output times, -1 the last; any other number is one of the output times.

    Returns
    -------
    Measure
        ``Particles``, a ``Density`` (or, in parts, a ``Mixture`` or a ``Sequence`` of them), or a ``Gaussian``.

    Examples
    --------
    >>> problem = vl.load_case("gaussian-blow-up").problem
    >>> run = vl.solve(problem, "gaussian", times=[0.0, 0.25, 0.5])
    >>> vl.measure(run, time=0.25).covariance.round(6)
    array([[1.226667, 0.213333],
           [0.213333, 0.906667]])
    >>> vl.measure(run, time=0).kind  # the first output
    'gaussian'
    """
    require(dataset, RUN)
    require_states(dataset)
    state = dataset.isel(time=time_index(dataset, time))
    if "position" in dataset:
        places = dataset["s"].values if "s" in dataset else None
        return Particles(state["position"].values, dataset["weight"].values, places)
    if "part" in state.dims:
        parts, weights = [_density(state.isel(part=k)) for k in range(state.sizes["part"])], state["part_weight"].values
        return _sequence(parts, weights) if "part_s" in state else Mixture(parts, weights)
    if "density" in dataset:
        return _density(state)
    return Gaussian(state["mean"].values, state["covariance"].values)


def _sequence(parts: list[Density], weights: Array) -> Sequence:
    edges = np.concatenate([[0.0], np.cumsum(weights)])
    edges[-1] = 1.0
    return Sequence(parts, edges)


def _density(state: xr.Dataset) -> Density:
    """That of one part at one time."""
    edges = [cell_edges(state[axis].values) for axis in state["density"].dims]
    origin, matrix = state["frame_origin"].values, state["frame_matrix"].values
    return Density(state["density"].values, edges, origin=origin, matrix=matrix)


def kept_problem(dataset: xr.Dataset) -> Problem | None:
    """Return the problem that a Dataset solves; None where the file does not hold it, or holds a damaged one."""
    try:
        return problem_of(dataset)
    except (InputError, TypeError):
        return None


def table_in(attributes: dict[Any, Any], name: str) -> dict[str, Any]:
    """Return the table that an attribute holds as JSON; empty where there is none."""
    try:
        table = json.loads(str(attributes.get(name, "")))
    except (ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def cell_edges(centers: Array) -> Array:
    """Edges of uniform cells from their centres."""
    width = (centers[-1] - centers[0]) / (centers.size - 1) if centers.size > 1 else 1.0
    return np.linspace(centers[0] - width / 2, centers[-1] + width / 2, centers.size + 1)


def save(dataset: xr.Dataset, path: Path, *, overwrite: bool = True) -> None:
    """Write a .nc file whole or not at all; Ctrl-C waits until then.

    Without ``overwrite`` a file of another origin stays, also where it came while this was computed or written; the
    Dataset is then beside it, and a SolverError says where.
    """
    check_suffix(path)
    check_place(path)
    made = dataset.attrs.get("origin")
    try:
        with undisturbed(f"{path} is written."):
            write_sealed(path, dataset, new=not overwrite and origin_of(path) != made)
    except FileExistsError:
        if origin_of(path) != made:  # else another process made the same
            place = save_partial(dataset, path)
            raise SolverError(messages.CAME_MEANWHILE(path=path, place=place)) from None
    except OSError as error:
        raise SolverError(messages.NOT_WRITTEN(path=path, reason=error.strerror or error)) from None


def save_partial(dataset: xr.Dataset, target: Path) -> Path:
    """Write what there is of a result beside its target, where nothing is replaced; the file."""
    try:
        with partial_target(target) as place:
            save(dataset, place)
    except OSError as error:
        raise SolverError(messages.NOTHING_WRITTEN(path=target, reason=error.strerror or error)) from None
    return place


def open_run(path: str | os.PathLike[str]) -> xr.Dataset:
    """What is committed in a .nc file.

    Files of ours (``output=``, the command line's) end with a checksum, and any change is refused. Those of a Dataset's
    own ``to_netcdf`` have none: what is cut or added at their end is refused, what is changed inside is not seen.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    xarray.Dataset
        As it was returned: a solution, a comparison, a study.

    Examples
    --------
    >>> problem = vl.load_case("gaussian-blow-up").problem.until(0.5)
    >>> run = vl.solve(problem, "gaussian", output="run.nc")
    >>> vl.open_run("run.nc").identical(run)
    True
    """
    file = as_path(path, "path")
    if not os.path.isfile(file):  # False too for names that no file can have
        raise InputError(f'"{path}" is not a file; give a .nc file that "vlasov run -o" wrote', "path")
    try:
        reason = damage(file)
        dataset = None if reason else xr.load_dataset(file, engine="h5netcdf")
    except Exception as error:  # a damaged file: HDF5 raises almost anything
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f'"{path}" is not a netCDF file, or damaged ({reason})', "path") from None
    if dataset is None:
        raise InputError(f'"{path}" is damaged: {reason}; write it again', "path")
    _refuse_newer(dataset, "path", f'"{path}" ')
    if _OURS not in _conventions(dataset):
        raise InputError(f'"{path}" was not written by vlasov (its Conventions do not name "{_OURS}")', "path")
    try:
        json.loads(dataset.attrs.get("problem") or "{}")
    except (TypeError, ValueError, RecursionError):
        raise InputError(f'"{path}" is damaged: its problem is not JSON; write it again', "path") from None
    if dataset.attrs.get("kind", RUN.name) == RUN.name:
        dataset.attrs.setdefault("advice", "")  # once it was left out where there was none
    return _with_present_axes(dataset)


def _conventions(dataset: xr.Dataset) -> list[str]:
    return str(dataset.attrs.get("Conventions", "")).replace(",", " ").split()


def _refuse_newer(dataset: xr.Dataset, field: str, subject: str = "") -> None:
    """Refuse a Dataset of a later schema, which this version would misread."""
    names = _conventions(dataset)
    newer = [name for name in names if (number := _NAMED.fullmatch(name)) and int(number[1]) > _SCHEMA]
    if newer and _OURS not in names:
        sentence = f'is of a newer vlasov: its schema is "{newer[0]}", and version {__version__} reads "{_OURS}"'
        raise InputError(f"{subject}{sentence}; update vlasov, or read the file with xarray.open_dataset", field)


def _with_present_axes(dataset: xr.Dataset) -> xr.Dataset:
    """A run whose frame's axes may be called x, y, z, as they were once, with their names of today."""
    held = {*dataset.variables, *dataset.dims}
    if not {"density", "frame_matrix"} <= held or held & set(AXES):
        return dataset
    return dataset.rename({old: new for old, new in zip(_ONCE, AXES, strict=True) if old in dataset["density"].dims})


def time_index(dataset: xr.Dataset, time: int | float) -> int:
    """Index of an output time; ``time`` as in ``measure``."""
    times = dataset["time"].values
    if not times.size:
        raise InputError("has no output times left; keep some, as in run.isel(time=[1])", "dataset")
    if isinstance(time, int | np.integer) and not isinstance(time, bool):
        if not -times.size <= time < times.size:
            raise InputError(f"is {time} but the run has {times.size} output times", "time")
        return int(time)
    time = checks.number(time, "time")
    nearest = int(np.abs(times - time).argmin())
    if abs(times[nearest] - time) > 1e-9 * max(abs(time), float(times[-1])):
        around = sorted({f"{float(t)!r}" for t in times[np.argsort(np.abs(times - time))[:2]]}, key=float)
        raise InputError(f"{time:g} is not an output time; the nearest are {' and '.join(around)}", "time")
    return nearest
