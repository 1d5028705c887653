"""A study: many small computations on a grid of parameters, and the options that say which.

A study is a frozen dataclass whose fields are its options, each made by ``option``: from the fields come the function
that users call with its docstring, the command line, what the file says of how it was made, and the command that makes
it again. Its methods say what is computed; ``run_study`` does it.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, Field, dataclass, field, fields
from itertools import product
from typing import Any, ClassVar, Self

import xarray as xr

from vlasov import checks
from vlasov.cases.load import Case
from vlasov.cases.solving import CaseLike, as_case
from vlasov.codec import encode
from vlasov.kinds import Kind
from vlasov.postprocess.studies.schedule import Scheduler, check_scheduler
from vlasov.problem import Problem
from vlasov.solvers.dataset import provenance

Point = Mapping[str, Any]  # a value for each axis


def option(
    default: Any,
    says: str,
    *,
    check: Callable[[Any, str], Any] | None = None,
    free: bool = False,
    run: bool = False,
    flag: str = "",
) -> Any:
    """Return the field of an option of a study.

    Parameters
    ----------
    default, says
        Its default, MISSING for none, and one or two sentences about it, for the docstring and for ``--help``.
    check
        From a value and the option's name to the value as the study has it; raises InputError.
    free
        Whether a study in a folder may go on with another value, such as more replicas.
    run
        Whether it says how the study is run, and changes no result.
    flag
        How the command line spells it, if not ``--name``; "-" for not at all.
    """
    metadata = {"says": says, "check": check, "free": free, "run": run, "flag": flag}
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, kw_only=True, metadata=metadata)


@dataclass(frozen=True, eq=False)
class Study:
    """Base of all studies; ``registry`` has the help of the command, which ``register`` takes from the docstring.

    Attributes
    ----------
    case, pde
        ``problem`` as a Case, and the Problem that is studied: with an earlier horizon where the solution blows up.
    doubt
        A sentence about what was changed before the study began; empty for none.
    kind
        The kind of Dataset that it makes.
    version
        Raised when results in folders change their meaning.
    processes
        Whether points hold Python's lock most of the time, so that processes are worth their start.
    fatal
        Exceptions that end the study; any other makes a point NaN, with its reason.
    """

    kind: ClassVar[Kind]
    version: ClassVar[int] = 1
    processes: ClassVar[bool] = False
    fatal: ClassVar[tuple[type[Exception], ...]] = ()

    problem: CaseLike
    _: KW_ONLY
    output: str | os.PathLike[str] | None = option(
        None,
        "A folder that keeps each result, so that a study goes on where it was interrupted and can be extended; at the "
        "end also the Dataset, as ``study.nc``. Or a .nc file, written at the end.",
        run=True,
    )
    overwrite: bool = option(
        False, "Replace this .nc file also where it holds something else.", check=checks.flag, run=True
    )
    progress: bool = option(False, "Draw a progress bar on a terminal.", check=checks.flag, run=True)
    scheduler: Scheduler = option(
        None,
        'Who measures: "threads" or "processes" of this machine, or dask.distributed workers, by the address of their '
        "scheduler, a Client or a Cluster. The numbers are equal, to the last bit.",
        check=check_scheduler,
        run=True,
    )
    case: Case = field(init=False)
    pde: Problem = field(init=False)
    doubt: str = field(init=False, default="")

    def __post_init__(self) -> None:
        """Check all options, before any work."""
        case = as_case(self.problem)
        self.put(case=case, pde=case.problem, **{
            item.name: item.metadata["check"](getattr(self, item.name), item.name)
            for item in options(type(self)) if item.metadata["check"]
        })  # fmt: skip
        self.validate()

    def put(self, **values: Any) -> None:
        """Set fields of this frozen dataclass, while it is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def validate(self) -> None:
        """Check options against each other and the problem; may change them by ``put``."""

    def for_workers(self) -> Self:
        """Return a copy by which workers measure points: without output, progress and scheduler."""
        sent = copy.copy(self)
        sent.put(output=None, progress=False, scheduler=None)
        return sent

    @classmethod
    def from_settings(cls, settings: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
        """Return those of the command line's ``--set`` that change the case, and options made from the others."""
        return list(settings), {}

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        """Values by axis: the first dimensions of the result."""
        raise NotImplementedError

    def omits(self, **point: Any) -> bool:
        """Whether a point of the grid is left NaN, such as a second replica where nothing is random."""
        return False

    def prepare(self, settled: Any) -> Any:
        """Return what all points need, solved once a worker; ``settled`` is None where the study begins."""

    def settled(self, prepared: Any) -> Any:
        """Return plain values from which ``prepare`` makes the same again, such as a choice among references."""

    def measure(self, prepared: Any, *_: Any, **point: Any) -> xr.Dataset:
        """Return what is measured at a point: numbers and texts, with dimensions and coordinates of their own."""
        raise NotImplementedError

    def cost(self, **point: Any) -> float:
        """Return about how many seconds ``measure`` takes, for the progress bar."""
        return 1.0

    def together(self, **point: Any) -> Hashable:
        """Return a label; points with equal labels are measured by one call of ``measure_all``. None: each alone."""

    def measure_all(self, prepared: Any, points: Sequence[Point]) -> list[xr.Dataset]:
        """Return what is measured at each of these points."""
        return [self.measure(prepared, **point) for point in points]

    def finish(self, dataset: xr.Dataset, prepared: Any) -> xr.Dataset:
        """Return the Dataset of all points with what follows from them, such as slopes."""
        return dataset

    def points(self) -> list[dict[str, Any]]:
        """Return all points of the grid, the last axis changing fastest."""
        rows = (dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values()))
        return [row for row in rows if not self.omits(**row)]

    def identity(self) -> dict[str, Any]:
        """Return plain values that make results in a folder comparable."""
        shared = {item.name: _plain(getattr(self, item.name)) for item in options(type(self)) if _shared(item)}
        return {"kind": self.kind.name, "version": self.version, "problem": self.pde.to_dict(), **shared}

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the Dataset: of which problem it is, and by which options it is made again."""
        own = {item.name: _plain(getattr(self, item.name)) for item in options(type(self)) if not item.metadata["run"]}
        scalars = {name: value for name, value in own.items() if type(value) in (str, int, float)}  # files know no bool
        about = {"dimension": self.pde.dimension, **scalars, "options": json.dumps(own)}
        return provenance(self.pde, self.kind) | about | ({"doubt": self.doubt} if self.doubt else {})


def function_name(study: type[Study]) -> str:
    """Return the name of the function of a study: depth_study of DepthStudy."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", study.__name__).lower()


def options(study: type[Study]) -> list[Field[Any]]:
    """Return the options of a study: its own, then how it is run."""
    found = [item for item in fields(study) if "says" in item.metadata]
    return sorted(found, key=lambda item: bool(item.metadata["run"]))


def _shared(item: Field[Any]) -> bool:
    return not (item.metadata["free"] or item.metadata["run"])


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(encode(value)))
