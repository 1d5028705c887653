"""Ctrl-C is heard as such wherever it comes, and memory that does not suffice is a sentence about what takes it."""

import threading

import numpy as np
import pytest

import vlasov as vl
from vlasov.compiled.threads import in_threads
from vlasov.errors import InputError, SolverError, interrupted
from vlasov.solvers import driver
from vlasov.tilting.all_pairs import tiles
from vlasov.tilting.prefixes import pair_kernels

PROBLEM = vl.Problem(vl.Softmax(A=[[-0.5]]), vl.Gaussian([0.3], [[0.5]]), 1.0)


def out_of_dispatch():
    """As CPython makes it where Ctrl-C comes inside of a function in C: twice, for one in the other."""
    try:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as inner:
            raise SystemError("returned a result with an exception set") from inner
    except SystemError as middle:
        raise SystemError("returned a result with an exception set") from middle


def test_an_interrupt_in_machine_code_is_an_interrupt(monkeypatch, tmp_path):
    with pytest.raises(SystemError) as told:
        out_of_dispatch()
    assert interrupted(told.value)
    assert not interrupted(SystemError("of another kind"))
    monkeypatch.setattr(vl.Softmax, "evaluate", lambda *_, **__: out_of_dispatch())
    points = np.zeros((3, 1))
    with pytest.raises(KeyboardInterrupt):
        vl.Softmax(A=[[1.0]]).velocity(vl.Particles(points), points)
    with pytest.raises(KeyboardInterrupt):
        vl.solve(PROBLEM, "particles", n=8, output=tmp_path / "run.nc")


def test_an_interrupt_in_a_compiler_is_an_interrupt(monkeypatch, tmp_path):
    """Numba finds that its library was not finished, and says so instead."""

    def uncompiled(*_, **__):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("no compiled object yet for <Library>")  # noqa: B904

    monkeypatch.setattr(vl.Softmax, "evaluate", uncompiled)
    points = np.zeros((3, 1))
    with pytest.raises(KeyboardInterrupt):
        vl.Softmax(A=[[1.0]]).velocity(vl.Particles(points), points)
    with pytest.raises(KeyboardInterrupt):
        vl.solve(PROBLEM, "particles", n=8, output=tmp_path / "run.nc")


def test_other_errors_are_no_interrupts(monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("of another kind") from ValueError()

    monkeypatch.setattr(vl.Softmax, "evaluate", failing)
    with pytest.raises(RuntimeError, match="of another kind") as told:
        vl.solve(PROBLEM, "particles", n=8)
    assert isinstance(told.value.__cause__, ValueError)


def test_kernels_give_python_no_class_of_its_own():
    """Numba would call it without asking whether it failed: an interrupt there ends the process."""
    points, room = np.random.default_rng(0).normal(size=(5, 2)), np.empty(1000)
    assert type(tiles.prepare(points, np.empty(0), points, room, 2, 64)) is tuple
    assert type(pair_kernels.prepare(points, np.empty(0), 0.0, room, 2, 64)) is tuple


def test_an_interrupted_call_leaves_no_thread_behind():
    there, done = threading.Event(), []

    def part(thread, threads):
        if thread == 0:
            there.wait(10)
            raise KeyboardInterrupt
        there.set()
        threading.Event().wait(0.05)
        done.append(thread)

    with pytest.raises(KeyboardInterrupt):
        in_threads(2, part)
    assert done == [1]


@pytest.mark.parametrize(
    ("solver", "options", "sentence"),
    [
        ("particles", {"n": 20}, r"^n: is 20, for which memory does not suffice; take fewer"),
        ("gaussian", {}, r"^initial: has d = 1, for which memory"),
        ("finite-volume", {"cells": 16}, r"^cells: is 16, for which memory"),
        ("finite-volume", {}, r"^cells: is as many as by default, for which memory"),
        ("finite-volume", {"cells": 16, "slices": 3}, r"^cells: is 16 in 4 slices, for which memory"),
    ],
)
def test_memory_that_does_not_suffice(solver, options, sentence, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    problem = PROBLEM
    if "slices" in options:
        text = vl.Sequence([vl.Box([-1.0], [0.0]), vl.Box([0.0], [1.0])])
        problem = vl.Problem(vl.Masked(PROBLEM.attention), text, 1.0)
    plan = driver.prepare(problem, solver, options=options)
    monkeypatch.setattr(driver, "prepare", lambda *_, **__: plan._replace(run=full))
    with pytest.raises(InputError, match=sentence) as told:
        vl.solve(problem, solver, **options)
    assert isinstance(told.value, SolverError)


def test_memory_that_does_not_suffice_for_one_velocity(monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(vl.Sinkhorn, "_converged", full)
    points = np.zeros((3, 1))
    with pytest.raises(InputError, match=r"^x: are 3, for which memory does not suffice in one call"):
        vl.Sinkhorn(A=[[1.0]]).velocity(vl.Particles(points), points)
