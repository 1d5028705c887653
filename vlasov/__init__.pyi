# The public names: lazy_loader reads this file at run time, type checkers read it in place of __init__.py.
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
from .cases.solving import solve as solve
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
from .postprocess.report import Report as Report, report as report
from .postprocess.sensitivity import sensitivity as sensitivity
from .postprocess.sweep import sweep as sweep
from .postprocess.wasserstein import distance as distance, wasserstein as wasserstein
from .problem import Problem as Problem
from .schedule import Piecewise as Piecewise
from .solvers import measure as measure, open_run as open_run
from .solvers.covariances import covariances as covariances

__version__: str
