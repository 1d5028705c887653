"""Made-up solutions for the figures: closed forms of the Gaussian equation, and clouds of tokens that follow them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.typing import ArrayLike

from vlasov.checks import Array

TIMES = np.linspace(0.0, 2.0, 41)


def solution(times: Array, mean: Array, covariance: Array, cloud: Array | None = None, **more: Any) -> xr.Dataset:
    """A Dataset with the schema of the solvers; ``more`` holds weights, the growth of a rescaling and attributes."""
    weight, growth = more.pop("weight", None), more.pop("growth", None)
    variables: dict[str, Any] = {
        "mean": (("time", "component"), mean),
        "covariance": (("time", "component", "component_b"), covariance),
        "radius": ("time", np.full(times.size, np.nan) if cloud is None else np.linalg.norm(cloud, axis=2).max(axis=1)),
        "mass": ("time", np.ones(times.size)),
    }
    if cloud is not None:
        n = cloud.shape[1]
        names = {"long_name": "token positions", "units": "1"}
        variables["position"] = (("time", "particle", "component"), cloud, names)
        variables["weight"] = ("particle", np.full(n, 1 / n) if weight is None else weight)
    if growth is not None:
        variables["rescaling"] = (("time", "component", "component_b"), growth[:, None, None] * np.eye(mean.shape[1]))
    attributes = {"title": "A run", "case": "made-up", "status": "completed", "blow_up_time": np.nan}
    attributes["solver"] = "gaussian" if cloud is None else "particles"
    return xr.Dataset(variables, {"time": ("time", times, {"long_name": "time"})}, attributes | more)


def gaussian(
    start: ArrayLike, rates: ArrayLike, times: Array = TIMES, base: Array | None = None, **more: Any
) -> xr.Dataset:
    """Sigma(t) = (Sigma_0^{-1} - 2tA)^{-1} for V = I and commuting Sigma_0, A of these eigenvalues, turned by 0.5 rad.

    With ``base`` (n, d), tokens that follow it: x(t) = Sigma(t)^{1/2} base.
    """
    initial = np.asarray(start, dtype=float)
    spectrum = initial / (1 - 2 * times[:, None] * np.asarray(rates) * initial)
    turn = np.eye(initial.size)
    turn[:2, :2] = [[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]] if initial.size > 1 else 1.0
    covariance = np.einsum("ik,tk,jk->tij", turn, spectrum, turn)
    cloud = None if base is None else np.einsum("ik,tnk->tni", turn, np.sqrt(spectrum)[:, None] * base)
    return solution(times, np.zeros((times.size, initial.size)), covariance, cloud, **more)


def following(cloud: Array, times: Array = TIMES, **more: Any) -> xr.Dataset:
    """Tokens of equal weight and their moments."""
    mean = cloud.mean(axis=1)
    centered = cloud - mean[:, None]
    return solution(times, mean, np.einsum("tni,tnj->tij", centered, centered) / cloud.shape[1], cloud, **more)


def normal(n: int, d: int) -> Array:
    return np.random.default_rng(0).standard_normal((n, d))


def quadrature(d: int) -> dict[str, Array]:
    """Gauss-Hermite nodes, the farthest 10 standard deviations out, with weights down to 1e-45."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    grids = np.meshgrid(*[nodes] * d, indexing="ij")
    shares = np.meshgrid(*[weights / weights.sum()] * d, indexing="ij")
    return {"base": np.stack([g.ravel() for g in grids], axis=1), "weight": np.prod(shares, axis=0).ravel()}


def blow_up(d: int, *, tokens: bool) -> xr.Dataset:
    """The first eigenvalue blows up at t = 1; the last output is 1e-8 before it."""
    times = np.concatenate([np.linspace(0, 0.96, 49), 1 - np.geomspace(0.03, 1e-8, 9)])
    start, rates = np.linspace(1.0, 0.5, d), np.array([0.5] + [-1.0] * (d - 1))
    more: dict[str, Any] = {"base": normal(300, d)} if tokens else {}
    return gaussian(start, rates, times, status="blow-up", blow_up_time=1.0, **more)


def rescaled() -> xr.Dataset:
    """Tokens that grow like e^{3t} while z = e^{-3t} x stays where it began."""
    return following(np.exp(3 * TIMES)[:, None, None] * normal(200, 2), growth=np.exp(3 * TIMES))


def vanishing() -> xr.Dataset:
    """One eigenvalue leaves the range of floating-point numbers relative to the other."""
    spectra = np.stack([np.ones(5), np.array([1e-3, 1e-9, 1e-15, 1e-20, 0.0])], axis=1)
    return solution(np.linspace(0, 1, 5), np.zeros((5, 2)), spectra[:, :, None] * np.eye(2))


def euler(
    means: Array,
    covariances: Array,
    frames: Array,
    times: Array = TIMES,
    cells: int = 48,
    reach: float = 6.0,
    **more: Any,
) -> xr.Dataset:
    """A Gaussian on the cells of frames (time, d, d) that move with its mean, by its density at the centres."""
    d = means.shape[1]
    edges = np.linspace(-reach, reach, cells + 1)
    centers = (edges[1:] + edges[:-1]) / 2
    grid = np.stack(np.meshgrid(*[centers] * d, indexing="ij"), axis=-1)
    axes = ("xi", "eta", "zeta")[:d]
    density = np.empty((times.size, *[cells] * d))
    for k in range(times.size):
        seen = np.linalg.solve(frames[k], np.linalg.solve(frames[k], covariances[k]).T)
        exponent = np.einsum("...i,ij,...j->...", grid, np.linalg.inv(seen), grid) / 2
        density[k] = np.exp(-exponent) / np.sqrt(np.linalg.det(2 * np.pi * seen))
    dataset = solution(times, means, covariances, **{"solver": "finite-volume", **more})
    dataset["density"] = (("time", *axes), density)
    dataset["frame_origin"] = (("time", "component"), means)
    dataset["frame_matrix"] = (("time", "component", "component_b"), frames)
    return dataset.assign_coords({axis: (axis, centers, {"long_name": "frame coordinate"}) for axis in axes})


def sheared(dataset: xr.Dataset, shear: float = 0.6, drift: float = 0.5, cells: int = 48, **more: Any) -> xr.Dataset:
    """The same Gaussian on cells: a frame as wide as it is, sheared and moving, with singular values of its own."""
    covariance, times = dataset["covariance"].values, dataset["time"].values
    d = covariance.shape[1]
    values, vectors = np.linalg.eigh(covariance)
    root = np.einsum("tik,tk,tjk->tij", vectors, np.sqrt(values), vectors)
    twist = np.eye(d) + shear * np.triu(np.ones((d, d)), 1)
    means = drift * times[:, None] * np.arange(1.0, d + 1)
    kept = {name: dataset.attrs[name] for name in ("status", "blow_up_time", "title")}
    return euler(means, covariance, root @ twist, times, cells, **kept | more)


SCENES: dict[str, Callable[[], xr.Dataset]] = {
    "collapse-1": lambda: gaussian([1.0], [-1.0], base=normal(1000, 1)),
    "collapse-2": lambda: gaussian([1.0, 0.3], [-1.0, -2.0], base=normal(10_000, 2)),
    "strong-collapse-2": lambda: gaussian([1.0, 0.3], [-3e3, -2e3], base=normal(500, 2)),
    "gaussian-1": lambda: gaussian([1.0], [-1.0]),
    "gaussian-2": lambda: gaussian([1.0, 0.3], [-1.0, 0.4]),
    "gaussian-8": lambda: gaussian(np.linspace(1, 2, 8), np.linspace(-2, 0.1, 8)),
    "five": lambda: gaussian([1.0, 0.5, 2.0, 0.1, 1.0], [-1.0, 0.1, -3.0, 0.5, 0.0], base=normal(500, 5)),
    "blow-up-1": lambda: blow_up(1, tokens=True),
    "blow-up-2": lambda: blow_up(2, tokens=True),
    "blow-up-gaussian": lambda: blow_up(2, tokens=False),
    "blow-up-6": lambda: blow_up(6, tokens=False),
    "rescaled": rescaled,
    "quadrature-1": lambda: gaussian([1.0], [-1.0], **quadrature(1)),
    "quadrature-2": lambda: gaussian([1.0, 0.3], [-1.0, 0.4], **quadrature(2)),
    "three": lambda: following((1 + TIMES[:, None, None]) * normal(3, 2), title="A title of many words " * 5),
    "dirac": lambda: following(np.exp(TIMES)[:, None, None] * np.ones((1, 2))),
    "nothing-moves": lambda: following(np.ones((TIMES.size, 4, 2)), status="stopped"),
    "singular": lambda: gaussian([1.0, 0.0], [-1.0, 0.4], base=normal(100, 2)),
    "one-time": lambda: gaussian([1.0, 0.3], [-1.0, 0.4], np.zeros(1), normal(100, 2)),
    "one-time-1": lambda: gaussian([1.0], [-1.0], np.zeros(1), normal(100, 1)),
    "vanishing": vanishing,
    "tiny": lambda: gaussian([1e-16, 3e-17], [-1e16, 0.0], base=normal(100, 2)),
    "euler-1": lambda: sheared(gaussian([1.0], [-1.0])),
    "euler-2": lambda: sheared(gaussian([1.0, 0.3], [-1.0, 0.4])),
    "euler-3": lambda: sheared(gaussian([1.0, 0.3, 0.5], [-1.0, 0.4, -3.0], times=TIMES[::4]), cells=24),
    "euler-collapse": lambda: sheared(gaussian([1.0, 0.3], [-3e3, -2e3]), cells=64),
    "euler-blow-up-1": lambda: sheared(blow_up(1, tokens=False)),
    "euler-blow-up": lambda: sheared(blow_up(2, tokens=False), drift=0.0, cells=64),
    "huge": lambda: gaussian([1e14, 3e13], [-1e-14, 0.0], base=normal(100, 2)),
}


@pytest.fixture
def scene() -> Callable[[str], xr.Dataset]:
    """A made-up solution by name."""
    return lambda name: SCENES[name]()


@pytest.fixture(params=list(SCENES))
def every_scene(request: pytest.FixtureRequest) -> xr.Dataset:
    """Each of the made-up solutions in turn."""
    return SCENES[request.param]()


@pytest.fixture
def interrupt_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let Ctrl-C come to the next study when it has measured so many batches."""
    from vlasov.postprocess.studies import schedule

    compute = schedule.compute

    def arrange(count: int) -> None:
        def interrupted(*arguments: Any) -> Any:
            for number, pair in enumerate(compute(*arguments)):
                if number == count:
                    raise KeyboardInterrupt
                yield pair

        monkeypatch.setattr(schedule, "compute", interrupted)

    return arrange
