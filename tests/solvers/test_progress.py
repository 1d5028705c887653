"""The progress bar: simulated time, steps and rate on a terminal after a second, nothing anywhere else."""

import io

import numpy as np
import pytest
from rich.console import Console

import vlasov as vl
from vlasov.solvers import progress


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def test_a_long_run_shows_time_steps_and_rate(monkeypatch):
    now = iter(np.arange(0.0, 100.0, 0.8))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    console = terminal()
    with progress.progress_bar(2.0, console) as report:
        for step in range(1, 6):
            report(0.4 * step, step)
    text = console.file.getvalue()
    assert "of 2" in text
    assert "5 steps" in text
    assert "per second" in text


def test_a_short_run_shows_nothing():
    console = terminal()
    with progress.progress_bar(1.0, console) as report:
        report(1.0, 1)
    assert "steps" not in console.file.getvalue()


@pytest.mark.parametrize("patience", [0.0, 1.0])
def test_nothing_is_drawn_where_output_is_not_a_terminal(monkeypatch, patience):
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    console = Console(file=io.StringIO(), force_terminal=False)
    with progress.progress_bar(1.0, console) as report:
        report(1.0, 1)
    assert console.file.getvalue() == ""


def test_solvers_report_every_step(monkeypatch):
    seen = []
    monkeypatch.setattr("vlasov.solvers.driver.silent", lambda t, steps: seen.append((t, steps)))
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Particles([-0.5, 0.5]), 1.0)
    run = vl.solve(problem, "particles")
    assert [steps for _, steps in seen] == list(range(1, run.attrs["steps"] + 1))
    assert seen[-1][0] == 1.0
