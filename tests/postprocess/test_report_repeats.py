"""What a report says about repeating: each study's own lines, run as they stand, give its numbers again."""

import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

import vlasov as vl
from vlasov.cli.app import app
from vlasov.postprocess.report import casefile, repeating
from vlasov.postprocess.report.sources import opened

LINE = vl.load_case("gaussian-line").problem.until(1.0)
MADE = {
    "converge": lambda: vl.mean_field_study(
        LINE, n=[8, 16], replicas=2, seed=7, p=1.25, exact_up_to=12, times=[0, 0.5]
    ),
    "converge otherwise": lambda: vl.mean_field_study(
        LINE, n=[8], replicas=2, sampling=["random", "sobol"], tolerance=1e-4
    ),
    "depth": lambda: vl.depth_study(LINE, depths=[2, 4], n=9, replicas=2, seed=3, p=2, exact_up_to=7),
    "depth at times": lambda: vl.depth_study(LINE, depths=[2, 4], n=9, replicas=2, times=[0.5, 1.0], tolerance=1e-9),
    "lipschitz": lambda: vl.lipschitz_study(
        LINE, n=[4, 8], data=["adversarial", "clustered"], replicas=2, radius=1.7, clusters=2, seed=5, times=[0.3]
    ),
    "lipschitz of few": lambda: vl.lipschitz_study(
        LINE, n=[4, 8], data="correlated", replicas=2, decay=0.3, tolerance=1e-4
    ),
}


@pytest.mark.parametrize("how", list(MADE))
def test_a_study_is_repeated_by_what_its_page_says(how, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = MADE[how]()
    lines = repeating.repeated(opened(study)[0])
    (tmp_path / f"{casefile.case_name(study)}.toml").write_text(casefile.case_file(study), encoding="utf-8")
    last = shlex.split(lines.splitlines()[-1])
    assert last[:2] == ["vlasov", how.split()[0]]
    result = CliRunner().invoke(app, [*last[1:], "-o", "again"])
    assert result.exit_code == 0, result.output
    again = vl.open_run("again/study.nc")
    assert set(again.data_vars) == set(study.data_vars)
    for name in study.variables:
        np.testing.assert_array_equal(again[name].values, study[name].values, err_msg=name)


def test_a_study_of_a_case_too_large_for_the_page_is_made_again_from_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(casefile, "LONGEST", 10)
    vl.depth_study(LINE, depths=[2, 4], n=9, replicas=2, seed=3, output="study.nc")
    names = {}
    exec(repeating.repeated(opened("study.nc")[0]), names)
    np.testing.assert_array_equal(names["again"]["coupled"], vl.open_run("study.nc")["coupled"])


def test_what_no_file_tells_gets_a_sentence():
    page = vl.report(vl.sensitivity(LINE, n=4, times=[0.0, 0.1], check=False)).html
    assert "does not hold all that repeats it" in page
    assert "vlasov sensitivity" not in page


@pytest.mark.parametrize("options", [None, "{}", "no JSON", '["depths"]', '{"depths": [2]}'])
def test_what_the_file_does_not_hold_gets_no_command(options):
    study = MADE["depth"]()
    del study.attrs["options"]
    study.attrs |= {} if options is None else {"options": options}
    assert repeating.repeated(opened(study)[0]) == ""
    assert "does not hold all that repeats it" in vl.report(study).html


def test_a_run_without_its_solver_has_a_page():
    run = vl.solve(LINE, "gaussian", times=[0.0, 1.0])
    del run.attrs["solver"]
    assert "does not hold all that repeats it" in vl.report(run).html


def test_a_problem_too_large_for_the_page_is_taken_from_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(casefile, "LONGEST", 10)
    run = vl.solve(LINE, "gaussian", times=[0.0, 0.5], output="kept.nc")
    names = {}
    exec(repeating.repeated(opened("kept.nc")[0]), names)
    np.testing.assert_array_equal(names["again"]["covariance"], run["covariance"])


def test_pages_of_others_are_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vl.solve(LINE, "gaussian", times=[0.0, 1.0], output="run.nc")
    page = tmp_path / "run.html"
    page.write_text("<h1>mine</h1>")
    result = CliRunner().invoke(app, ["report", "run.nc"])
    assert isinstance(result.exception, vl.InputError) or result.exit_code
    assert page.read_text() == "<h1>mine</h1>"
    page.unlink()
    for _ in range(2):  # its own it replaces
        assert CliRunner().invoke(app, ["report", "run.nc"]).exit_code == 0
    page.write_text("<h1>mine</h1>")
    assert CliRunner().invoke(app, ["report", "run.nc", "-o", "run.html"]).exit_code
    assert CliRunner().invoke(app, ["report", "run.nc", "-o", "run.html", "--force"]).exit_code == 0


@pytest.mark.parametrize("name", ["index.html", "small.html", "small-gaussian.nc"])
def test_a_folder_of_reports_replaces_nothing_of_others(name, tmp_path):
    from vlasov.postprocess.report.gallery import gallery

    run = vl.solve(LINE, "gaussian", times=[0.0, 1.0])
    (tmp_path / "small.toml").write_text(casefile.case_file(run), encoding="utf-8")
    target = tmp_path / "report"
    target.mkdir()
    (target / name).write_text("mine")
    with pytest.raises(vl.InputError, match=f"{name}.* is there already"):
        gallery(tmp_path, target, say=lambda _: None)
    assert [file.name for file in target.iterdir()] == [name]
    (target / name).unlink()
    for _ in range(2):
        assert len(gallery(tmp_path, target, say=lambda _: None)) == 2


def test_only_measures_with_compact_support_have_a_bound_of_their_radius():
    from vlasov.postprocess.panels import panels_of

    for name, bounded in {"gaussian-blow-up": False, "interval-1d": True}.items():
        problem = vl.load_case(name).problem
        run = vl.solve(problem, "finite-volume", times=[0.0, 0.1], cells=24, warn_above=np.inf)
        labels = [curve.label for panel in panels_of(run) for curve in panel.curves]
        assert any("bound" in label for label in labels) == bounded


def test_a_gallery_leaves_runs_of_others_and_knows_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call = CliRunner().invoke
    assert call(app, ["copy", "gaussian-collapse", "-o", "index.toml"]).exit_code == 0
    options = ["--solver", "gaussian", "--set", "horizon=77", "-o", "index-gaussian.nc"]
    assert call(app, ["run", "index.toml", *options]).exit_code == 0
    refused = call(app, ["report", "--all-cases", ".", "-o", "."])
    assert refused.exit_code
    assert float(vl.open_run("index-gaussian.nc")["time"][-1]) == 77.0
    (tmp_path / "index-gaussian.nc").unlink()
    for words in ("no run of it", "index-gaussian.nc"):  # the second time it is there
        said = call(app, ["report", "--all-cases", ".", "-o", "there"]).output
        assert words in said
    assert {file.name for file in (tmp_path / "there").iterdir()} == {
        "index.html", "index-case.html", "index-gaussian.nc",
    }  # fmt: skip
    (tmp_path / "broken.toml").write_text("horizon = -1")
    with pytest.raises(vl.InputError, match=r"broken\.toml"):
        _gallery(tmp_path)


def _gallery(folder):
    from vlasov.postprocess.report.gallery import gallery

    return gallery(folder, folder / "there", say=lambda _: None)


def test_a_study_in_this_folder_has_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vl.mean_field_study(LINE, n=[4, 8], replicas=2, output=tmp_path)
    for given in (".", ""):
        assert CliRunner().invoke(app, ["report", given]).exit_code == 0
        (tmp_path / "study.html").unlink()
