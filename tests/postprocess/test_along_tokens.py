"""L1 between the density of tokens and that of another solution: closed forms, cell sums, and its own uncertainty."""

import math

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess.compare import compare
from vlasov.postprocess.compare.along_tokens import differences
from vlasov.postprocess.compare.coupled import coupled
from vlasov.solvers.finite_volume.density_error import divergence

LINE = vl.Problem(vl.Softmax(A=[[-0.8]], V=[[0.7]]), vl.Gaussian(0.3, 0.5), 1.0)
TIMES = np.linspace(0.0, 1.0, 17)


def along(*runs):
    """Values and uncertainties of a pair, at every fourth time."""
    found, _ = differences(runs, runs[0]["time"].values[::4], {"pair": (0, 1)})
    return found["density_error"][1][0], found["density_error_uncertainty"][1][0]


def by_sums(one, other):
    """L1 at every fourth time, by the densities of both at many points of the line."""
    x = np.linspace(-12.0, 12.0, 20_001)[:, None]
    pairs = [[vl.measure(run, k).density(x) for run in (one, other)] for k in range(0, TIMES.size, 4)]
    return np.array([np.abs(f - g).sum() * (x[1, 0] - x[0, 0]) for f, g in pairs])


@pytest.fixture(scope="module")
def tokens():
    return vl.solve(LINE, "particles", times=TIMES, n=1500, sampling="quantile", tolerance=1e-10)


@pytest.mark.quick
@pytest.mark.parametrize("solver", ["gaussian", "finite-volume"])
def test_a_shift_of_a_gaussian_is_an_error_function(tokens, solver):
    run, shift = vl.solve(LINE, solver, times=TIMES), 0.02
    name = "mean" if solver == "gaussian" else "frame_origin"
    values, uncertainties = along(tokens, run.assign({name: run[name] + shift}))
    deviations = np.sqrt(vl.solve(LINE, "gaussian", times=TIMES[::4])["covariance"].values[:, 0, 0])
    exact = np.array([2 * math.erf(shift / (2 * math.sqrt(2) * deviation)) for deviation in deviations])
    assert values == pytest.approx(exact, rel=2e-2)
    assert (np.abs(values - exact) <= uncertainties).all()
    assert (uncertainties <= 0.2 * exact).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_tokens_of_a_gaussian_carry_its_density(d):
    rng = np.random.default_rng(d)
    schedule = vl.Piecewise([0.2 * rng.normal(size=(d, d)) for _ in range(3)], [0.0, 0.3, 0.55, 1.0])
    problem = vl.Problem(vl.Softmax(A=schedule, V=0.5 * np.eye(d)), vl.Gaussian(np.ones(d), 0.2 * np.eye(d)), 1.0)
    nodes = {"n": 8**d, "sampling": "quadrature", "tolerance": 1e-10}
    runs = vl.solve(problem, "particles", times=TIMES, **nodes), vl.solve(problem, "gaussian", times=TIMES)
    values, uncertainties = along(*runs)
    assert values.max() <= 1e-6
    assert (values <= uncertainties + 1e-9).all()


def test_tokens_and_sums_over_the_line_agree(tokens):
    """A coarse grid that stays where it is errs; by how much says the exact Gaussian."""
    grid = vl.solve(LINE, "finite-volume", times=TIMES, cells=24, frame="fixed")
    values, uncertainties = along(tokens, grid)
    exact = by_sums(vl.solve(LINE, "gaussian", times=TIMES), grid)
    assert exact[-1] >= 1e-3
    assert (np.abs(values - exact) <= uncertainties).all()
    assert (uncertainties[1:] <= exact[1:]).all()


@pytest.mark.parametrize("seed", range(8))
def test_the_uncertainty_holds(seed):
    """Against a grid with four times the cells, by sums over the line."""
    rng = np.random.default_rng(seed)
    parts = [vl.Gaussian(m, v) for m, v in zip(rng.uniform(-1, 1, 2), rng.uniform(0.1, 0.4, 2), strict=True)]
    attention = vl.Softmax(A=rng.uniform(-0.8, 0.8, (1, 1)), V=rng.uniform(-0.8, 0.8, (1, 1)))
    problem, cells = vl.Problem(attention, vl.Mixture(parts, [0.4, 0.6]), 1.0), int(rng.integers(32, 64))
    tokens = vl.solve(problem, "particles", times=TIMES, n=400, sampling="quadrature", tolerance=1e-10)
    grid, fine = (vl.solve(problem, "finite-volume", times=TIMES, cells=n, frame="fixed") for n in (cells, 4 * cells))
    values, uncertainties = along(tokens, grid)
    exact = by_sums(grid, fine)
    assert (np.abs(values - exact) <= uncertainties + 1e-2 * exact).all()
    assert (along(tokens, fine)[0] <= 0.05 * values).all()


def test_a_box_whose_density_is_smeared_beyond_its_support():
    """E |rho'/rho - 1| over the tokens would miss what has left the support; the masses of cells do not."""
    problem = vl.Problem(vl.Softmax(A=[[0.0]], V=[[1.0]]), vl.Box(-1.0, 1.0), 0.5)
    times = np.linspace(0.0, 0.5, 5)
    tokens = vl.solve(problem, "particles", times=times, n=1000, sampling="quantile")
    wider = vl.solve(vl.Problem(problem.attention, vl.Box(-1.25, 1.25), 0.5), "finite-volume", times=times)
    assert along(tokens, wider)[0] == pytest.approx(2 * (1 - 1 / 1.25), abs=0.02)


def test_the_divergence_under_a_mask_is_the_trace_of_the_jacobian():
    rng = np.random.default_rng(0)
    cloud = vl.Particles(rng.normal(size=(60, 2)), s=np.sort(rng.uniform(size=60)))
    problem = vl.Problem(vl.Masked(vl.Softmax(A=[[0.8, 0.3], [-0.2, 0.5]])), cloud, 1.0)
    x, s = rng.normal(size=(9, 2)), np.linspace(0.5, 1.0, 9)
    exact = np.trace(problem.attention.jacobian(cloud, x, s=s), axis1=1, axis2=2)
    assert divergence(problem.flow(), cloud, 0.0, x, s) == pytest.approx(exact, abs=1e-5)


def test_a_text_is_read_between_its_slices():
    """The second law is torn along s by more than its width; with A = 0 all of it is moved, and no density changes."""
    text = vl.Sequence([vl.Gaussian(-4.0, 0.1), vl.Gaussian(4.0, 0.1)])
    problem = vl.Problem(vl.Masked(vl.Softmax(A=[[0.0]])), text, 1.0)
    times = np.linspace(0.0, 1.0, 5)
    runs = vl.solve(problem, "particles", times=times, n=2000), vl.solve(problem, "finite-volume", times=times)
    assert along(*runs)[0].max() <= 0.05
    assert np.isnan(coupled(*runs, times, [2])[0]).all()  # slices do not say the velocity between them


def test_what_has_no_density_along_tokens_says_why():
    def reason(problem, times, solver="particles", other="finite-volume"):
        runs = [vl.solve(problem, name, times=times) for name in (solver, other)]
        found, reasons = differences(runs, np.array(times), {"pair": (0, 1)})
        assert all(np.isnan(values).all() for _, values in found.values())
        assert "difference" not in found
        return reasons[0]

    points = vl.Problem(LINE.attention, vl.Particles([[0.0], [1.0], [0.4]]), 1.0)
    assert "particles have no density" in reason(points, [0.0, 1.0])
    assert "begin after t = 0" in reason(LINE, [0.5, 1.0])
    assert "layers" in reason(LINE, [0.0, 1.0], "layers", "gaussian")


def test_tokens_that_a_shifted_gaussian_moves():
    """y - x = e with e' = V delta + V A Sigma e, where Sigma = Sigma_0 / (1 - 2 A V Sigma_0 t)."""
    (a, v, variance), delta = (0.5, 0.8, 0.6), 0.01
    problem = vl.Problem(vl.Softmax(A=[[a]], V=[[v]]), vl.Gaussian(0.3, variance), 1.0)
    tokens = vl.solve(problem, "particles", times=TIMES, n=20, sampling="quadrature", tolerance=1e-10)
    run = vl.solve(problem, "gaussian", times=TIMES)
    found = compare(tokens, run.assign(mean=run["mean"] + delta), p=[1, 2])
    c, t = 2 * a * v * variance, found["time"].values
    exact = v * delta * 2 / (3 * c) * ((1 - c * t) ** -0.5 - (1 - c * t))
    for p in (1, 2):
        values, errors = (found[name].sel(p=p).values[0] for name in ("coupled", "coupled_error"))
        assert (np.abs(values - exact) <= errors + 1e-9).all()
        assert (errors <= 0.01 * exact).all()
    assert found["difference"].dims == ("pair", "time", "token")


def test_tokens_that_a_grid_moves_bound_the_distance_of_tokens():
    """Few cells move tokens elsewhere, by less where there are more cells; d_p increases with p."""
    runs = [vl.solve(LINE, "finite-volume", times=TIMES, cells=cells, frame="fixed") for cells in (16, 32, 64)]
    nodes = vl.solve(LINE, "particles", times=TIMES, n=20, sampling="quadrature", tolerance=1e-10)
    found = [coupled(nodes, run, TIMES[::4], [1, 2]) for run in runs]
    last = np.array([values[-1] for values, _ in found])
    assert (last[1:] <= last[:-1] / 4).all()
    assert (last[:, 0] <= last[:, 1]).all()
