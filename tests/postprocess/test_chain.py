"""measured <= optimal <= exp int lambda <= exp int |J| <= a posteriori <= a priori; and where it is only local."""

import itertools
import json
import re

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from tests.printed import printed
from vlasov.postprocess.compare.picture import draw
from vlasov.postprocess.drawing.panels import draw as draw_panels
from vlasov.postprocess.mean_field import with_local
from vlasov.postprocess.perturbations import shifted
from vlasov.postprocess.sensitivity import along, cost
from vlasov.postprocess.stability import written

A = np.array([[0.7, 0.5], [-0.4, 0.4]])
V = np.array([[0.7, -0.6], [0.8, 0.5]])
TIMES = [0.0, 0.5, 1.0]


def _pair(h, size, *, kind=vl.Softmax):
    x = vl.load_case("mixture-2d").problem.initial.sample(60, "sobol").points
    h = np.broadcast_to(h, x.shape)
    problems = [vl.Problem(kind(A=A, V=V), vl.Particles(x + e * h), 1.0) for e in (0.0, size)]
    return [vl.solve(one, "particles", times=TIMES, tolerance=1e-10) for one in problems]


def _logarithms(found):
    at = found.isel(pair=0)
    names = "log_logarithmic_norm log_norm log_a_posteriori".split()
    measured = np.log(at["growth"].sel(p=2).values)
    return [
        measured,
        np.log(at["optimal_growth"].values),
        *(at[name].values for name in names),
        at["log_a_priori"].values,
    ]


@pytest.mark.quick
@pytest.mark.parametrize("case", ["mixture-2d", "ring-2d", "ball-3d", "interval-1d", "dirac-pair"])
def test_quick_cases_are_in_order(case):
    problem = vl.load_case(case).problem
    given = isinstance(problem.initial, vl.Particles)
    cloud = problem.initial if given else problem.initial.sample(16, "sobol")
    problem = problem.changed(initial=cloud)
    h = vl.sensitivity(problem, rates=False, check=False)["direction"].values[-1]
    other = problem.changed(initial=vl.Particles(cloud.points + 1e-5 * h, cloud.weights))
    times = np.linspace(0, problem.horizon, 3)
    runs = [vl.solve(one, "particles", times=times, tolerance=1e-11) for one in (problem, other)]
    found = vl.compare(*runs, p=2, initial="different", local=True)
    numbers = _logarithms(found)
    for less, more in itertools.pairwise(numbers):
        known = ~np.isnan(less) & ~np.isnan(more)
        assert (less <= more + 2e-5 * (1 + np.abs(more)))[known].all()
    assert not found["far"].any()
    assert numbers[0][-1] == pytest.approx(numbers[1][-1], abs=1e-3)  # the optimal change was taken, and is reached


def test_solutions_that_are_far_apart_are_called_local():
    runs = _pair([1.0, 1.0], 0.5)
    found = vl.compare(*runs, initial="different", local=True)
    assert found["far"].values.all()
    assert "too far apart for the derivative" in printed(found)
    drawn = draw(found, runs)
    labels = [line.get_label() for ax in drawn.axes for line in ax.lines]
    assert "optimal (local)" in labels
    drawn.canvas.draw()


def test_a_local_optimum_that_is_exceeded_is_told():
    """Two tokens, moved by 0.1, part 16 times: 14.6 and 15.9 at most along either, and 17 along one between them."""
    problem = vl.load_case("dirac-pair").problem
    runs = [vl.solve(shifted(problem, by), "particles", times=[0.0, 2.0]) for by in (0.0, 0.1)]
    between = vl.sensitivity(shifted(problem, 0.06), times=[0.0, 2.0], rates=False)["growth"].values[-1]
    found = vl.compare(*runs, p=2, initial="different", local=True)
    measured, optimal = (float(found[name].values[0, -1].max()) for name in ("growth", "optimal_growth"))
    assert optimal < measured < between
    assert f"{optimal:.3g}" in printed(found)
    assert f"Measured was up to {measured / optimal:.4g} times the local optimum" in printed(found)


def test_more_than_the_optimum_is_called_local():
    """Two solutions near each other whose distances were made larger."""
    runs = _pair([1.0, 0.0], 1e-4)
    runs[1]["position"][-1] += 1e-3
    found = vl.compare(*runs, p=2, initial="different", local=True)
    assert found["far"].values[0].tolist() == [False, False, True]


def test_gaussians_are_in_order_too():
    """Two runs by "gaussian" have the derivative along nodes of the limit, for all small differences."""
    problems = [vl.Problem(vl.Softmax(A=[[0.7]]), vl.Gaussian(mean, 0.25), 0.5) for mean in (0.3, 0.3001)]
    runs = [vl.solve(problem, "gaussian", times=[0.0, 0.25, 0.5]) for problem in problems]
    found = vl.compare(*runs, p=2, local=True)
    measured, optimal, logarithmic, norm, posteriori, _ = _logarithms(found)
    assert (measured <= optimal + 1e-4).all()
    assert (optimal <= logarithmic + 1e-9).all()
    assert (logarithmic <= norm + 1e-9).all()
    assert np.isnan(posteriori).all()  # supports are not bounded


def test_solvers_of_one_problem_have_one_derivative():
    initial = vl.Gaussian([0.3, 0.0], [[0.2, 0.05], [0.05, 0.1]])
    problem = vl.Problem(vl.Softmax(A=A, V=V), initial, 1.0)
    runs = [vl.solve(problem, "gaussian", times=[0, 1]), vl.solve(problem, "particles", n=16, times=[0, 1])]
    found = vl.compare(*runs, local=True)
    assert found["optimal_growth"].values[0, 0] == pytest.approx(1.0, rel=1e-12)
    said = f"small differences of the starts grow at most {found['optimal_growth'].values[0, -1]:.4g} times by t = 1"
    assert said in printed(found)
    assert "optimal_growth" not in vl.compare(*runs, local=False)


def test_the_optimum_is_that_of_all_changes_whoever_solved():
    """Nodes of a run by particles, moved along the optimal change; and solutions by "gaussian", which have no nodes."""
    problem = vl.Problem(vl.Softmax(A=[[0.4]], V=[[-1.0]]), vl.Gaussian(0.0, 1.0), 1.0)
    gaussian = vl.solve(problem, "gaussian", times=[0.0, 1.0])
    tokens = vl.solve(problem, "particles", n=24, sampling="quadrature", times=[0.0, 1.0])
    by_order = [vl.compare(*runs, local=True) for runs in ((gaussian, tokens), (tokens, gaussian))]
    nodes = vl.sensitivity(tokens, rates=False, check=False)
    x, w, h = nodes["position"].values[0], nodes["weight"].values, nodes["direction"].values[-1]
    moved = [problem.changed(initial=vl.Particles(x + e * h, w)) for e in (-1e-6, 1e-6)]
    ends = [vl.solve(one, "particles", times=[1.0], tolerance=1e-12)["position"].values[-1] for one in moved]
    measured = np.sqrt(np.sum(w[:, None] * (ends[1] - ends[0]) ** 2)) / 2e-6
    for found in (*by_order, vl.compare(gaussian, gaussian, local=True)):
        assert found["optimal_growth"].values[0, -1] == pytest.approx(measured, rel=1e-3)


def test_of_wide_gaussians_no_optimum_is_known():
    problem = vl.load_case("gaussian-line").problem
    runs = [vl.solve(problem.changed(horizon=0.2), "gaussian", times=[0.0, 0.2]) for _ in range(2)]
    found = vl.compare(*runs, local=True)
    assert np.isnan(found["optimal_growth"].values[0, -1])
    assert 'take tokens, as by sampling="sobol"' in found.attrs["doubt"]


def test_layers_have_no_derivative_and_say_so():
    x = vl.Particles([[0.1, 0.2], [0.4, -0.3]])
    runs = [
        vl.solve(vl.Problem(vl.Softmax(A=A, V=V), one, 1.0), "layers", depth=4)
        for one in (x, vl.Particles(x.points + 0.01))
    ]
    found = vl.compare(*runs, local=True)
    assert np.isnan(found["optimal_growth"].values).all()
    assert "is a run by layers" in found.attrs["doubt"]


def test_too_many_tokens_are_told(monkeypatch):
    monkeypatch.setattr(along, "_MANY", 50)
    found = vl.compare(*_pair([1.0, 0.0], 1e-4), p=2, initial="different", local=True)
    assert np.isnan(found["optimal_growth"].values).all()
    assert "the derivative along 60 tokens, more than 50, takes minutes" in found.attrs["doubt"]


def test_a_study_tells_why_it_has_no_derivative():
    problem = vl.Problem(vl.Hardmax(A=A, V=V), vl.Gaussian([0.3, 0.0], 0.1 * np.eye(2)), 0.5)
    study = with_local(xr.Dataset(coords={"time": [0.0, 0.5]}), problem)
    assert "velocities jump" in study.attrs["local_doubt"]
    assert "log_optimal_growth" not in study


@pytest.mark.parametrize(
    ("exponent", "text"),
    [(0.0, "1"), (2.0, "7.389"), (15700.0, "> 10^6"), (13.9, "> 10^6"), (np.nan, ""), (np.inf, "> 10^6")],
)
def test_numbers_of_any_size_are_written(exponent, text):
    assert written(exponent) == text


@pytest.mark.quick
def test_tables_and_pictures_of_sensitivities():
    runs = _pair([1.0, 0.0], 1e-4)
    found = vl.sensitivity(runs[0], tolerance=1e-10)
    for width in (60, 160):
        assert f"{found['growth'].values[-1]:.8g}" in printed(found, width)
        assert "60 tokens" in printed(found, width)
    draw_panels(found).canvas.draw()
    line = vl.sensitivity(vl.load_case("interval-1d").problem, n=20, rates=False)
    draw_panels(line).canvas.draw()


def test_the_command_writes_draws_and_prints(tmp_path, monkeypatch, capsys):
    import sys

    from vlasov.cli import main

    monkeypatch.chdir(tmp_path)
    for given in (["--json"], []):
        monkeypatch.setattr(sys, "argv", ["vlasov", "sensitivity", "dirac-pair", "--times", "3", *given])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
        said = capsys.readouterr().out
        if given:
            told = json.loads(said)
            assert told["time"] == [0.0, 1.0, 2.0]
            assert told["growth"][-1] > 14
    assert said.endswith("dirac-pair-sensitivity.png\n")
    again = vl.open_run("dirac-pair-sensitivity.nc")
    assert again.attrs["kind"] == "sensitivity"
    assert again["growth"].values.tolist() == told["growth"]


def test_growth_is_left_out_where_it_takes_long(monkeypatch):
    runs = _pair([1.0, 0.0], 1e-4)
    asked, quick = (vl.compare(*runs, p=2, initial="different", local=local) for local in (True, None))
    assert np.array_equal(asked["optimal_growth"], quick["optimal_growth"])
    assert quick.attrs["left_out"] == ""
    monkeypatch.setattr("vlasov.postprocess.sensitivity.along.AUTOMATIC", 0.0)
    compared = vl.compare(*runs, p=2, initial="different")
    study = vl.mean_field_study(vl.load_case("interval-1d").problem.until(0.1), n=[4, 8], replicas=2)
    for dataset, variable in ((compared, "optimal_growth"), (study, "log_optimal_growth")):
        assert re.fullmatch(
            r"growth of small differences was left out: it takes about \d+ s; local=True computes it",
            dataset.attrs["left_out"],
        )
        assert variable not in dataset
        assert "Growth of small differences was left out" in printed(dataset)


def test_predicted_seconds_follow_the_work():
    """All pairs are four times as many for twice the tokens; twice the horizon takes twice the steps."""

    def predicted(n, horizon, V):
        points = 1.0 + np.random.default_rng(1).normal(size=(n, 4))
        problem = vl.Problem(vl.Softmax(A=np.zeros((4, 4)), V=V), vl.Particles(points), horizon)
        return cost.seconds(problem, problem.start, 1e-6, np.array([0.0, horizon]), rates=False)

    still, turning = np.zeros((4, 4)), np.eye(4)[[1, 0, 3, 2]] * [[-1.0], [1.0], [-1.0], [1.0]]
    assert 3.9 < predicted(16_000, 1.0, still) / predicted(8_000, 1.0, still) < 4.0
    assert 1.8 < predicted(64, 80.0, turning) / predicted(64, 40.0, turning) < 2.2
