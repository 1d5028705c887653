# The public names: lazy_loader reads this file at run time, type checkers read it in place of __init__.py.
import collections.abc
import os
import typing

import numpy.typing
import xarray

from . import (
    cases as cases,
    estimates as estimates,
    gaussian as gaussian,
    measures as measures,
    postprocess as postprocess,
    solvers as solvers,
    tilting as tilting,
)
from .attention import (
    L2 as L2,
    Exponential as Exponential,
    Hardmax as Hardmax,
    Linear as Linear,
    Masked as Masked,
    MultiHead as MultiHead,
    ReLU as ReLU,
    Sigmoid as Sigmoid,
    Sinkhorn as Sinkhorn,
    Softmax as Softmax,
)
from .blocks import MLP as MLP, LayerNorm as LayerNorm
from .cases import Case as Case, case_names as case_names, load_case as load_case
from .errors import (
    AccuracyWarning as AccuracyWarning,
    InputError as InputError,
    SlowRunWarning as SlowRunWarning,
    SolverError as SolverError,
)
from .jit import set_threads as set_threads
from .lipschitz import lipschitz as lipschitz
from .measures import (
    Ball as Ball,
    Box as Box,
    Density as Density,
    Gaussian as Gaussian,
    Mixture as Mixture,
    Particles as Particles,
    Ring as Ring,
    Sequence as Sequence,
)
from .postprocess.citing import cite as cite
from .postprocess.clusters import clusters as clusters
from .postprocess.compare import compare as compare
from .postprocess.depth import depth_study as depth_study
from .postprocess.energies import energies as energies
from .postprocess.gaussianity import gaussianity as gaussianity
from .postprocess.lipschitz import lipschitz_study as lipschitz_study
from .postprocess.mean_field import mean_field_study as mean_field_study
from .postprocess.on_grid import on_grid as on_grid
from .postprocess.refinement import refinement as refinement
from .postprocess.report import Report as Report, report as report
from .postprocess.sensitivity import sensitivity as sensitivity
from .postprocess.sweep import sweep as sweep
from .postprocess.wasserstein import distance as distance, wasserstein as wasserstein
from .problem import Problem as Problem
from .schedule import Piecewise as Piecewise
from .solvers import measure as measure, open_run as open_run
from .solvers.covariances import covariances as covariances

__version__: str

if typing.TYPE_CHECKING:  # solve, with the options of each solver
    _Case = Problem | Case | str | os.PathLike[str]
    @typing.overload
    def solve(
        problem: _Case,
        solver: typing.Literal["gaussian"],
        *,
        times: numpy.typing.ArrayLike | None = None,
        progress: bool = False,
        output: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        save: str | collections.abc.Sequence[str] | None = None,
        case: str = "",
        warn_above: float = 0.01,
        tolerance: float = 1e-10,
        max_steps: int = 100_000,
    ) -> xarray.Dataset: ...
    @typing.overload
    def solve(
        problem: _Case,
        solver: typing.Literal["particles"],
        *,
        times: numpy.typing.ArrayLike | None = None,
        progress: bool = False,
        output: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        save: str | collections.abc.Sequence[str] | None = None,
        case: str = "",
        warn_above: float = 0.01,
        n: int = 10_000,
        sampling: str = "sobol",
        moments: str = "auto",
        seed: int = 0,
        tolerance: float = 1e-08,
        rescaled: bool = False,
        method: str = "auto",
        max_steps: int = 100_000,
    ) -> xarray.Dataset: ...
    @typing.overload
    def solve(
        problem: _Case,
        solver: typing.Literal["finite-volume"],
        *,
        times: numpy.typing.ArrayLike | None = None,
        progress: bool = False,
        output: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        save: str | collections.abc.Sequence[str] | None = None,
        case: str = "",
        warn_above: float = 0.01,
        cells: int | collections.abc.Sequence[int] | None = None,
        reconstruction: str = "upwind5",
        frame: str = "auto",
        extent: float | collections.abc.Sequence[typing.Any] | None = None,
        slices: int | None = None,
        max_steps: int = 100_000,
    ) -> xarray.Dataset: ...
    @typing.overload
    def solve(
        problem: _Case,
        solver: typing.Literal["layers"],
        *,
        times: numpy.typing.ArrayLike | None = None,
        progress: bool = False,
        output: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        save: str | collections.abc.Sequence[str] | None = None,
        case: str = "",
        warn_above: float = 0.01,
        depth: int | None = None,
        step: float | None = None,
        n: int = 10_000,
        sampling: str = "sobol",
        moments: str = "auto",
        seed: int = 0,
        method: str = "auto",
    ) -> xarray.Dataset: ...
    @typing.overload  # the first solver of the case, or one that is known at run time
    def solve(
        problem: _Case,
        solver: str | None = None,
        *,
        times: numpy.typing.ArrayLike | None = None,
        progress: bool = False,
        output: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        save: str | collections.abc.Sequence[str] | None = None,
        case: str = "",
        warn_above: float = 0.01,
        n: int = ...,
        sampling: str = ...,
        moments: str = ...,
        seed: int = ...,
        tolerance: float = ...,
        rescaled: bool = ...,
        method: str = ...,
        max_steps: int = ...,
        cells: int | collections.abc.Sequence[int] | None = ...,
        reconstruction: str = ...,
        frame: str = ...,
        extent: float | collections.abc.Sequence[typing.Any] | None = ...,
        slices: int | None = ...,
        depth: int | None = ...,
        step: float | None = ...,
    ) -> xarray.Dataset: ...

else:
    from .cases.solving import solve as solve
