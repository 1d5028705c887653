"""Progress on stderr: after a second, with all the time that is expected; a bar on a terminal, else few lines."""

import io
import time
from types import SimpleNamespace

import pytest

import vlasov as vl
from vlasov.solvers import progress


class Stream(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def stream(request, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)
    monkeypatch.setattr(progress._Line, "_ended", -1e9)
    stream = Stream(request.param)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    return stream


def _wait_for(stream, text):
    until = time.monotonic() + 20
    while text not in stream.getvalue():
        assert time.monotonic() < until, stream.getvalue()
        time.sleep(0.01)


def test_a_line_says_what_is_done_and_how_long_all_of_it_takes(stream):
    with progress.waiting("comparing", seconds=600.0):
        _wait_for(stream, "comparing, 0 s of about 10 min")
    shown = stream.getvalue()
    if stream.isatty():
        assert shown.startswith("\r\x1b[2K[--------------------] ")
        assert shown.endswith("\r\x1b[2K")  # nothing is left of it
    else:
        assert shown == f"{progress.MARK}comparing, 0 s of about 10 min\n"


def test_a_short_wait_and_one_in_silence_show_nothing(stream, monkeypatch):
    with progress.waiting("silent", aloud=False):
        progress.reached("far", 0.9)
        time.sleep(0.1)
    monkeypatch.setattr(progress, "_PATIENCE", 60.0)
    with progress.waiting("short"), progress.progress_bar(1.0) as report:
        report(1.0, 1)
    progress.reached("nobody waits", 0.5)
    assert stream.getvalue() == ""


def test_the_share_that_is_done_says_how_long_the_rest_takes():
    line = progress._Line("comparing", 600.0, Stream(False))
    line.end()
    line.report("W_2 at time 5 of 20", 0.25)
    assert line.text(3.0) == "comparing: W_2 at time 5 of 20, 3 s of about 12 s"
    line.report("", 0.0)
    assert line.text(3.0) == "comparing, 3 s of about 10 min"


def test_parts_of_a_stage_and_shares_add_up(monkeypatch):
    seen = []
    monkeypatch.setattr(progress._Line, "report", lambda self, words, share: seen.append((words, share)))
    with progress.waiting("all"):
        with progress.part(0.5, 0.5):
            progress.reached("a", 0.5)
        with progress.shares_bar(4.0, "pieces") as report:
            report("b", 1.0)
            report("c", 2.0)
        with progress.waiting("inner", aloud=False):
            progress.reached("d", 1.0)
        progress.reached("e", 1.0)
    assert seen == [("a", 0.75), ("b", 0.25), ("c", 0.75), ("e", 1.0)]


def test_solvers_report_every_step(monkeypatch):
    seen = []
    monkeypatch.setattr("vlasov.solvers.driver.silent", lambda t, steps: seen.append((t, steps)))
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Particles([-0.5, 0.5]), 1.0)
    run = vl.solve(problem, "particles")
    assert [steps for _, steps in seen] == list(range(1, run.attrs["steps"] + 1))
    assert seen[-1][0] == 1.0
