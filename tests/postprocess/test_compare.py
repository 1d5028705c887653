"""Solutions side by side: known differences come out, agreement is seen, and the stability estimates hold."""

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib.patches import Ellipse
from scipy.linalg import sqrtm

import vlasov as vl
from tests import references
from tests.printed import printed
from vlasov import estimates
from vlasov.measures import Particles
from vlasov.postprocess import stability
from vlasov.postprocess.compare import compare, density_error, moment_errors
from vlasov.postprocess.compare.picture import draw
from vlasov.postprocess.compare.show import rounded_up
from vlasov.postprocess.moments import moments
from vlasov.postprocess.panels import tables_of

A, V = np.array([[-0.8, 0.3], [0.1, -0.5]]), np.array([[0.9, -0.2], [0.3, 0.7]])
START = vl.Gaussian([0.2, -0.1], [[0.5, 0.1], [0.1, 0.3]])
PROBLEM = vl.Problem(vl.Softmax(A=A, V=V), START, 1.0)
TIMES = [0.0, 1.0]


@pytest.fixture(scope="module")
def solutions():
    return [
        vl.solve(PROBLEM, "gaussian", times=TIMES, tolerance=1e-12),
        vl.solve(PROBLEM, "particles", times=TIMES, n=64, sampling="quadrature", tolerance=1e-10),
        vl.solve(PROBLEM, "finite-volume", times=TIMES, cells=32),
    ]


@pytest.fixture(scope="module")
def comparison(solutions):
    return compare(*solutions)


def test_three_ways_to_solve_a_gaussian_problem_agree(comparison):
    assert comparison["pair"].values.tolist() == [
        "gaussian / particles",
        "gaussian / finite-volume",
        "particles / finite-volume",
    ]
    assert comparison["mean_error"].max() <= 1e-6
    assert comparison["covariance_error"].max() <= 1e-6
    assert comparison["moment_error"].max() <= 1e-6
    assert comparison["density_error"].sel(pair="gaussian / finite-volume").max() <= 1e-8
    along = comparison.sel(pair="particles / finite-volume")  # by few tokens and times, which the uncertainty tells
    assert (along["density_error"] <= 2 * along["density_error_uncertainty"]).all()
    found = comparison.sel(pair="gaussian / finite-volume")
    assert (found["wasserstein"] <= found["wasserstein_error"] + 1e-6).all()


def test_each_pair_has_a_table_with_a_row_for_each_time(comparison):
    tables = tables_of(comparison)
    for pair in comparison["pair"].values:
        assert {len(table.rows) for table in tables if str(pair) in table.title} == {2}


def test_moments_of_a_mixture_on_a_grid_are_those_of_quadrature_particles():
    problem = vl.load_case("mixture-2d").problem
    grid = vl.solve(problem, "finite-volume", times=[1.0], cells=128)
    cloud = vl.solve(problem, "particles", times=[1.0], n=4000, sampling="quadrature", tolerance=1e-10)
    assert moment_errors(vl.measure(grid), vl.measure(cloud)).max() <= 1e-5


def test_the_sentence_says_whether_solutions_agree(solutions):
    """A mean that is off by a deviation is no agreement; units stand in the heads of the table."""
    text = printed(compare(*solutions[1:]), 80)
    assert "particles and finite-volume agree: means to " in text
    assert "[s.d.]" in text.partition("agree")[0]
    wrong = solutions[2].assign(mean=solutions[2]["mean"] + 1.0)
    assert "particles and finite-volume differ by more than they say: means by " in printed(
        compare(solutions[1], wrong)
    )


@pytest.mark.parametrize(
    ("value", "text"), [(5.04e-5, "5.1e-05"), (8.6e-3, "8.6e-03"), (9.99e-3, "1.0e-02"), (0.0, "0")]
)
def test_two_digits_are_rounded_up(value, text):
    assert rounded_up(value) == text


def test_a_shift_is_seen_for_what_it_is():
    shift = np.array([0.3, 0.4])
    clouds = [Particles(START.sample(300, "sobol", seed=1).points + move) for move in (0.0, shift)]
    runs = [
        vl.solve(vl.Problem(PROBLEM.attention, cloud, 1.0), "particles", times=[0.0]).assign_attrs(
            problem=PROBLEM.to_json()
        )
        for cloud in clouds
    ]
    result = compare(*runs, p=[1, 2, 3])
    assert np.allclose(result["wasserstein"], 0.5, rtol=1e-9)
    assert result["growth"].values.ravel().tolist() == [1.0, 1.0, 1.0]
    covariance = clouds[0].covariance
    assert result["mean_error"].item() == pytest.approx(0.5 / np.sqrt(np.trace(covariance)), rel=1e-9)
    assert result["covariance_error"].item() <= 1e-12


def test_moments_of_known_measures():
    box, normal = vl.Box([-1.0], [1.0]), vl.Gaussian([0.0], [[1 / 3]])
    # Kurtosis 9/5 against 3, in standard deviations and relative to the larger of 9/5 and 1.
    assert moment_errors(box, normal) == pytest.approx([0.0, 0.0, 0.0, (3 - 9 / 5) / (9 / 5)], abs=1e-12)


def test_densities_in_different_frames():
    edges = [np.linspace(-9.0, 9.0, 181)] * 2
    plain = vl.Gaussian([0.0, 0.0], np.eye(2)).on_grid(edges)
    root = np.array([[1.5, 0.4], [0.0, 0.8]])
    sheared = vl.Density(plain.values, edges, origin=[0.1, 0.2], matrix=root)
    exact = vl.Gaussian([0.1, 0.2], root @ root.T)
    assert density_error(sheared, exact) <= 1e-12
    assert density_error(sheared, vl.Gaussian([0.1, 0.2], 1.01 * root @ root.T)) > 1e-3


@pytest.mark.parametrize("kind", ["softmax", "multi-head"])
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_estimates_bound_what_is_measured(seed, kind):
    rng = np.random.default_rng(seed)
    a, b, v, w = 0.5 * rng.normal(size=(4, 2, 2))
    attention = {
        "softmax": lambda: vl.Softmax(A=a, V=v),
        "multi-head": lambda: vl.MultiHead([vl.Softmax(A=a, V=v), vl.Softmax(A=b)], [w, v]),
    }[kind]()
    one = rng.uniform(-1, 1, (12, 2))
    other = one + 0.1 * rng.normal(size=(12, 2))
    times = np.linspace(0.0, 0.3, 13)
    runs = [vl.solve(vl.Problem(attention, Particles(x), 0.3), "particles", times=times) for x in (one, other)]
    clouds = [[vl.measure(run, i) for i in range(len(times))] for run in runs]
    radii = np.maximum(*(run["radius"].values for run in runs))
    rates = np.array([stability.rate(attention, *given) for given in zip(*clouds, times, radii, strict=True)])
    radius = float(radii[0])
    a_posteriori = np.exp(stability.exponent(rates, times)[0])
    a_priori = np.array([estimates.stability_bound(attention, radius, t) for t in times])
    assert (a_posteriori <= a_priori * (1 + 1e-9)).all()
    for p in (1, 2):
        growth = np.array([references.wasserstein(mu.points, nu.points, p) for mu, nu in zip(*clouds, strict=True)])
        growth /= growth[0]
        assert (growth <= a_posteriori * (1 + 1e-9)).all()


def test_suprema_over_few_points_are_those_over_all(monkeypatch):
    """The extreme points decide, and are always among them: fewer make the estimate no smaller than rounding."""
    clouds = [vl.Gaussian([shift, 0.0], 0.3 * np.eye(2)).sample(1500, "random", seed=1) for shift in (0.0, 0.1)]
    attention = vl.Softmax(A=[[0.8, 0.3], [-0.2, 0.5]])
    radius = max(cloud.support_radius for cloud in clouds)
    few = stability.rate(attention, *clouds, 0.0, radius)
    monkeypatch.setattr(stability, "_MOST", 10**6)
    assert few == pytest.approx(stability.rate(attention, *clouds, 0.0, radius), rel=1e-9)


def test_no_estimate_is_claimed_where_none_is_known():
    cloud = Particles([[1.0], [2.0]])
    assert np.isnan(stability.rate(vl.Linear(A=[[1.0]]), cloud, cloud, 0.0, 2.0))
    assert np.isnan(stability.rate(vl.Softmax(A=[[1.0]]), cloud, cloud, 0.0, np.nan))


def test_what_cannot_be_compared(solutions):
    with pytest.raises(vl.InputError, match="datasets: needs at least two solutions but got 1"):
        compare(solutions[0])
    with pytest.raises(vl.InputError, match=r"datasets: have no output time in common"):
        compare(solutions[0], vl.solve(PROBLEM, "gaussian", times=[0.5]))
    other = vl.solve(vl.Problem(vl.Softmax(A=A), START, 1.0), "gaussian", times=TIMES)
    with pytest.raises(vl.InputError, match=r"datasets\[1\]: has another attention than the first one"):
        compare(solutions[0], other)
    with pytest.raises(vl.InputError, match=r"^p: is empty; give at least one order"):
        compare(*solutions[:2], p=[])
    runs = [vl.solve(PROBLEM, "gaussian", times=[0.0, t]) for t in (0.1, 0.2)]
    with pytest.raises(vl.InputError, match=r"^datasets: have only t = 0 in common"):
        compare(*runs)
    with pytest.raises(vl.InputError, match=r"datasets\[0\]: is no Dataset"):
        compare(1, 2)
    for p in (0.5, 0.9995):
        with pytest.raises(vl.InputError, match=rf"^p: is {p} but must be at least 1"):
            compare(*solutions[:2], p=p)
    with pytest.raises(vl.InputError, match=r"^datasets\[1\]: has a Python function among its parameters"):
        compare(solutions[0], solutions[1].assign_attrs(problem=""))  # as such runs are


def test_a_comparison_says_whence_it_is_and_what_its_runs_doubt(solutions, comparison):
    assert comparison.attrs["problem"] == PROBLEM.to_json()
    assert {"vlasov_version", "created", "citation"} <= set(comparison.attrs)
    runs = json.loads(comparison.attrs["runs"])
    assert runs["particles"]["options"] == solutions[1].attrs["options"]
    assert comparison.attrs["doubt"] == ""
    doubtful = solutions[1].assign_attrs(error_estimate=0.25, advice="more tokens")
    found = compare(solutions[0], doubtful, initial="different", times=1)
    assert found.attrs["initial"] == "different"
    assert found.attrs["doubt"].startswith("particles: ")
    assert "more tokens" in printed(found)
    assert "particles" in draw(found, [solutions[0], doubtful]).get_supxlabel()
    with pytest.raises(vl.InputError, match=r"^initial: "):
        compare(*solutions[:2], initial="others")


def test_errors_of_means_are_in_the_units_of_a_run():
    """A measure that has collapsed is not asked for its relative size: s is a millionth of the initial one."""
    one = vl.solve(PROBLEM, "gaussian", times=[0.0])
    small = one.assign(covariance=one["covariance"] * 1e-20)
    moved = small.assign(mean=small["mean"] + np.array([3e-7, 4e-7]))
    expected = 5e-7 / (1e-6 * np.sqrt(np.trace(START.covariance)))
    assert compare(small, moved)["mean_error"].item() == pytest.approx(expected, rel=1e-9)


def test_moments_of_a_gaussian_by_isserlis_are_those_of_its_nodes():
    gaussian = vl.Gaussian([0.3, -0.2], [[1.0, 0.3], [0.3, 0.5]])
    where = {"center": np.array([0.1, 0.2]), "scale": np.array([2.0, 0.5])}
    for order in range(1, 6):
        exact = moments(gaussian.quadrature(8), order, **where)
        assert moments(gaussian, order, **where) == pytest.approx(exact, abs=1e-12)


def test_many_dimensions_are_compared_by_moments():
    d = 16
    problem = vl.Problem(vl.Softmax(A=0.1 * np.eye(d)), vl.Gaussian(np.zeros(d), np.eye(d)), 0.5)
    particles = vl.solve(problem, "particles", n=512, times=[0.0, 0.5])
    found = compare(vl.solve(problem, "gaussian", times=[0.0, 0.5]), particles)
    assert np.isnan(found["wasserstein"]).all()
    assert found["covariance_error"].values == pytest.approx(0.0, abs=0.2)
    assert "W_2" not in printed(found)  # the table has no empty column


def test_panels_that_nothing_is_known_for_are_left_out():
    """Distances between tokens and a Gaussian in d = 4, radii of what has unbounded support."""
    problem = vl.Problem(vl.Softmax(A=0.1 * np.eye(4)), vl.Gaussian(np.zeros(4), np.eye(4)), 0.5)
    gaussian, other = (vl.solve(problem, "gaussian", times=[0.0, t]) for t in (0.5, 0.5))
    tokens = vl.solve(problem, "particles", n=64, times=[0.0, 0.5])

    def panels(*runs):
        return {ax.get_title() for ax in draw(compare(*runs, local=False), runs).axes[3:]}

    assert panels(gaussian, tokens) == {"Differences"}
    shifted = other.assign(mean=other["mean"] + 0.1)
    assert panels(gaussian, shifted) == {"Distance", "Differences", "Growth of the distance"}


def test_a_comparison_of_what_is_no_gaussian_shows_its_tokens():
    """Not ellipses of covariances, which mean nothing for a box."""
    problem = vl.Problem(vl.Softmax(A=0.5 * np.eye(2)), vl.Box([-1.0, -1.0], [1.0, 1.0]), 0.2)
    runs = [vl.solve(problem, "particles", n=64, seed=seed, times=[0.0, 0.2]) for seed in (0, 1)]
    panels = draw(compare(*runs, initial="different", local=False), runs).axes
    assert not any(isinstance(patch, Ellipse) for ax in panels for patch in ax.patches)
    (dots,) = panels[1].collections
    np.testing.assert_array_equal(dots.get_offsets(), runs[0]["position"].values[-1])
    assert panels[0].get_title() == "particles 1: $t$ = 0"


@pytest.mark.parametrize("d", [1, 2, 3])
def test_pictures_in_every_dimension(d):
    problem = vl.Problem(vl.Softmax(A=0.5 * np.eye(d)), vl.Box(-np.ones(d), np.ones(d)), 0.2)
    times = [0.0, 0.1, 0.2]
    datasets = [
        vl.solve(problem, "particles", n=64, times=times),
        vl.solve(problem, "finite-volume", cells=16, times=times),
    ]
    drawn = draw(compare(*datasets), datasets)
    drawn.canvas.draw()
    assert {"Distance", "Differences"} <= {ax.get_title() for ax in drawn.axes}


def test_solutions_that_part_by_powers_of_ten_can_be_drawn(solutions):
    """Numbers that logarithmic axes cannot place."""
    far = solutions[0].assign(
        mean=solutions[0]["mean"] * np.array([1.0, *[1e60] * (solutions[0].sizes["time"] - 1)])[:, None]
    )
    found = compare(solutions[0], far, p=2)
    assert found["moment_error"].values[0, -1].max() > 1e200
    draw(found, [solutions[0], far]).canvas.draw()


def test_tokens_on_a_circle_have_one_radius():
    """The axis of powers of ten has one value, which is a power of ten."""
    problem = vl.load_case("kuramoto-circle").problem
    runs = [vl.solve(problem, "particles", times=[0.0, 0.2], tolerance=tolerance) for tolerance in (1e-6, 1e-8)]
    draw(compare(*runs, times=2), runs).canvas.draw()


def test_stability_of_gaussians_from_different_starts():
    """Equal covariances stay so under softmax, and means part as their equation says: W_p is their distance."""
    starts = [START, START.image(np.eye(2), [0.06, 0.08])]
    times = np.linspace(0.0, 0.5, 3)
    runs = [vl.solve(vl.Problem(PROBLEM.attention, one, 0.5), "gaussian", times=times) for one in starts]
    found = compare(*runs, p=[1, 3], times=3)
    assert found.attrs["initial"] == "different"
    apart = np.linalg.norm(runs[0]["mean"].values - runs[1]["mean"].values, axis=1)
    assert apart[0] == pytest.approx(0.1, rel=1e-12)
    for p in (1, 3):
        assert found["wasserstein"].sel(p=p).values[0] == pytest.approx(apart, rel=1e-5)
        assert found["growth"].sel(p=p).values[0] == pytest.approx(apart / apart[0], rel=1e-5)
    assert np.isnan(found["log_a_posteriori"]).all()  # their supports are not bounded
    assert np.isnan(found["log_a_priori"]).all()
    assert "no estimate holds, since the support of the initial measure is not bounded" in printed(found)
    drawn = draw(found, runs)
    drawn.canvas.draw()


def test_what_instability_alone_has_made_is_not_shown_as_a_distance():
    """V = I doubles a difference of the means every 0.7: 9.9e83 at t = 200 (issue F, section 3)."""
    problem = vl.Problem(vl.Softmax(A=-np.eye(2), V=np.eye(2)), vl.Gaussian([0.0, 0.0], np.eye(2)), 20.0)
    runs = [
        vl.solve(problem, "gaussian", times=[0.0, 20.0]),
        vl.solve(problem, "particles", n=16, times=[0.0, 20.0], tolerance=1e-5, moments="sampled"),
    ]
    found = compare(*runs, p=2)
    assert found["amplified"].values.tolist() == [[False, True]]
    assert "amplified" in printed(found)
    assert f"{float(found['wasserstein'][0, 1, 0]):.2e}" not in printed(found)


def test_a_difference_that_the_flow_does_not_explain_is_shown(solutions):
    """Means a tenth of a deviation apart, where nothing grows: that is an error of a solver."""
    wrong = solutions[0].assign(mean=solutions[0]["mean"] + 0.3)
    assert not compare(solutions[0], wrong)["amplified"].any()


def test_many_output_times_are_compared_at_21():
    runs = [vl.solve(PROBLEM, "gaussian", tolerance=tolerance) for tolerance in (1e-8, 1e-10)]
    assert compare(*runs, p=2)["time"].values == pytest.approx(np.linspace(0.0, 1.0, 21))
    assert compare(*runs, p=2, times=3).sizes["time"] == 3


def test_times_are_a_count_or_the_times_themselves():
    """Growth is counted from the first common time, which is always there; what comes after the last is left out."""
    pair = [vl.solve(PROBLEM, "gaussian", times=[0.0, 0.1, 0.2, until]) for until in (0.3, 0.4)]
    found = compare(pair, p=2, times=[0.2, 0.9], local=False)  # a list of solutions is as good as two
    assert found["time"].values.tolist() == [0.0, 0.2]
    assert found.isel(time=1).equals(compare(*pair, p=2, times=3, local=False).sel(time=0.2))
    for times, sentence in (
        ([0.15], "name t = 0.15, which is no output time"),
        (0, "is 0 but"),
        ("x", "'x' is not an array"),
    ):
        with pytest.raises(vl.InputError, match=f"^times: {sentence}"):
            compare(*pair, times=times)


def test_a_narrow_terminal_shows_every_number(comparison):
    lines = printed(comparison, 40).partition("agree")[0]
    assert "…" not in lines
    assert max(map(len, lines.splitlines())) <= 40
    assert all(head in lines for head in ("mean", "cov.", "W_2"))


@pytest.mark.filterwarnings("error")
def test_equal_runs_are_drawn_without_warnings(solutions):
    draw(compare(solutions[0], solutions[0]), [solutions[0]] * 2).canvas.draw()


def test_a_density_is_as_far_from_a_gaussian_as_bures_says():
    """Of one problem next to zero, by either order; from a moved start as two Gaussians are, in closed form."""
    problem = vl.load_case("gaussian-collapse").problem
    times = [0.0, 0.2 * problem.horizon]
    moved = problem.changed(initial=problem.initial.image(1.2 * np.eye(2), [0.1, 0.0]))
    exact, other = (vl.solve(one, "gaussian", times=times, tolerance=1e-12) for one in (problem, moved))
    density = vl.solve(problem, "finite-volume", times=times, cells=48)
    same = compare(exact, density, p=(1, 2))
    size = float(np.sqrt(np.trace(problem.initial.covariance)))
    assert (same["wasserstein"] + same["wasserstein_error"] <= 1e-6 * size).all()
    apart = compare(other, density, p=(1, 2), initial="different").isel(pair=0)
    for k in range(2):
        shift = (exact["mean"][k] - other["mean"][k]).values
        one, two = (run["covariance"][k].values for run in (exact, other))
        root = sqrtm(one)
        bures = np.sqrt(shift @ shift + np.trace(one + two - 2 * sqrtm(root @ two @ root).real))
        (lower, value), (_, error) = (apart[name].values[k] for name in ("wasserstein", "wasserstein_error"))
        assert abs(value - bures) <= error <= 0.03 * bures
        assert np.linalg.norm(shift) <= lower <= value + error


def test_a_ratio_of_distances_below_their_errors_is_nowhere(solutions):
    """Solutions of one problem begin zero apart: the table, the report, the picture and JSON have no ratio."""
    from vlasov.cli.printing import finite
    from vlasov.postprocess.report.elements import Parts
    from vlasov.postprocess.report.panels import section

    found = compare(solutions[0], solutions[2], initial="different")
    wide = found["wasserstein"] > found["wasserstein_error"]
    known = (wide & wide.isel(time=0)).transpose(*found["growth"].dims)
    assert not known.all()
    assert (np.isfinite(found["growth"]) == known).all()
    assert None in finite(found["growth"].values.ravel())
    assert "Growth" not in printed(found)
    assert not known[0, 1, -1]
    ratio = float(found["wasserstein"][0, 1, -1] / found["wasserstein"][0, 0, -1])
    parts = Parts()
    page = section(parts, found)
    assert f"{ratio:.6g}" not in page
    assert str(ratio) not in json.dumps(parts.charts)


def _two_tokens(count):
    problem = vl.load_case("dirac-pair").problem
    moved = problem.changed(initial=vl.Particles(problem.initial.points + 0.1))
    times = np.linspace(0.0, 2.0, count)
    return [vl.solve(one, "particles", times=times) for one in (problem, moved)]


def test_the_estimate_a_posteriori_does_not_depend_on_output_times():
    """By 65 times and by 321 the same, to 1 %; by fewer it says how wrong it is."""
    fine, usual = (compare(*_two_tokens(count), times=5).isel(pair=0) for count in (321, 65))
    name = "log_a_posteriori"
    assert fine["time"].values.tolist() == usual["time"].values.tolist()
    assert usual[name].values == pytest.approx(fine[name].values, rel=0.01)
    assert (usual[f"{name}_error"] <= 0.01 * usual[name]).all()
    coarse = compare(*_two_tokens(5), times=5).isel(pair=0)
    gap = np.abs(coarse[name].values - fine[name].values)
    assert gap[-1] > 0.01 * fine[name].values[-1]
    assert (gap <= coarse[f"{name}_error"].values).all()
    found = compare(*_two_tokens(5), times=5)
    assert "these output times tell its exponent to" in printed(found)
    assert np.isinf(compare(*_two_tokens(2))[f"{name}_error"].values[0, -1])


def test_integrals_of_exponentials_are_exact():
    """log L is linear between times, and a constant rate is one."""
    times = np.array([0.0, 0.3, 1.0])
    assert stability.exponent(np.exp(3 * times), times)[0] == pytest.approx(np.expm1(3 * times) / 3, rel=1e-12)
    assert stability.exponent(np.full(3, 2.0), times)[0] == pytest.approx(2 * times, rel=1e-12)
    assert stability.exponent(np.zeros(3), times)[0].tolist() == [0.0, 0.0, 0.0]


def test_densities_without_a_bounded_support_have_no_radius_and_no_estimate():
    problem = vl.load_case("mixture-2d").problem
    other = problem.changed(initial=problem.initial.image(np.eye(2), [0.1, 0.0]))
    runs = [vl.solve(one, "finite-volume", times=[0.0, 0.1], cells=32) for one in (problem, other)]
    assert np.isnan([run["radius"].values for run in runs]).all()
    found = compare(*runs, p=2)
    assert all(np.isnan(found[name]).all() for name in ("log_a_posteriori", "log_a_priori"))
    drawn = draw(found, runs)
    assert all(ax.lines or ax.collections for ax in drawn.axes)


def test_a_rate_that_jumps_between_times_is_refined_or_told():
    """L = 1 until t = 1/2, and 1e-6 from there on: by 6 of 641 times, by all, or by 6 alone."""
    times = np.linspace(0.0, 1.0, 641)
    found, error = stability.settled(lambda k: 1.0 if times[k] < 0.5 else 1e-6, times, np.arange(0, 641, 128))
    assert found[-1] == pytest.approx(0.5, rel=0.01)
    assert error[-1] <= 0.01 * found[-1]
    few = times[::128]
    rough, doubt = stability.exponent(np.where(few < 0.5, 1.0, 1e-6), few)
    assert doubt[-1] >= 0.5 * abs(rough[-1] - 0.5) > 0.01 * rough[-1]
