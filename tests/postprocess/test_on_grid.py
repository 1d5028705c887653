"""Densities in physical coordinates: of runs at all times, of every measure, and refusals in words."""

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess.averages import averages

SQUARE = np.array([[0.5, 0.2], [0.2, 0.4]])
START = vl.Gaussian([0.1, -0.2], SQUARE)
PROBLEM = vl.Problem(vl.Softmax(A=0.6 * np.eye(2), V=[[0.2, -0.5], [0.5, 0.2]]), START, 1.0)  # turns, so that frames do
TIMES = [0.0, 0.5, 1.0]
MEASURES = {
    "gaussian": START,
    "mixture": vl.Mixture([START, vl.Ball(0.5, [1.0, 1.0])], [0.4, 0.6]),
    "ball": vl.Ball(1.0, [0.2, 0.3]),
    "box": vl.Box([-1.0, 0.0], [0.5, 2.0]),
    "particles": START.sample(3000, "sobol"),
    "density": START.on_grid([np.linspace(-6, 6, 121)] * 2),
    "askew": vl.Density(
        vl.Gaussian([0.0, 0.0], np.eye(2)).on_grid([np.linspace(-7, 7, 101)] * 2).values,
        [np.linspace(-7, 7, 101)] * 2,
        origin=[0.1, 0.2],
        matrix=[[0.8, 0.3], [-0.2, 0.6]],
    ),
}


def integrated(found):
    """Mass, mean and covariance of averages over cells."""
    x = np.stack(np.meshgrid(*(found[name] for name in found.dims), indexing="ij"), axis=-1).reshape(-1, found.ndim)
    steps = np.array([float(found[name][1] - found[name][0]) for name in found.dims])
    masses = found.values.ravel() * steps.prod()
    mean = masses @ x
    return masses.sum(), mean, (masses[:, None] * (x - mean)).T @ (x - mean) - np.diag(steps**2) / 12


@pytest.mark.parametrize("name", MEASURES)
def test_any_measure_keeps_mass_and_moments(name):
    measure = MEASURES[name]
    found = vl.on_grid(measure, (90, 100))
    mass, mean, covariance = integrated(found)
    kernel = 1 + float(found.bandwidth) ** 2 if name == "particles" else 1.0
    jumps = name in ("mixture", "ball", "box")
    assert found.dims == ("x", "y")
    assert found.shape == (90, 100)
    assert mass == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(mean, measure.mean, atol=1e-3 if jumps else 1e-8)
    np.testing.assert_allclose(covariance, kernel * measure.covariance, atol=3e-3 if jumps else 1e-5)


def test_a_density_in_a_skew_frame_is_that_of_its_law():
    askew = MEASURES["askew"]
    found = vl.on_grid(askew, 120)
    exact = vl.Gaussian(askew.origin, askew.matrix @ askew.matrix.T)
    h = [float(found[name][1] - found[name][0]) / 2 for name in "xy"]
    edges = [np.append(found[name] - half, found[name][-1] + half) for name, half in zip("xy", h, strict=True)]
    np.testing.assert_allclose(found.values, exact.on_grid(edges).values, atol=1e-6 * found.values.max())


def test_a_rough_density_in_a_skew_frame_keeps_its_mass():
    rough = vl.Density(np.random.default_rng(0).uniform(size=(9, 8)), [np.arange(10.0), np.arange(9.0)])
    turned = rough.image([[0.8, -0.6], [0.6, 0.8]], [1.0, 2.0])
    assert integrated(vl.on_grid(turned, 200))[0] == pytest.approx(rough.mass, rel=1e-2)
    for cells in (12, 30):
        assert integrated(vl.on_grid(turned, cells))[0] == pytest.approx(rough.mass, rel=1e-12)


def test_rough_densities_far_finer_than_the_grid_are_where_their_cells_are(monkeypatch):
    """Gauss points in cells of the grid, as many as it crosses of the frame's, would take hours."""
    values, turn = np.random.default_rng(0).uniform(size=(12, 10)), np.array([[0.8, -0.6], [0.6, 0.8]])
    for sizes in ([1e-6, 1e-6], [0.3, 1e-6]):
        fine = vl.Density(values, [np.arange(13.0), np.arange(11.0)], matrix=turn @ np.diag(sizes))
        grid = [np.linspace(-4, 4, 80)] * 2
        places, masses = fine.origin + fine.carrying[1] @ fine.matrix.T, values.ravel()
        wide = places + np.linspace(-0.5, 0.5, 2001)[1::2, None, None] * fine.matrix[:, 0]  # flat along the other axis
        exact = np.histogramdd(wide.reshape(-1, 2), bins=grid, weights=np.tile(masses, 1000) / 1000)[0]
        np.testing.assert_allclose(averages(fine, grid) * (8 / 79) ** 2, exact * fine.mass / exact.sum(), atol=0.02)
    monkeypatch.setattr("vlasov.postprocess.averages._MOST", 1e3)
    with pytest.raises(vl.InputError, match=r"^cells: is between .* too unlike along its axes"):
        averages(fine, grid)


def test_clouds_in_a_mixture_with_densities_are_smoothed():
    mixture = vl.Mixture([MEASURES["density"], MEASURES["particles"]], [0.3, 0.7])
    mass, mean, covariance = integrated(vl.on_grid(mixture, 90))
    assert mass == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(mean, mixture.mean, atol=1e-6)
    wider = mixture.covariance + 0.7 * 3000 ** (-1 / 3) * MEASURES["particles"].covariance
    np.testing.assert_allclose(covariance, wider, atol=1e-4)


def test_all_solvers_agree_on_one_density():
    runs = [
        vl.solve(PROBLEM, "gaussian", times=TIMES),
        vl.solve(PROBLEM, "finite-volume", cells=(48, 48), times=TIMES),
        vl.solve(PROBLEM, "particles", n=20_000, times=TIMES),
    ]
    exact = [vl.measure(runs[0], k) for k in range(3)]
    for run in runs:
        found = vl.on_grid(run, 80)
        assert found.dims == ("time", "x", "y")
        np.testing.assert_array_equal(found["time"], TIMES)
        widened = float(found.bandwidth[-1]) ** 2 if "bandwidth" in found.coords else 0.0
        for k, state in enumerate(exact):
            mass, mean, covariance = integrated(found[k])
            assert mass == pytest.approx(1, abs=1e-6)
            np.testing.assert_allclose(mean, state.mean, atol=2e-3)
            np.testing.assert_allclose(covariance, (1 + widened) * state.covariance, atol=5e-3)


def test_one_time_is_asked_for_as_of_measure():
    run = vl.solve(PROBLEM, "particles", n=64, times=TIMES)
    whole = vl.on_grid(run.isel(time=[1]), 20)
    for time in (1, 0.5):
        found = vl.on_grid(run, 20, time=time)
        assert found.dims == ("x", "y")
        assert float(found["time"]) == 0.5
        np.testing.assert_array_equal(found, whole[0])


@pytest.mark.parametrize("d", [1, 3])
def test_every_dimension(d):
    start = vl.Gaussian(np.full(d, 0.1), np.diag(0.2 + 0.1 * np.arange(d)))
    for measure in (start, start.sample(2000, "sobol"), start.on_grid([np.linspace(-5, 5, 41)] * d)):
        found = vl.on_grid(measure, 24)
        assert found.dims == ("x", "y", "z")[:d]
        assert integrated(found)[0] == pytest.approx(1, abs=1e-6)


def test_cells_may_be_an_array_of_numpy():
    cloud = MEASURES["particles"]
    for cells in (np.array(8), np.int64(8), np.array([8, 8])):
        assert vl.on_grid(cloud, cells).equals(vl.on_grid(cloud, 8))


def test_bandwidth_is_in_standard_deviations():
    cloud = MEASURES["particles"]
    assert float(vl.on_grid(cloud, 20).bandwidth) == pytest.approx(3000 ** (-1 / 6))
    assert float(vl.on_grid(cloud, 20, bandwidth=0.3).bandwidth) == 0.3


def test_tokens_at_one_place_or_on_a_line_are_on_the_grid():
    for points in ([[1.0, 2.0]], [[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0]]):
        assert integrated(vl.on_grid(vl.Particles(points), 32))[0] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((START, 32), {"bandwidth": 0.1}, "bandwidth: is for particles, and not for a gaussian; leave it out"),
        ((START, 32), {"time": 0}, "time: is for solutions: a measure has none"),
        ((START, (32, 32, 32)), {}, "cells: has 3 numbers where d = 2; give one for all axes, or one for each"),
        ((START, 0), {}, r"cells\[0\]: is 0 but must be at least 1"),
        ((MEASURES["particles"], 8), {"bandwidth": 0.0}, "bandwidth: is 0 but must be a finite number > 1e-08"),
        ((START, (30_000, 30_000)), {}, r"cells: make more than 2e\+08 numbers, for 1 states; lower them"),
        ((vl.Particles(np.zeros((3, 4))), 8), {}, "dimension: has d = 4, too many for a grid of cells; d <= 3 is pos"),
        ((START, "88"), {}, r"cells\[0\]: '88' is not a whole number"),
        ((START, 10**400), {}, r"cells\[0\]: is 1000.* but must be at most 9e\+18"),
        ((vl.Particles([[0.0, 0.0], [1e-160, 1e-160]]), 8), {}, "run_or_measure: spans .*, whose cubes are no numbers"),
        ((vl.Particles([[1e12, 0.0], [1e12 + 1, 1.0]]), 8), {}, r"run_or_measure: lies at 1e\+12, where numbers are"),
        ((3.0, 8), {}, "run_or_measure: is no Dataset that vlasov made where kind .run. is needed; give what vl.solve"),
    ],
)
def test_mistakes_are_answered_in_one_sentence(arguments, options, sentence):
    with pytest.raises(vl.InputError, match=f"^{sentence}"):
        vl.on_grid(*arguments, **options)
