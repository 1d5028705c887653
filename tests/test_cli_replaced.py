"""No command replaces what is something else without --force; what it has made from the same, it makes anew."""

import shutil
from pathlib import Path

import pytest

import vlasov as vl

CASE, OTHER = "small.toml", ("--set", "horizon=0.25")
FEW = ("--times", "2", "--no-local", "--json")
SMALL = """
title = "Small"
description = "A gradient flow on the line."
paper = "none"
horizon = 0.5
times = [0.0, 0.25]

[attention]
kind = "softmax"
A = [[0.2]]
V = [[0.2]]

[initial]
kind = "gaussian"
mean = [0.1]
covariance = [[0.2]]

[solvers.gaussian]

[solvers.particles]
n = 8
"""


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """A folder with runs of two horizons."""
    folder = tmp_path_factory.mktemp("solved")
    (folder / CASE).write_text(SMALL)
    for name, horizon in (("a", 0.5), ("b", 0.25)):
        for end, solver, options in (("", "particles", {"n": 8}), ("-gaussian", "gaussian", {})):
            written(folder / f"{name}{end}.nc", horizon, solver, **options)
    return folder


@pytest.fixture(autouse=True)
def folder(solved, tmp_path, monkeypatch):
    """Work in a folder of one's own, with these runs."""
    monkeypatch.chdir(tmp_path)
    for path in solved.iterdir():
        shutil.copy(path, path.name)


def written(path, horizon, solver, **options):
    problem = vl.load_case(str(path.parent / CASE)).problem.until(horizon)
    vl.solve(problem, solver, times=[0.0, horizon], output=path, warn_above=float("inf"), **options)


def refused(answer, target):
    code, _, err = answer  # with --json the sentence is on stdout too
    start = f'vlasov: output: "{target}" is there already, and holds something else; choose another name, or replace '
    return (code, err.count("\n")) == (2, 1) and err.startswith(start) and "--force" in err


COMMANDS = {
    "run": (("run", CASE, "--json"), ("run", CASE, *OTHER, "--json"), "x.nc"),
    "plot": (("plot", "a.nc"), ("plot", "b.nc"), "x.png"),
    "plot-pdf": (("plot", "a.nc"), ("plot", "b.nc"), "x.pdf"),
    "plot-svg": (("plot", "a.nc"), ("plot", "b.nc"), "x.svg"),
    "film": (("plot", "a.nc"), ("plot", "b.nc"), "x.gif"),
    "observe": (("observe", "a.nc", "-q", "energies"), ("observe", "b.nc", "-q", "energies"), "x.png"),
    "observe-numbers": (("observe", "a.nc", "-q", "gaussianity"), ("observe", "b.nc", "-q", "gaussianity"), "x.nc"),
    "compare-files": (
        ("compare", "a.nc", "a-gaussian.nc", *FEW), ("compare", "b.nc", "b-gaussian.nc", *FEW), "x.png"
    ),
    "compare": (("compare", CASE, *FEW), ("compare", CASE, *FEW, *OTHER), "x.nc"),
    "perturbed": (("compare", CASE, "--shift", "0.1", *FEW), ("compare", CASE, "--shift", "0.2", *FEW), "x.png"),
    "sensitivity": (("sensitivity", "a.nc"), ("sensitivity", "b.nc"), "x.png"),
    "report": (("report", "a.nc"), ("report", "b.nc"), "x.html"),
    "export": (("export", "a.nc"), ("export", "b.nc"), "x.csv"),
    "export-arrays": (("export", "a.nc"), ("export", "b.nc"), "x.npz"),
    "cite": (("cite", "a.nc"), ("cite", "a-gaussian.nc", "sinkhorn-mixture"), "x.bib"),
    "copy": (("copy", "gaussian-line"), ("copy", "dirac-pair"), "x.toml"),
    "sweep": (
        ("sweep", CASE, "--set", "horizon=0.1,0.2", "--at", "0.1", "--json"),
        ("sweep", CASE, "--set", "horizon=0.1,0.3", "--at", "0.1", "--json"),
        "x.nc",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_something_else_is_replaced_by_force_alone(vlasov, name):
    first, other, target = COMMANDS[name]
    assert vlasov(*first, "-o", target)[0] == 0
    assert vlasov(*first, "-o", target)[0] == 0  # the same once more
    before = Path(target).read_bytes()
    assert refused(vlasov(*other, "-o", target), "x.png" if name == "sweep" else target)  # both are there
    assert Path(target).read_bytes() == before
    assert vlasov(*other, "-o", target, "--force")[0] == 0
    assert Path(target).read_bytes() != before


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("plot-pdf", "plot-svg", "film")])
def test_files_of_others_are_replaced_by_force_alone(vlasov, name):
    first, _, target = COMMANDS[name]
    Path(target).write_bytes(b"of somebody else")
    assert refused(vlasov(*first, "-o", target), target)
    assert Path(target).read_bytes() == b"of somebody else"


def test_a_film_as_mp4_says_what_it_was_made_from(vlasov):
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg is not installed")
    for _ in range(2):
        assert vlasov("plot", "a.nc", "-o", "x.mp4")[0] == 0
    assert refused(vlasov("plot", "b.nc", "-o", "x.mp4"), "x.mp4")


@pytest.mark.quick
def test_another_picture_of_the_same_run_takes_its_place(vlasov):
    assert vlasov("plot", "a.nc", "-o", "x.png")[0] == 0
    before = Path("x.png").read_bytes()
    assert vlasov("plot", "a.nc", "--kind", "eigenvalues", "-o", "x.png")[0] == 0
    assert Path("x.png").read_bytes() != before
    assert refused(vlasov("plot", "a.nc", "a-gaussian.nc", "-o", "x.png"), "x.png")
    assert refused(vlasov("observe", "a.nc", "-q", "clusters", "-o", "x.png"), "x.png")  # by another command


@pytest.mark.parametrize("target", ["x.png", "x.nc"])
def test_what_comes_during_a_command_stays(vlasov, monkeypatch, target):
    energies = vl.energies

    def meanwhile(run):
        Path(target).write_bytes(b"of somebody else")
        return energies(run)

    monkeypatch.setattr("vlasov.postprocess.energies.energies", meanwhile)
    code, _, err = vlasov("observe", "a.nc", "-q", "energies", "-o", target)
    assert (code, Path(target).read_bytes()) == ({"x.png": 2, "x.nc": 1}[target], b"of somebody else")
    assert f'"{target}"' in err
    assert Path("x.partial.nc").exists() == (target == "x.nc")


def test_a_run_made_again_may_be_drawn_again(vlasov):
    """What counts is the result, not the file: not its name, and not when it was made."""
    assert vlasov("plot", "a.nc", "-o", "x.png")[0] == 0
    written(Path("c.nc"), 0.5, "particles", n=8)
    assert vlasov("plot", "c.nc", "-o", "x.png")[0] == 0


def test_a_dry_run_refuses_what_a_run_would(vlasov):
    assert refused(vlasov("run", CASE, "--dry-run", "-o", "a.nc"), "a.nc")
    assert vlasov("run", CASE, "--dry-run", "-o", "a.nc", "--force")[0] == 0


def test_a_copy_that_was_changed_is_not_replaced(vlasov):
    assert vlasov("copy", "gaussian-line")[0] == 0
    assert vlasov("copy", "gaussian-line")[0] == 0
    target = Path("gaussian-line.toml")
    target.write_text(f"{target.read_text()}# mine\n")
    assert refused(vlasov("copy", "gaussian-line"), target)
    assert target.read_text().endswith("# mine\n")


def test_no_force_replaces_what_is_read(vlasov):
    found = vlasov("observe", "a.nc", "-q", "energies", "-o", "a.nc", "--force")
    assert found[0] == 2
    assert "is what is read" in found[2]
    assert vl.open_run("a.nc").attrs["kind"] == "run"


def test_a_study_goes_on_in_its_folder_and_no_other_does(vlasov):
    """One engine runs all studies."""
    asked = ("lipschitz", CASE, "--n", "4,8", "--data", "random", "--replicas", "2", "--json", "-o", "study")
    assert vlasov(*asked)[0] == 0
    assert vlasov(*asked)[0] == 0
    assert vlasov(*asked, "--n", "4,8,16")[0] == 0
    before = Path("study/study.nc").read_bytes()
    code, _, err = vlasov(*asked, *OTHER)
    assert code == 2
    assert '"study' in err
    assert Path("study/study.nc").read_bytes() == before
    Path("study/study.png").write_bytes(b"of somebody else")
    assert refused(vlasov(*asked), "study/study.png")
    assert vlasov(*asked, "--force")[0] == 0
