"""Where commands draw: for print, in other formats, and never over a file that is not theirs."""

import json
import os
import pty
import sys
import time
from pathlib import Path

import pytest

import vlasov as vl
from vlasov.solvers import progress
from vlasov.solvers.dataset import save

PROBLEM = vl.Problem(vl.Softmax(A=[[0.6, 0.1], [0.1, 0.3]]), vl.Gaussian([0.1, 0.0], [[0.2, 0.0], [0.0, 0.1]]), 0.5)
STARTS = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
FEW = ("--times", "2", "--set", "horizon=0.5", "--no-local", "--json")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(vl.solve(PROBLEM, "gaussian", times=[0.0, 0.5]), Path("run.nc"))


def refused(found, sentence):
    code, out, err = found
    told = (json.loads(out)["error"] if out else sentence).startswith(sentence)  # with --json
    return (code, told, err.count("\n")) == (2, True, 1) and err.startswith(f"vlasov: {sentence}")


@pytest.mark.quick
@pytest.mark.parametrize("form", ["png", "pdf", "svg", ".PDF"])
def test_plot_writes_other_formats_beside_the_run(vlasov, form):
    name = form.lower().lstrip(".")
    assert vlasov("plot", "run.nc", "--format", form, "--width", "column") == (0, f"run.{name}\n", "")
    assert Path(f"run.{name}").read_bytes().startswith(STARTS[name])


def test_width_is_that_of_the_paper(vlasov):
    assert vlasov("plot", "run.nc", "-o", "a.svg", "--width", "90mm")[0] == 0
    points = f"{90 / 25.4 * 72:.4f}"[:7]
    assert f'width="{points}' in Path("a.svg").read_text()


def test_plot_says_all_that_it_can_write(vlasov):
    said = 'path: "a" does not end in a known format; choose one of: .png, .pdf, .svg, .gif, .mp4.'
    assert refused(vlasov("plot", "run.nc", "-o", "a"), said)


def test_studies_are_drawn_in_their_folder(vlasov):
    few = ("depth", "gaussian-collapse", "--depths", "2,4", "--n", "4", "--replicas", "2", "-o", "study", "--json")
    assert vlasov(*few, "--format", "pdf")[0] == 0
    assert Path("study/study.pdf").read_bytes().startswith(b"%PDF")
    assert not Path("study/study.png").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["plot", "run.nc", "--format", "jpg"], '--format: is "jpg"; '),
        (["plot", "run.nc", "--format", "pfd"], '--format: is "pfd"; did you mean "pdf"?'),
        (
            ["plot", "run.nc", "-o", "a.png", "--format", "pdf"],
            '--format: is "pdf", but -o names "a.png"; leave out one',
        ),
        (["plot", "run.nc", "--width", "colum"], 'width: is "colum", which is no width; did you mean "column"?'),
        (
            ["plot", "run.nc", "-o", "a.gif", "--width", "page"],
            '--width: is for pictures, but "a.gif" is a film; leave',
        ),
        (
            ["plot", "run.nc", "-o", "a.gif", "--format", "png"],
            '--format: is for pictures, but "a.gif" is a film; leave',
        ),
        (
            ["observe", "run.nc", "-q", "energies", "-o", "a.nc", "--width", "page"],
            '--width: is for pictures, but -o names "a.nc", for',
        ),
        (["depth", "gaussian-line", "--format", "gif"], '--format: is "gif"; '),
        (["plot", "run.nc", "--width", "1in"], "width: is 1 inches, where pictures have"),
    ],
)
def test_mistakes_are_one_sentence_before_any_work(vlasov, monkeypatch, arguments, sentence):
    monkeypatch.setattr("vlasov.solvers.dataset.open_run", None)
    assert refused(vlasov(*arguments), sentence)
    assert [path.name for path in Path().iterdir()] == ["run.nc"]


@pytest.mark.quick
def test_a_picture_that_nobody_named_replaces_only_its_like(vlasov):
    for _ in range(2):  # once more: its own
        assert vlasov("plot", "run.nc")[0] == 0
    target = Path("run.png")
    target.write_bytes(b"of somebody else")
    sentence = f'output: "{target}" is there already, and holds something else; choose another'
    assert refused(vlasov("plot", "run.nc"), sentence)
    assert target.read_bytes() == b"of somebody else"
    assert refused(vlasov("plot", "run.nc", "-o", str(target)), sentence)  # named
    assert vlasov("plot", "run.nc", "-o", str(target), "--force")[0] == 0
    assert target.read_bytes().startswith(STARTS["png"])


def test_one_command_does_not_replace_the_picture_of_another(vlasov):
    assert vlasov("plot", "run.nc", "-o", "gaussian-collapse-shift.png")[0] == 0
    before = Path("gaussian-collapse-shift.png").read_bytes()
    found = vlasov("compare", "gaussian-collapse", "--shift", "0.1", *FEW)
    assert refused(found, 'output: "gaussian-collapse-shift.png" is there already, and holds something else')
    assert Path("gaussian-collapse-shift.png").read_bytes() == before


def test_pictures_beside_numbers_replace_only_their_like(vlasov):
    """``sweep -o x.nc`` draws x.png, which nobody named."""
    asked = ("sweep", "gaussian-collapse", "--solver", "gaussian", "--set", "horizon=0.2,0.3", "--at", "0.1", "-o")
    Path("x.png").write_bytes(b"of somebody else")
    assert refused(vlasov(*asked, "x.nc"), 'output: "x.png" is there already, and holds something else')
    assert not Path("x.nc").exists()
    assert Path("x.png").read_bytes() == b"of somebody else"
    for _ in range(2):
        assert vlasov(*asked, "y.nc")[0] == 0


def test_a_run_without_a_name_replaces_only_runs(vlasov):
    asked = ("run", "gaussian-collapse", "--solver", "gaussian", "--json")
    target = Path("gaussian-collapse-gaussian.nc")
    for _ in range(2):
        assert vlasov(*asked)[0] == 0
    target.write_bytes(b"of somebody else")
    assert refused(vlasov(*asked), f'output: "{target}" is there already')
    assert target.read_bytes() == b"of somebody else"


def wait(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)
    with progress.waiting("drawing"):
        time.sleep(0.3)
    with progress.waiting("not to be said", aloud=False):
        time.sleep(0.2)
    with progress.shares_bar(2.0, what="pieces"):
        time.sleep(0.3)


def test_who_waits_is_told_on_a_terminal_and_in_a_pipe(capsys, monkeypatch):
    leader, follower = pty.openpty()
    with open(follower, "w") as terminal, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal)
        patched.setenv("TERM", "xterm")
        wait(patched)
        terminal.write("\x04")
        terminal.flush()
        seen = ""
        while "\x04" not in seen:
            seen += os.read(leader, 100_000).decode()
    os.close(leader)
    assert "] drawing, " in seen
    assert "] pieces, " in seen
    assert "not" not in seen
    assert seen.endswith("\r\x1b[2K\x04")  # and nothing is left of it
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a notebook, whose outputs are coloured, but no terminals
    wait(monkeypatch)
    said = capsys.readouterr()
    assert said.out == ""
    assert {line.partition(",")[0] for line in said.err.splitlines()} == {"... drawing", "... pieces"}
