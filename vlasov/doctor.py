"""What a bug report needs: versions, processor, threads, where kernels are kept; and a check by exact answers."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vlasov.attention import Softmax
from vlasov.jit import kernel
from vlasov.measures import Gaussian, Particles
from vlasov.problem import Problem
from vlasov.solvers.driver import solve
from vlasov.tilting import Request, tilt

_NODES: dict[str, Any] = {"n": 48, "sampling": "quadrature", "tolerance": 1e-10}
_GRID: dict[str, Any] = {"cells": 256, "frame": "fixed"}  # in a moving one nothing is left for the scheme to move
_PACKAGES = (
    *("vlasov", "numpy", "numba", "llvmlite", "scipy", "xarray", "h5netcdf", "h5py"),
    *("pyFFTW", "matplotlib", "POT", "typer", "rich"),
)
_FEATURES = ("sse4.2", "avx", "avx2", "fma", "avx512f", "neon", "sve")  # those that change what loops are made of
_VARIABLES = ("NUMBA_CACHE_DIR", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


class Check(NamedTuple):
    """One comparison with an exact answer."""

    name: str
    error: float
    allowed: float
    seconds: float

    @property
    def passed(self) -> bool:
        """False for NaN."""
        return self.error <= self.allowed


def environment() -> dict[str, Any]:
    """Where this is: software, hardware, and where compiled kernels are kept."""
    import numba
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    folder = _cache()
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": {name: _version(name) for name in _PACKAGES},
        "processor": binding.get_host_cpu_name(),
        "features": [name for name in _FEATURES if features.get(name)],
        "cores": os.cpu_count(),
        "threads": numba.get_num_threads(),
        "cache": "" if folder is None else str(folder),
        "cache_writable": folder is not None and os.access(_existing(folder), os.W_OK),
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _cache() -> Path | None:
    """Where kernels of this file would be kept; None if nowhere."""

    @kernel()
    def nothing() -> None:
        """Never called."""

    path = nothing._cache.cache_path
    return None if path is None else Path(path)


def _existing(folder: Path) -> Path:
    return folder if folder.exists() or folder == folder.parent else _existing(folder.parent)


def self_check() -> Iterator[Check]:
    """Sums and solvers against closed forms: a few seconds, and as long again where kernels are compiled first."""
    for name, error, allowed in (
        ("tilted means, all pairs, against NumPy", _all_pairs, 1e-13),
        ("tilted means at linear cost, against all pairs", _linear_cost, 1e-9),
        ("gaussian: the time of a blow-up, 1/2", _blow_up, 1e-8),
        ("particles: a variance that shrinks, 1/(1 + 2t)", partial(_shrinking, "particles", **_NODES), 1e-6),
        ("finite volumes: the same", partial(_shrinking, "finite-volume", **_GRID), 1e-6),
    ):
        began = time.perf_counter()
        found = error()
        yield Check(name, found, allowed, time.perf_counter() - began)


def _cloud(n: int) -> tuple[Particles, np.ndarray[Any, Any]]:
    """Tokens in the unit square, and a matrix that is not symmetric."""
    return Particles(np.random.default_rng(0).random((n, 2))), np.array([[2.0, 0.5], [-1.0, 1.5]])


def _all_pairs() -> float:
    cloud, matrix = _cloud(300)
    x = cloud.points
    weights = np.exp(x @ matrix.T @ x.T)
    exact = weights @ x / weights.sum(axis=1, keepdims=True)
    return float(np.abs(tilt(x, np.zeros(len(x)), x @ matrix.T, Request(method="all-pairs")).mean - exact).max())


def _linear_cost() -> float:
    cloud, matrix = _cloud(4000)
    x, logs = cloud.points, np.zeros(len(cloud.points))
    fast, slow = (tilt(x, logs, x @ matrix.T, Request(1e-10, method)).mean for method in ("laplace", "all-pairs"))
    return float(np.abs(fast - slow).max())


def _line(slope: float) -> Problem:
    """On the line, Sigma' = 2 slope Sigma^2 for a Gaussian about zero."""
    return Problem(Softmax(A=[[1.0]], V=[[slope]]), Gaussian(0.0, 1.0), 1.0)


def _blow_up() -> float:
    return abs(float(solve(_line(1.0), "gaussian", times=[0.0]).attrs["blow_up_time"]) - 0.5)


def _shrinking(solver: str, **options: Any) -> float:
    result = solve(_line(-1.0), solver, times=[1.0], **options)
    return abs(float(result["covariance"].values[0, 0, 0]) - 1 / 3)
