"""Refinement: orders in cells and in n against closed forms, two references, resuming, the command, mistakes."""

import numpy as np
import pytest

import vlasov as vl
from tests import references
from vlasov.cases.load import Case
from vlasov.postprocess.refinement import Refinement

A, V = np.array([[-0.6]]), np.array([[0.8]])
GAUSSIAN = vl.Gaussian([0.3], [[0.5]])
LINE = vl.Problem(vl.Softmax(A=A, V=V), GAUSSIAN, 1.0)
FIXED = {"frame": "fixed", "extent": 8.0}
SMALL = {"n": [4, 8], "replicas": 1, "sampling": "sobol"}


def notes(study):
    return "\n".join(Refinement.kind.notes(study))


def order(study, quantity):
    return -float(study["slope"].sel(solution="finite-volume", quantity=quantity))


# Orders


@pytest.mark.quick
@pytest.mark.parametrize(("scheme", "declared", "cells"), [("upwind5", 5, (128, 256)), ("muscl", 2, (256, 512))])
def test_finite_volumes_show_the_order_of_their_scheme(scheme, declared, cells):
    options = {"finite-volume": FIXED | {"reconstruction": scheme}}
    study = vl.refinement(LINE, cells=cells, options=options, **SMALL)
    assert order(study, "density_error") == pytest.approx(declared, abs=0.15)
    assert float(study["expected"].sel(solution="finite-volume", quantity="density_error")) == -declared
    assert f"expected {declared}" in notes(study)


def test_errors_of_cells_are_those_against_the_closed_form():
    study = vl.refinement(LINE, cells=64, options={"finite-volume": FIXED}, **SMALL)
    times = [0.0, 0.25, 0.5, 0.75, 1.0]
    means, covariances = references.moments(references.softmax(A, V), [0.3], [[0.5]], times)
    run = vl.solve(LINE, "finite-volume", times=times, cells=64, **FIXED)
    errors = np.zeros((3, 5))
    for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        state = vl.measure(run, k)
        exact = vl.Gaussian(mean, covariance).on_grid(state.edges)
        errors[:, k] = (
            abs(float(state.mean[0] - mean[0])) / np.sqrt(covariance[0, 0]),
            abs(float(state.covariance[0, 0] / covariance[0, 0]) - 1),
            float((np.abs(state.values - exact.values) * state.volumes).sum()),
        )
    measured = study.sel(solution="finite-volume", size=64, replica=0)
    for name, error in zip(("mean_error", "covariance_error", "density_error"), errors.max(axis=1), strict=True):
        assert float(measured[name]) == pytest.approx(error, rel=1e-3), name


@pytest.mark.parametrize(("sampling", "slope"), [("random", -0.5), ("sobol", -1.0)])
def test_tokens_approach_the_limit_at_their_rate(sampling, slope):
    """Sobol points on the line err like n^-1 and better; those that are independent like n^-1/2."""
    study = vl.refinement(LINE, cells=16, n=[16, 64, 256], replicas=16, sampling=sampling)
    fitted = study.sel(solution=sampling, quantity="mean_error")
    half = float(fitted["high"] - fitted["low"]) / 2
    assert 0 < half < 0.35
    assert abs(float(fitted["slope"]) - slope) < 0.25 + half
    assert float(fitted["high"]) < slope + 0.35
    assert float(fitted["expected"]) == slope


def test_gauss_nodes_have_no_order_and_grids_that_follow_a_gaussian_are_at_rounding():
    study = vl.refinement(LINE, cells=[16, 32], n=[16, 32], replicas=1)
    still = study.sel(solution=["finite-volume", "quadrature"])
    assert still["slope"].isnull().all()
    assert still["mean_error"].max() < 1e-9
    assert "finite-volume: mean, covariance, density: at rounding" in notes(study)
    assert "quadrature: mean, covariance: no power of n" in notes(study)


def test_gauss_nodes_are_as_good_a_reference_as_the_closed_form():
    """A mixture with one component has no exact reduction."""
    options = {"finite-volume": FIXED}
    mixture = vl.Problem(LINE.attention, vl.Mixture([GAUSSIAN], [1.0]), 1.0)
    exact, finest = (vl.refinement(each, cells=[32, 64], options=options, **SMALL) for each in (LINE, mixture))
    assert [study.attrs["reference"] for study in (exact, finest)] == [
        "the exact reduction of Gaussians", "128 Gauss nodes"
    ]  # fmt: skip
    assert exact.attrs["floor"] < finest.attrs["floor"] < 1e-7
    for name in ("mean_error", "covariance_error"):
        first, second = (
            study[name].sel(solution="finite-volume", replica=0).dropna("size") for study in (exact, finest)
        )
        assert np.abs(first - second).max() < 3 * finest.attrs["floor"]


def test_an_order_below_zero_has_its_sign():
    """In the order of sizes as they are, errors that grow are not told as if they fell."""
    study = vl.refinement(LINE, cells=[32, 64, 128], options={"finite-volume": FIXED}, **SMALL)
    assert "covariance 5" in notes(study) or "covariance 4" in notes(study)
    upwards = study.assign(slope=-study["slope"], low=-study["high"], high=-study["low"])
    assert "covariance −5" in notes(upwards) or "covariance −4" in notes(upwards)
    assert (study["low"].sel(solution="finite-volume") <= study["slope"].sel(solution="finite-volume")).all()


def test_densities_that_jump_have_no_expected_order():
    study = vl.refinement(vl.Problem(LINE.attention, vl.Box([-1.0], [1.0]), 0.5), cells=[16, 32], **SMALL)
    assert study["density_error"].isnull().all()
    assert np.isnan(float(study["expected"].sel(solution="finite-volume").max()))
    assert order(study, "covariance_error") > 0.5


# What is refined


def test_a_case_gives_its_options_and_all_grids_have_one_frame():
    pair = vl.Mixture([vl.Gaussian([-1.0], [[0.01]]), vl.Gaussian([1.0], [[0.01]])], [0.5, 0.5])
    problem = vl.Problem(LINE.attention, pair, 0.5)
    assert (
        json_options(vl.solve(problem, "finite-volume", cells=16, times=[0.0], warn_above=np.inf))["frame"] == "parts"
    )
    study = Refinement(problem, cells=[16, 512])
    assert [study.task("finite-volume", size, 0)[1]["frame"] for size in (16, 512)] == ["moving", "moving"]
    case = Case("a", "a", "", "", problem, {"finite-volume": {"cells": 9, "reconstruction": "muscl"}})
    assert Refinement(case, cells=[16]).task("finite-volume", 16, 0)[1]["reconstruction"] == "muscl"


def json_options(run):
    import json

    return json.loads(run.attrs["options"])


def test_a_blow_up_ends_the_study_before():
    growing = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 0.5), 1.5)  # infinite at t = 1
    study = vl.refinement(growing, cells=[16, 32], **SMALL)
    assert "blows up at t = 1" in study.attrs["doubt"]
    assert study["covariance_error"].sel(solution="finite-volume").max() < 1e-6


def test_a_solver_that_does_not_apply_is_named():
    wide = vl.Problem(vl.Softmax(A=np.eye(4) / 4), vl.Box(-np.ones(4), np.ones(4)), 0.1)
    study = vl.refinement(wide, n=[16, 64], replicas=2, sampling="random")
    assert study["solution"].values.tolist() == ["random"]
    assert "finite-volume does not apply: initial: has d = 4" in notes(study)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"cells": [4]}, "cells"),
        ({"n": []}, "n"),
        ({"sampling": "grid"}, "sampling"),
        ({"options": {"gaussian": {}}}, "options"),
        ({"options": {"finite-volume": {"frme": "fixed"}}}, "frme"),
    ],
)
def test_mistakes_name_their_field(options, field):
    with pytest.raises(vl.InputError) as mistake:
        vl.refinement(LINE, **options)
    assert mistake.value.field == field


def test_tokens_of_ones_own_cannot_be_refined():
    tokens = vl.Problem(LINE.attention, vl.Particles([[0.1], [0.2]]), 1.0)
    with pytest.raises(vl.InputError, match=r"^initial: has 2 tokens of its own"):
        vl.refinement(tokens)


# Resuming, printing


def test_a_study_goes_on_in_its_folder(tmp_path):
    how = {"cells": [16, 32], "n": [8, 16], "sampling": "random"}
    first = vl.refinement(LINE, replicas=1, output=tmp_path, **how)
    again = vl.refinement(LINE, replicas=2, output=tmp_path, **how)
    fresh = vl.refinement(LINE, replicas=2, **how)
    np.testing.assert_array_equal(again["seconds"].isel(replica=0), first["seconds"].isel(replica=0))
    for name in ("mean_error", "covariance_error", "error_estimate", "slope"):
        np.testing.assert_array_equal(again[name], fresh[name])


def test_compare_refines_a_case_and_its_report_says_how(vlasov, tmp_path, monkeypatch):
    from vlasov.postprocess.report import casefile, repeating
    from vlasov.postprocess.report.sources import opened

    monkeypatch.chdir(tmp_path)
    settings = ["--set", "horizon=0.1", "--refine", "--cells", "16,32", "--n", "4,8"]
    code, out, _ = vlasov("compare", "box-2d", *settings)
    assert code == 0
    assert (tmp_path / "box-2d-refine.png").exists()
    assert max(map(len, out.partition("Errors are")[0].splitlines())) <= 80
    assert "cov. / norm" in out
    assert vlasov("compare", "box-2d", *settings, "-o", "made.nc")[0] == 0
    made = vl.open_run("made.nc")
    lines = repeating.repeated(opened("made.nc")[0])
    (tmp_path / f"{casefile.case_name(made)}.toml").write_text(casefile.case_file(made), encoding="utf-8")
    words = lines.splitlines()[-1].split()
    assert words[:3] == ["vlasov", "compare", "--refine"]
    assert vlasov(*words[1:], "-o", "again.nc")[0] == 0
    for name in ("mean_error", "covariance_error", "slope"):
        np.testing.assert_array_equal(vl.open_run("again.nc")[name], made[name])
    code, _, err = vlasov("compare", "box-2d", "--refine", "--shift", "0.1")
    assert code == 2
    assert "--shift: is for comparisons of solutions" in err
