"""Densities on the line that quantile tokens stand for, against characteristics: with their jumps, in every picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import solve_ivp

import vlasov as vl
from tests.postprocess.test_report import decoded, unpacked
from vlasov.checks import Array
from vlasov.postprocess.drawing.snapshots import snapshots
from vlasov.postprocess.quantiles import distribution
from vlasov.postprocess.report import densities

END = 1.0
N = 400
INSIDE = np.array([-0.9, -0.5, 0.0, 0.2, 0.7])  # of the interval at time zero


@pytest.fixture(scope="module")
def run() -> xr.Dataset:
    """The uniform interval [-1, 1] under A = V = 1, by quantile tokens."""
    return vl.solve(vl.load_case("interval-1d").problem, "particles", n=N, sampling="quantile", times=[0.0, END])


@pytest.fixture(scope="module")
def exact() -> tuple[Array, Array]:
    """Places X(u) and densities 1 / (2 X'(u)) at the end, u in INSIDE and both ends.

    Characteristics X' = int y e^{Xy} dmu / int e^{Xy} dmu, by 30 Gauss nodes and plain Runge-Kutta steps.
    """
    nodes, weights = np.polynomial.legendre.leggauss(30)
    start = np.concatenate([nodes, INSIDE, [-1.0, 1.0]])

    def slope(_: float, state: Array) -> Array:
        x, stretch = state.reshape(2, -1)
        y = x[: nodes.size]
        tilted = weights * np.exp(np.outer(x, y))
        tilted /= tilted.sum(axis=1, keepdims=True)
        mean = tilted @ y
        return np.concatenate([mean, (tilted @ y**2 - mean**2) * stretch])

    found = solve_ivp(slope, (0.0, END), np.concatenate([start, np.ones_like(start)]), rtol=1e-10, atol=1e-12)
    x, stretch = found.y[:, -1].reshape(2, -1)[:, nodes.size :]
    return x, 0.5 / stretch


def shown(run: xr.Dataset) -> tuple[Array, Array]:
    """Edges and heights of the density on a report's page, at the last time."""
    made = densities.of_tokens_on_line(run, [0, 1], 10**6)
    assert made is not None
    packed = made["frames"][-1][0]
    codes = np.cumsum(unpacked(packed["data"], 3)).astype(np.int32)
    heights = decoded(packed["low"], codes, made["digits"])
    low, width = made["origin"][-1][0][0], made["matrix"][-1][0][0][0]
    return low + width * made["step"][0] * np.arange(heights.size + 1), heights


def drawn(run: xr.Dataset) -> tuple[Array, Array]:
    """Edges and heights of the density that a figure draws."""
    (steps,) = snapshots(run, times=[END]).axes[0].patches
    data: Any = steps.get_data()  # type: ignore[attr-defined]
    return data.edges, data.values


@pytest.mark.quick
@pytest.mark.parametrize("picture", [shown, drawn])
def test_pictures_show_the_exact_density_with_its_jumps(picture, run, exact):
    (edges, heights), (x, density) = picture(run), exact
    width = edges[1] - edges[0]
    cells = np.searchsorted(edges, x[: INSIDE.size]) - 1
    np.testing.assert_allclose(heights[cells], density[: INSIDE.size], rtol=1e-3)
    for side, end, jump in zip((-1, 1), x[-2:], density[-2:], strict=True):
        assert jump > 0.35
        last = np.searchsorted(edges, end - 1.5 * side * width) - 1  # the last cell that is wholly inside
        assert heights[last] == pytest.approx(jump, rel=0.02)
        assert not heights[side * (edges[:-1] + width / 2 - end) > width].any()
    assert (heights * np.diff(edges)).sum() == pytest.approx(1, abs=1e-3)


def test_shares_are_those_of_the_interval_at_time_zero(run):
    """F(x) = (x + 1) / 2, its ends included."""
    known = distribution(run, run["position"].values[0, :, 0])
    np.testing.assert_allclose(known.shares, (known.places + 1) / 2, atol=1e-12)


def test_other_tokens_have_no_such_density(run):
    x = run["position"].values[0, :, 0]
    assert distribution(run, x[::-1]) is None  # not in their order
    half = run.isel(particle=slice(None, None, 2))
    assert distribution(half, half["position"].values[0, :, 0]) is None
    options = run.attrs["options"].replace("quantile", "random")
    assert distribution(run.assign_attrs(options=options), x) is None
    assert distribution(run.assign_attrs(options="no JSON"), x) is None
    own = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Particles(np.linspace(-1, 1, N)), horizon=0.1)
    assert distribution(run.assign_attrs(problem=own.to_json()), x) is None


def test_tokens_in_one_place_keep_their_mass(run):
    """Distances of rounding between them are no density; averages over cells hold the mass."""
    x = np.sort(np.where(np.arange(N) < N // 2, -1.0, 1.0) + 1e-17 * np.arange(N))
    edges = np.linspace(-1.5, 1.5, 4)
    masses = distribution(run, x).averages(edges) * np.diff(edges)
    np.testing.assert_allclose(masses, [0.5, 0.0, 0.5], atol=1.0 / N)
