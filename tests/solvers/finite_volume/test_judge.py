"""Finite volumes know their own error: estimates against exact solutions, warnings, and what is advised."""

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

import vlasov as vl
from tests.solvers.finite_volume.common import CLOUDS, SOFTMAX, V, run
from vlasov.solvers.accuracy import Units, doubt
from vlasov.solvers.finite_volume import Options, companion, density_error, options, solver
from vlasov.solvers.finite_volume.density_error import samples
from vlasov.solvers.finite_volume.judge import judge as judging
from vlasov.solvers.ode.clouds import Tokens
from vlasov.solvers.progress import silent
from vlasov.solvers.record import Record
from vlasov.tilting import Head

CIRCLE = [[2 * np.cos(a), 2 * np.sin(a)] for a in 2 * np.pi * np.arange(5) / 5]
FAR = vl.Problem(vl.L2([[-1.0]], [[1.0]], [[-0.2]]), vl.Gaussian([12.0], [[1.0]]), 1.0)  # S1
NARROW = vl.Problem(  # S2
    vl.Softmax(A=0.5 * np.eye(2)),
    vl.Mixture([vl.Gaussian(mean, 1e-5 * np.eye(2)) for mean in CIRCLE], [0.1, 0.2, 0.3, 0.2, 0.2]),
    1.0,
)
BOX = vl.Problem(  # S3
    vl.Softmax(A=[[8, 3, 0], [-3, 5, 0], [0, 0, -4]]), vl.Box([-1, -1, -1], [1, 0.5, 1]), 0.5
)

FOLDED = vl.Mixture([vl.Gaussian([-1.0], [[0.1]]), vl.Gaussian([1.0], [[0.1]])])
DIFFUSED = vl.Problem(SOFTMAX, CLOUDS, 1.0)


def nodes(problem, n, times):
    return vl.solve(problem, "particles", n=n, sampling="quadrature", tolerance=1e-10, times=times)


def true_errors(problem, found, exact):
    units = Units(problem.initial.covariance)
    rows = (found["mean"], found["covariance"], exact["mean"], exact["covariance"])
    return np.array([units.errors(*each) for each in zip(*(row.values for row in rows), strict=True)]).T


def told(result):
    return np.array([result["mean_error"].values, result["covariance_error"].values])


@pytest.mark.quick
@pytest.mark.parametrize(
    ("problem", "n", "chosen"),
    [
        (FAR, None, {"cells": 64}),
        (NARROW, 64, {"cells": 64, "frame": "moving"}),
        (BOX, 14**3, {"cells": 12}),
        (vl.Problem(SOFTMAX, CLOUDS, 1.0), 1600, {"cells": 32}),
        (vl.Problem(SOFTMAX, vl.Ball(1.0, [0.3, 0.1]), 1.0), 1600, {"cells": 32, "reconstruction": "upwind"}),
    ],
    ids=["far", "narrow", "box", "fine", "upwind"],
)
def test_the_estimate_is_about_the_error(problem, n, chosen):
    times = [0.0, problem.horizon / 2, problem.horizon]
    result = vl.solve(problem, "finite-volume", times=times, warn_above=np.inf, **chosen)
    exact = vl.solve(problem, "gaussian", times=times) if n is None else nodes(problem, n, times)
    errors, estimates = true_errors(problem, result, exact), told(result)
    big = errors > 1e-8
    assert (estimates[big] >= errors[big] / 3).all()
    assert (estimates <= 30 * np.maximum(errors, 1e-8)).all()
    assert result.attrs["error_estimate"] >= estimates.max()
    if errors.max() > 1e-2:  # one cause, one remedy
        assert doubt(result)
        assert result.attrs["advice"].count(": ") == 1
        assert ";" not in result.attrs["advice"]


@pytest.mark.parametrize("problem", [DIFFUSED, BOX], ids=["diffused", "box"])
def test_what_is_wrong_is_warned_of(problem):
    with pytest.warns(vl.AccuracyWarning, match=r"finite-volume: the \w+ is off by an estimated .* at t = "):
        run(problem, cells=14, frame="moving", reconstruction="upwind")


def test_the_remedy_works():
    """The advice names a number of nodes that gives the right answer."""
    result = run(DIFFUSED, cells=32, frame="moving", reconstruction="upwind", warn_above=np.inf)
    n = int(result.attrs["advice"].partition("n=")[2].split()[0])
    good, better = (nodes(DIFFUSED, count, [1.0]) for count in (n, 4 * n))
    assert np.abs(good["covariance"] - better["covariance"]).max() <= 1e-4 * np.abs(better["covariance"]).max()


def test_runs_that_chose_too_few_cells_take_more(monkeypatch):
    monkeypatch.setitem(options.DEFAULT_CELLS, 1, 16)
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), FOLDED, 0.5)
    coarse = run(problem, cells=16, frame="moving", warn_above=np.inf)
    found = run(problem, frame="moving")
    assert coarse.attrs["error_estimate"] > 0.1
    assert coarse.sizes["xi"] == 16
    assert found.sizes["xi"] == 16 * 2 ** found.attrs["refinements"] > 16
    assert true_errors(problem, found, nodes(problem, 64, [0.5])).max() <= found.attrs["error_estimate"] <= 1e-2


def test_no_warning_where_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(vl.Problem(SOFTMAX, CLOUDS, 1.0))
    assert result.attrs["error_estimate"] < 1e-2
    assert result.attrs["advice"] == doubt(result) == ""


@pytest.mark.parametrize("cells", [32, 48])
def test_the_density_in_l1(cells):
    """Where the flow is x -> F x, the density is known: N(0, I) as a mixture, turned and stretched by itself."""
    attention = vl.Linear(A=0.3 * np.eye(2), V=[[0.5, 1.0], [-1.0, 0.2]])
    start = vl.Mixture([vl.Gaussian([-0.5, 0.0], 0.2 * np.eye(2)), vl.Gaussian([0.5, 0.2], 0.3 * np.eye(2))])
    problem = vl.Problem(attention, start, 1.0)
    result = vl.solve(problem, "finite-volume", frame="fixed", extent=6.0, cells=cells, times=[0.0, 1.0])
    cloud = nodes(problem, 64, [0.0, 1.0])
    first, last = (vl.measure(cloud, k).points for k in (0, 1))
    flow = np.linalg.lstsq(first, last, rcond=None)[0].T
    state = vl.measure(result)
    edges = [np.linspace(axis[0], axis[-1], 8 * (axis.size - 1) + 1) for axis in state.edges]
    middles = [(axis[1:] + axis[:-1]) / 2 for axis in edges]
    x = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, 2)
    exact = start.density(x @ np.linalg.inv(flow).T) / np.linalg.det(flow)
    averages = exact.reshape(cells, 8, cells, 8).mean(axis=(1, 3))
    error = float((np.abs(averages - state.values) * state.volumes).sum())
    assert error > 1e-3
    assert error / 3 <= float(result["density_error"][-1]) <= 3 * error
    assert result["density_error"][0] == 0


def test_the_density_at_outputs_inside_steps():
    """Beside the masses between characteristics: of two steps, the middles err ten times as much as the ends."""
    variances, A, V, T, centre = np.array([0.4155, 0.3888]), -1.0764, -0.1764, 0.967, 0.42
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    sources = (np.array([-centre, centre])[:, None] + np.sqrt(variances)[:, None] * nodes).ravel()
    shares, starts = np.tile(weights, 2) / weights.sum() / 2, np.linspace(-6.0, 6.0, 2001)

    def velocity(_, x):
        exponents = A * np.outer(x, x[: sources.size])
        tilted = shares * np.exp(exponents - exponents.max(axis=1, keepdims=True))
        return V * (tilted @ x[: sources.size]) / tilted.sum(axis=1)

    start = vl.Mixture([vl.Gaussian([c], [[v]]) for c, v in zip((-centre, centre), variances, strict=True)], [0.5, 0.5])
    times = np.linspace(0.0, T, 5)
    problem = vl.Problem(vl.Softmax(A=[[A]], V=[[V]]), start, T)
    result = vl.solve(problem, "finite-volume", times=times, cells=160, frame="moving")
    assert result.attrs["steps"] == 2
    ends = solve_ivp(velocity, (0.0, T), np.concatenate([sources, starts]), "DOP853", times, rtol=1e-10, atol=1e-12).y.T
    masses = sum(ndtr((starts - c) / np.sqrt(v)) / 2 for c, v in zip((-centre, centre), variances, strict=True))
    for k in range(1, 5):
        state = vl.measure(result, k)
        x = state.origin + state.matrix[0, 0] * state.edges[0]
        exact = np.diff(CubicSpline(ends[k, sources.size :], masses)(np.clip(x, *ends[k, [sources.size, -1]])))
        error = float(np.abs(exact - state.values * state.volumes).sum())
        assert error / 1.5 <= float(result["density_error"][k]) <= 10 * error


@pytest.mark.parametrize("cells", [14, 20])
def test_the_density_of_a_gaussian_is_held_against_its_cell_averages(cells):
    """Softmax with V = 1, A = 1/2: Sigma = 1 / (5/2 - t), alpha = alpha_0 e^t (Sigma / Sigma_0)^{1/2}."""
    problem, t = vl.Problem(vl.Softmax(A=[[0.5]]), vl.Gaussian([0.2], [[0.4]]), 0.6), 0.6
    variance = 1 / (2.5 - t)
    mean = 0.2 * np.exp(t) * np.sqrt(variance / 0.4)
    for wrong, chosen in ((False, {}), (True, {"frame": "fixed", "extent": 5.0, "reconstruction": "upwind"})):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = vl.solve(problem, "finite-volume", times=[0.0, t], cells=cells, **chosen)
        state = vl.measure(result)
        [edges] = state.edges
        x = state.origin + state.matrix[0, 0] * edges
        exact = np.diff(ndtr((x - mean) / np.sqrt(variance)))
        error = float(np.abs(exact - state.values * state.volumes).sum())
        assert bool(said) == wrong == (error > 1e-2)
        assert abs(float(result["density_error"][-1]) - error) <= 1e-3 * error + 1e-11


def test_a_gaussian_that_left_the_grid_is_wrong_altogether():
    """Its mean runs off to 500: what the grid still holds and all of the truth are apart, and L1 is their sum."""
    attention, start = vl.Softmax(A=-np.array([[1, 0.5], [0.5, 0.3]])), vl.Gaussian([0.3, 0.1], 0.1 * np.eye(2))
    problem = vl.Problem(attention, start, 8.0)
    result = vl.solve(problem, "finite-volume", frame="fixed", extent=5.0, cells=24, warn_above=9.0)
    assert float(result["density_error"][-1]) == pytest.approx(1 + float(result["mass"][-1]), abs=1e-6)


@pytest.mark.parametrize("far", [0.0, 1e4])
def test_the_divergence_of_tilted_means(far):
    """Of a Gaussian beside e^{-<y, P y>} it is tr(V G Sigma A), G = (I + 2 Sigma P)^{-1}, wherever it is."""
    covariance, p = np.array([[0.5, 0.1], [0.1, 0.3]]), np.array([[0.4, 0.1], [0.1, 0.2]])
    cloud = vl.Gaussian([far, -far / 2], covariance).quadrature(24)
    head = Head(2 * p, V, p)
    exact = np.trace(V @ np.linalg.solve(np.eye(2) + 2 * covariance @ p, covariance) @ head.A)
    heaviest = cloud.weights > 1e-6
    np.testing.assert_allclose(density_error._of_head(cloud, head, cloud.points)[heaviest], exact, rtol=1e-6)


def test_a_run_that_goes_on_is_judged_by_a_part_of_its_cells():
    problem = vl.Problem(SOFTMAX, CLOUDS, 0.3)
    first = vl.measure(run(problem, frame="moving"))
    assert len(companion._nodes(first, 12)) < first.values.size / 4
    result = run(vl.Problem(SOFTMAX, first, 0.3), cells=96, frame="moving")
    exact = nodes(vl.Problem(SOFTMAX, CLOUDS, 0.6), 1600, [0.3, 0.6]).isel(time=[1])
    error, estimate = true_errors(problem, result, exact).max(), told(result).max()
    assert error / 3 <= estimate + 1e-7
    assert estimate <= 1e-4


@pytest.mark.parametrize("beside", [False, True])
def test_averages_with_jumps_are_judged_by_their_halves(beside):
    """Alone, and beside particles: centres of cells and of their halves are two sizes."""

    def start(pieces):
        edges = np.linspace(-1.5, 1.5, 12 * pieces + 1)
        density = vl.Density(np.repeat([1, 3, 2, 2, 5, 1, 4, 2, 2, 3, 1, 2], pieces) / 7, [edges])
        dots = vl.Particles([[-0.5], [0.2], [0.9]])
        return vl.Mixture([density, dots], [0.8, 0.2]) if beside else density

    def problem(measure):
        return vl.Problem(vl.Softmax(A=[[1.0]]), measure, 0.5)

    found = run(problem(start(1)), cells=64, frame="fixed", extent=4.0, times=[0.5])
    exact = vl.solve(problem(start(64).quadrature(1)), "particles", times=[0.5], tolerance=1e-10)
    error, estimate = true_errors(problem(start(1)), found, exact).max(), told(found).max()
    assert error / 3 <= estimate <= 30 * error


def test_densities_with_jumps_have_no_estimate_in_l1():
    result = run(vl.Problem(SOFTMAX, vl.Box([-1.0, -1.0], [1.0, 1.0]), 0.2), cells=16)
    assert "density_error" not in result
    assert "covariance_error" in result


def test_sums_over_time_know_jumps_of_parameters():
    """Polynomials of degree five between the jumps are summed up exactly."""
    layers = vl.Piecewise([np.eye(2), 2 * np.eye(2)], [0.0, 0.3, 1.0])
    problem = vl.Problem(vl.Softmax(A=np.eye(2), V=layers), CLOUDS, 1.0)
    found = samples(problem, np.array([0.0, 0.6, 1.0]), 1, [1, 2])
    values = np.where(found.times < 0.3, found.times**5, 7.0)
    assert abs(found.weights @ values - (0.3**6 / 6 + 0.7 * 7)) < 1e-14
    assert abs(found.weights[found.times < 0.6].sum() - 0.6) < 1e-14


def test_an_error_that_nobody_knows_is_told(monkeypatch):
    monkeypatch.setattr(companion, "follow", lambda *_: None)
    with pytest.warns(vl.AccuracyWarning, match="is not known"):
        result = run(vl.Problem(SOFTMAX, CLOUDS, 0.1), cells=16)
    assert result.attrs["error_estimate"] == np.inf


def test_a_companion_that_is_too_dear_is_left(monkeypatch):
    monkeypatch.setattr(companion, "_LEAST_PAIRS", 1.0)
    monkeypatch.setattr(companion, "_PAIRS_PER_CELL", 1e-9)
    problem = vl.Problem(SOFTMAX, CLOUDS, 1.0)
    record = Record(np.array([0.0, 1.0]), silent)
    solver.run(problem, Options(cells=16), record)
    assert companion.follow(problem, record) is None


def test_few_nodes_are_not_followed_for_ever():
    """Three of them over 100,000 relaxation times: every velocity costs next to no pairs, but a call."""
    problem = vl.Problem(vl.Softmax(A=0.0, V=-1.9), vl.Particles([[0.0], [1.0], [3.0]]), 1e5)
    flow = problem.flow(tolerance=1e-9)
    nothing = companion.Samples(np.empty(0), np.empty(0))
    assert companion._followed(Tokens(problem.initial, flow), np.array([0.0, 1e5]), nothing, 5e7) is None
    assert flow.evaluations < 30_000


def test_a_blow_up_before_the_first_output_is_judged():
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian([0.0], [[1.0]]), 2.0)
    result = vl.solve(problem, "finite-volume", cells=64, times=[2.0], warn_above=np.inf)
    assert result.attrs["status"] == "blow-up"
    assert result.sizes["time"] == 1
    assert np.isfinite(result["covariance_error"]).all() or doubt(result)


def test_tokens_on_a_grid_are_judged_by_the_tokens_themselves():
    """Two tokens at +-x under exponential attention: x' = x sinh(x^2)."""
    problem = vl.Problem(vl.Exponential(A=1.0), vl.Particles([[1.0], [-1.0]]), 0.15)
    found = run(problem, times=[0.0, 0.15], cells=64)
    x = solve_ivp(lambda t, x: x * np.sinh(x * x), (0, 0.15), [1.0], rtol=1e-12, atol=1e-14).y[0, -1]
    error = abs(float(found["covariance"][-1].item()) / x**2 - 1)
    assert error > 1e-4
    assert abs(float(found["covariance_error"][-1]) / error - 1) < 1e-3


def test_gaussians_are_judged_by_the_exact_reduction():
    """The estimate sees an error of a known size."""
    problem = vl.Problem(SOFTMAX, vl.Gaussian([0.3, 0.0], [[0.8, 0.2], [0.2, 0.5]]), 0.5)
    record = Record(np.array([0.0, 0.5]), silent)
    exact = vl.solve(problem, "gaussian", tolerance=1e-12, times=[0.0, 0.5])
    solver.run(problem, Options(cells=32), record)
    record._series["covariance"][1] = 1.05 * exact["covariance"].values[1]
    judging(problem, record)
    assert abs(record.series["covariance_error"][1] - 0.05) < 1e-6
    assert 'the solver "gaussian" is exact here' in record.attributes["advice"]


def test_the_companion_costs_little():
    """In pairs of nodes, against cells: a tenth of what the grid's velocities take."""
    problem = vl.load_case("mixture-2d").problem
    record = Record(np.array([0.0, 1.0]), silent)
    solver.run(problem, Options(), record)
    spent = []
    original = companion._followed

    def counted(*arguments):
        found = original(*arguments)
        spent.append(found.cost)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(companion, "_followed", counted)
        assert companion.follow(problem, record) is not None
    assert sum(spent) <= max(companion._LEAST_PAIRS, companion._PAIRS_PER_CELL * companion._cell_evaluations(record))


def apart(d=2):
    places = [[-1.0] + [0.0] * (d - 1), [1.0] + [0.2] * (d - 1)]
    return vl.Mixture([vl.Gaussian(place, size * np.eye(d)) for place, size in zip(places, (0.01, 0.02), strict=True)])


@pytest.mark.parametrize("d", [1, 2])
def test_the_density_of_parts_in_l1(d):
    """A tenth of one of two equal parts is missing: 2 E (1 - f / f*)_+ is 2 * 0.1 / 2, told twice as large."""
    problem = vl.Problem(vl.Linear(A=0.3 * np.eye(d), V=np.eye(d)), apart(d), 0.5)
    record = Record(np.array([0.0, 0.5]), silent)
    solver.run(problem, Options(frame="parts"), record)
    judging(problem, record)
    assert record.series["density_error"][1] <= 1e-3
    record._series["density"][1, 0] *= 0.9
    judging(problem, record)
    assert abs(record.series["density_error"][1] - 0.2) < 2e-3


@pytest.mark.parametrize("start", [vl.Box([-1.0], [1.0]), apart()], ids=["jumps", "parts"])
def test_what_is_only_suspected_is_not_advised(start):
    """Moments that a converged companion finds right clear a run, whatever its measure."""
    d = start.dimension
    problem, record = vl.Problem(vl.Softmax(A=0.3 * np.eye(d)), start, 0.3), Record(np.array([0.3]), silent)
    solver.run(problem, Options(frame="auto"), record)
    record.attributes["advice"] = "it may be rough"
    judging(problem, record)
    assert record.largest_error <= 1e-3
    assert record.attributes["advice"] == ""


def test_parts_do_not_stay_gaussian():
    """A part that the flow folds into waves is seen to be rough."""
    problem, record = vl.Problem(vl.Softmax(A=6 * np.eye(1)), FOLDED, 1.0), Record(np.array([1.0]), silent)
    solver.run(problem, Options(frame="parts", cells=24), record)
    assert "no wider than cells" in str(record.attributes["advice"])
