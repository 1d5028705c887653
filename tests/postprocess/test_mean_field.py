"""The mean-field study against what is known: rates, exact limits, and the same bits however it is computed."""

import io
import json

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from vlasov.postprocess import mean_field_limit as limits, mean_field_replica, mean_field_schedule as schedule
from vlasov.postprocess.mean_field import mean_field_study
from vlasov.postprocess.mean_field_figure import draw
from vlasov.postprocess.mean_field_rates import fit
from vlasov.postprocess.mean_field_table import table


def problem(initial: vl.measures.Measure, horizon: float = 0.5) -> vl.Problem:
    d = initial.dimension
    turn = np.eye(d) + np.triu(np.full((d, d), 0.4), 1)
    return vl.Problem(vl.Softmax(A=0.6 * turn, V=turn.T), initial, horizon)


LINE = problem(vl.Box(-1, 1))
COMPACT = {1: LINE, 2: problem(vl.Ring(0.3, 1.0, [0.2, 0.0])), 3: problem(vl.Ball(1.0, np.zeros(3)))}
REPLICAS = {1: 300, 2: 200, 3: 100}  # fewer where more coordinates average
SIZES = [2**k for k in range(5, 11)]
OBSERVABLES = ["mean", "covariance", "velocity"]


def same(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Variables and coordinates, to the last bit."""
    return one.drop_attrs().identical(other.drop_attrs())


@pytest.fixture(scope="module", params=[1, 2, 3])
def study(request):
    return mean_field_study(COMPACT[request.param], n=SIZES, replicas=REPLICAS[request.param], exact_up_to=0)


# Rates


def test_coupled_distance_falls_like_one_over_root_n(study):
    assert study["slope"].sel(quantity="coupled").values[0, -1, 0] == pytest.approx(-0.5, abs=0.05)


def test_observables_fall_like_one_over_root_n(study):
    assert study["slope"].sel(quantity=OBSERVABLES).values == pytest.approx(-0.5, abs=0.05)


def test_the_limit_is_far_more_accurate_than_what_is_measured(study):
    assert study["reference_error"].max() < 1e-3 * study["coupled"].isel(time=-1).min()


def test_intervals_hold_the_slope(study):
    assert (study["low"] <= study["slope"]).sum() == (study["slope"] <= study["high"]).sum() > 0


def test_wasserstein_on_the_line(study):
    if study.attrs["dimension"] == 1:
        assert study["slope"].sel(quantity="wasserstein").values == pytest.approx(-0.5, abs=0.05)


def test_wasserstein_in_space():
    found = mean_field_study(COMPACT[3], n=[32, 64, 128, 256], replicas=8, p=2)
    assert found["slope"].sel(quantity="wasserstein").values == pytest.approx(-1 / 3, abs=0.08)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_observables_of_sobol_tokens(d):
    found = mean_field_study(COMPACT[d], n=SIZES, replicas=24, p=2, sampling="sobol", exact_up_to=0)
    assert found["slope"].sel(quantity=[*OBSERVABLES, "coupled"]).isel(time=-1).values.max() <= -0.85


def test_samplings_side_by_side():
    found = mean_field_study(LINE, n=[16, 64, 256], replicas=3, p=2, sampling=["quantile", "quadrature", "random"])
    quantile, quadrature, random = (found.sel(sampling=name, p=2) for name in found["sampling"].values)
    assert quantile["slope"].sel(quantity="wasserstein").values == pytest.approx(-1.0, abs=0.02)
    assert quantile["slope"].sel(quantity="velocity").values == pytest.approx(-2.0, abs=0.02)
    assert quadrature["coupled"].isel(replica=0).max() < 1e-8
    assert np.isfinite(random["coupled"]).all()
    assert np.isnan(quantile["coupled"].isel(replica=1)).all()


def test_fitted_slope_is_that_of_a_power_law():
    n = np.array([10, 100, 1000])
    values = 3 * n[:, None] ** -0.7 * np.array([1.0, 1.1, 0.9])
    slope, low, high = fit(n, values)
    assert slope == pytest.approx(-0.7, abs=1e-12)
    assert low < -0.7 < high
    assert fit(n, values[:, :1])[0] == pytest.approx(-0.7, abs=1e-12)
    assert np.isnan(fit(n[:1], values[:1])).all()


# Distances


def test_initial_distances_on_the_line():
    """W_1 of n midpoints to the uniform measure on [-1, 1] is 1/(2n), W_2 is 1/(n sqrt 3)."""
    found = mean_field_study(LINE, n=[8, 32], replicas=1, sampling="quantile", p=[1, 2])
    exact = [[1 / (2 * n), 1 / (n * np.sqrt(3))] for n in (8, 32)]
    assert found["wasserstein"].values[0, :, 0, 0] == pytest.approx(np.array(exact), rel=3e-3)


def test_coupled_distance_bounds_what_tokens_add_to_their_initial_error():
    """W_p(mu^n(t), mu(t)) <= coupled + W_p of the initial tokens, moved by the limit flow."""
    found = mean_field_study(COMPACT[2], n=[64], replicas=4)
    assert (found["coupled"].isel(time=0) == 0).all()
    lipschitz = np.exp(0.5 * 3)  # more than that of the limit flow
    initial, final = found["wasserstein"].isel(time=0), found["wasserstein"].isel(time=-1)
    assert (final <= found["coupled"].isel(time=-1) + lipschitz * initial).all()


def test_transport_stops_where_it_is_told():
    found = mean_field_study(COMPACT[2], n=[16, 64], replicas=2, exact_up_to=16)
    assert np.isfinite(found["wasserstein"].isel(n=0)).all()
    assert np.isnan(found["wasserstein"].isel(n=1)).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_growth_is_below_the_bounds(d):
    gentle = vl.Problem(vl.Softmax(A=0.2 * np.eye(d)), vl.Ball(0.5, np.zeros(d)), 0.2)
    found = mean_field_study(gentle, n=[16, 64], replicas=4, times=np.linspace(0, 0.2, 5))
    ratio = (found["wasserstein"] / found["wasserstein"].isel(time=0)).max("p")
    assert np.allclose(ratio.max("replica"), found["growth"].max("p"))
    assert (ratio <= found["a_posteriori_bound"] * (1 + 1e-12)).all()
    assert (found["a_posteriori_bound"] <= found["a_priori_bound"]).all()
    assert found["a_priori_bound"][-1] < 2


# The limit


def test_references_agree():
    """A Gaussian by its ODE, by quadrature and by quantiles."""
    gaussian = problem(vl.Gaussian(0.2, 0.1))
    found = {}
    for kind in ("gaussian", "quadrature", "quantile"):
        choice, errors = limits.choose(gaussian, (0.0, 0.5), reference=kind, tolerance=1e-9)
        found[kind] = limits.solve(gaussian, choice, tolerance=1e-9), errors.max()
    exact, points = found["gaussian"][0], np.linspace(-1, 1, 9)[None, :, None]
    for other, error in found.values():
        assert np.abs(other.flow(points) - exact.flow(points)).max() <= max(error, 1e-11)
        assert np.abs(other.means - exact.means).max() <= max(error, 1e-11)
        assert np.abs(other.velocities - exact.velocities).max() <= max(error, 1e-11)
    assert found["quadrature"][1] < 1e-8


def test_gaussian_limit_is_the_solver_s():
    plane = problem(vl.Gaussian([0.3, -0.1], [[0.1, 0.02], [0.02, 0.05]]))
    found = mean_field_study(plane, n=[8], replicas=1, times=[0.25, 0.5])
    solved = vl.solve(plane, "gaussian", times=[0.0, 0.25, 0.5], tolerance=1e-12)
    assert found.attrs["reference"] == "gaussian"
    assert np.allclose(found["limit_mean"], solved["mean"], rtol=0, atol=1e-10)
    assert np.allclose(found["limit_covariance"], solved["covariance"], rtol=0, atol=1e-10)


def test_a_measure_of_particles_is_its_own_limit():
    cloud = problem(vl.Particles([[-1.0], [0.5], [0.7]]))
    found = mean_field_study(cloud, n=[64, 1024], replicas=20)
    assert found["slope"].sel(quantity="velocity").values == pytest.approx(-0.5, abs=0.2)


# The same bits


ARGUMENTS = {"n": [16, 32, 600], "replicas": 3, "p": [1, 2], "sampling": ["random", "sobol"]}


@pytest.fixture(scope="module")
def straight():
    return mean_field_study(COMPACT[2], **ARGUMENTS)


def test_resumed_equals_straight(straight, tmp_path):
    folder = tmp_path / "study"
    mean_field_study(COMPACT[2], **(ARGUMENTS | {"n": 32, "replicas": 2, "sampling": "random"}), output=folder)
    (folder / "random-32-0.json").write_text('{"coupled": [[0.0')  # damaged
    kept = (folder / "random-32-1.json").stat().st_mtime_ns
    assert same(mean_field_study(COMPACT[2], **ARGUMENTS, output=folder), straight)
    assert (folder / "random-32-1.json").stat().st_mtime_ns == kept
    assert same(vl.open_run(folder / "study.nc"), straight)
    assert same(mean_field_study(COMPACT[2], **ARGUMENTS, output=folder), straight)


def test_interrupted_study_goes_on(straight, tmp_path, monkeypatch):
    from vlasov.postprocess import mean_field_store

    put, left = mean_field_store.Store.put, iter(range(4))

    def interrupted(self, *result):
        if next(left, None) is None:
            raise KeyboardInterrupt
        put(self, *result)

    with monkeypatch.context() as patched:
        patched.setattr(mean_field_store.Store, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mean_field_study(COMPACT[2], **ARGUMENTS, output=tmp_path / "study")
    assert len(list((tmp_path / "study").glob("*-*-*.json"))) == 4
    assert same(mean_field_study(COMPACT[2], **ARGUMENTS, output=tmp_path / "study"), straight)


def test_one_thread_equals_two(straight):
    from numba import get_num_threads

    threads = get_num_threads()
    try:
        vl.set_threads(1)
        assert same(mean_field_study(COMPACT[2], **ARGUMENTS), straight)
    finally:
        vl.set_threads(threads)


def test_a_replica_does_not_depend_on_the_others(straight):
    alone = mean_field_study(COMPACT[2], **(ARGUMENTS | {"n": [600], "replicas": 1, "sampling": "sobol"}))
    assert alone["coupled"].values[0, 0, 0].tolist() == straight["coupled"].sel(sampling="sobol").values[2, 0].tolist()


def test_dask_gives_the_same_numbers(straight):
    pytest.importorskip("distributed")
    choice, _ = limits.choose(COMPACT[2], (0.0, 0.5), reference="auto", tolerance=1e-8)
    described = mean_field_replica.Study(COMPACT[2], choice, (1.0, 2.0), 0, 1e-8, 2048)
    assert schedule.to_json(schedule.from_json(schedule.to_json(described))) == schedule.to_json(described)
    assert same(mean_field_study(COMPACT[2], **ARGUMENTS, scheduler="local"), straight)


# Mistakes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": []}, r"n: is empty; give at least one"),
        ({"n": 0}, r"n: is 0 but must be at least 1"),
        ({"n": 1.5}, r"n: 1.5 is not a whole number"),
        ({"replicas": 0}, r"replicas: is 0 but must be at least 1"),
        ({"p": 0.5}, r"p: is 0.5 but must be at least 1"),
        ({"p": "two"}, r"p: 'two' is not a number"),
        ({"sampling": "sobl"}, r'sampling: "sobl" is not known; did you mean "sobol"\?'),
        ({"sampling": "quantile"}, r'sampling: "quantile" needs d = 1 but the problem has d = 2; use "sobol"'),
        ({"times": [0.3, 0.1]}, r"times: must increase"),
        ({"reference": "exact"}, r'reference: "exact" is not known'),
        ({"reference": "gaussian"}, r'reference: "gaussian" needs a Gaussian initial measure but this is a ring'),
        ({"reference": "quantile"}, r'reference: "quantile" needs d = 1 but the problem has d = 2'),
        ({"seed": -1}, r"seed: is -1 but must be at least 0"),
        ({"tolerance": 1.0}, r"tolerance: is 1 but must be"),
        ({"scheduler": "nowhere"}, r'scheduler: is \'nowhere\'; give "local", or the address'),
        ({"n": [8, 4096], "exact_up_to": 4096}, r"exact_up_to: is 4096 but exact transport .* n = 3162"),
        ({"output": "/nowhere/at/all"}, r'output: "/nowhere/at/all" cannot be made a folder \(No such file'),
    ],
)
def test_mistakes_are_named(options, sentence):
    with pytest.raises(vl.InputError, match=sentence):
        mean_field_study(COMPACT[2], **({"n": [8], "replicas": 1} | options))


def test_another_study_in_the_folder_is_refused(tmp_path):
    small = {"n": [8], "replicas": 1, "output": tmp_path / "study"}
    mean_field_study(LINE, **small)
    with pytest.raises(vl.InputError, match=r"output: .* holds another study: its seed is 0 and not 1; choose another"):
        mean_field_study(LINE, **small, seed=1)
    with pytest.raises(vl.InputError, match=r"output: .* holds another study: its problem is "):
        mean_field_study(COMPACT[2], **small)
    (tmp_path / "study" / "study.json").unlink()
    with pytest.raises(vl.InputError, match=r"output: .* is not empty and holds no study"):
        mean_field_study(LINE, **small)


def test_functions_of_time_stay_in_memory(tmp_path):
    moving = vl.Problem(vl.Softmax(A=lambda t: [[1.0 + t]]), vl.Box(-1, 1), 0.5)
    assert np.isfinite(mean_field_study(moving, n=[8], replicas=2)["coupled"]).all()
    with pytest.raises(vl.InputError, match="is a Python function"):
        mean_field_study(moving, n=[8], replicas=2, output=tmp_path / "study")


def test_density_has_no_reference():
    density = problem(vl.Box(-1, 1).on_grid([np.linspace(-1, 1, 9)]))
    with pytest.raises(vl.InputError, match="initial: is known by cell averages only"):
        mean_field_study(density, n=[8])


# What is shown


def test_table_and_figure(straight):
    from rich.console import Console

    with io.StringIO() as written:
        Console(width=140, file=written).print(table(straight))
        text = written.getvalue()
    for words in ("W_2", "coupled, p = 1", "sobol", "-0.50", "its own error is about", "a-priori bound"):
        assert words in text
    assert "NOT" not in text
    for dataset in (straight, straight.sel(sampling=["random"]), straight.isel(replica=[0])):
        assert len(draw(dataset).axes) == 4
    with pytest.raises(vl.InputError, match="is not a mean-field study"):
        draw(straight.drop_attrs())


def test_progress_shows_what_is_done(monkeypatch):
    from rich.console import Console

    now = iter(np.arange(0.0, 100.0, 0.8))
    monkeypatch.setattr(schedule.time, "perf_counter", lambda: next(now))
    with io.StringIO() as written:
        with schedule.progress_bar(4.0, Console(file=written, force_terminal=True, width=100)) as report:
            for _ in range(3):
                report("n = 64 random", 1.0)
        assert "n = 64 random" in written.getvalue()
        assert "75%" in written.getvalue()


def test_no_progress_where_there_is_no_terminal():
    from rich.console import Console

    with io.StringIO() as written:
        with schedule.progress_bar(4.0, Console(file=written, force_terminal=False)) as report:
            report("n = 64 random", 4.0)
        assert written.getvalue() == ""


def test_dataset_says_what_was_done(straight):
    assert json.loads(straight.attrs["step_counts"])[0] == straight.attrs["steps"] > 0
    assert straight.attrs["kind"] == "mean-field study"
    assert straight.attrs["points_per_token"] == 4
    assert np.isfinite(straight["transport_bias"]).sum() == 4
    assert all("long_name" in variable.attrs for variable in straight.data_vars.values())
