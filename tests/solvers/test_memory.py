"""Memory that a run will need is known before it begins, and refused where it is not there."""

import os
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

import vlasov as vl
from vlasov.solvers import driver, memory

LINE = vl.Problem(vl.Softmax(A=[[-0.5]]), vl.Gaussian([0.3], [[0.5]]), 1.0)
PLANE = vl.Problem(vl.Softmax(A=-0.5 * np.eye(2)), vl.Gaussian([0.3, 0.1], np.eye(2)), 1.0)
CLUSTERS = vl.Mixture([vl.Gaussian([at], [[1e-4]]) for at in (-2.0, 0.0, 2.0)])
TEXT = vl.Sequence([vl.Gaussian([-1.0], [[0.2]]), vl.Gaussian([1.0], [[0.2]])])
RUNS = {
    "tokens": (PLANE, "particles", {"n": 500, "tolerance": 1e-3}),
    "given tokens": (
        vl.Problem(PLANE.attention, vl.Particles(np.random.default_rng(0).normal(size=(500, 2))), 1.0),
        "particles",
        {"tolerance": 1e-3},
    ),
    "layers": (PLANE, "layers", {"n": 500, "depth": 4}),
    "many dimensions": (
        vl.Problem(vl.Linear(A=-0.1 * np.eye(40)), vl.Gaussian(np.zeros(40), np.eye(40)), 1.0),
        "particles",
        {"n": 50, "tolerance": 1e-3},
    ),
    "moments": (vl.Problem(vl.Linear(A=-0.1 * np.eye(20)), vl.Gaussian(np.zeros(20), np.eye(20)), 1.0), "gaussian", {}),
    "cells": (PLANE, "finite-volume", {"cells": [40, 30]}),
    "as many cells as by default": (LINE, "finite-volume", {}),
    "parts": (vl.Problem(LINE.attention, CLUSTERS, 0.1), "finite-volume", {"cells": 48, "frame": "parts"}),
    "narrow clusters": (vl.Problem(vl.Softmax(A=[[-0.05]]), CLUSTERS, 0.1), "finite-volume", {"cells": 48}),
    "slices": (vl.Problem(vl.Masked(LINE.attention), TEXT, 0.1), "finite-volume", {"cells": 48, "slices": 3}),
}


@pytest.mark.parametrize("name", RUNS)
def test_predicted_bytes_are_those_of_the_dataset(name):
    problem, solver, options = RUNS[name]
    times = None if solver == "layers" else [0.0, problem.horizon / 2, problem.horizon]
    plan = driver.prepare(problem, solver, times=times, options=options)
    run = vl.solve(problem, solver, times=times, warn_above=np.inf, **options)
    large = run[["position" if "position" in run else "density" if "density" in run else "mean", "covariance"]]
    assert plan.states.nbytes == pytest.approx(large.drop_vars(large.coords).nbytes, rel=0.03)
    assert plan.states.times == run.sizes["time"]


def test_states_that_do_not_fit_are_refused_before_the_run(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1e9)
    monkeypatch.setattr("vlasov.solvers.particles.run", lambda *_: pytest.fail("it runs"))
    sentence = (
        "times: ask for 101 states of 1,000,000 tokens, which take 1.62 GB, where 1 GB of memory are available; "
        "take fewer times or fewer tokens"
    )
    with pytest.raises(vl.InputError) as caught:
        vl.solve(PLANE, "particles", n=10**6)
    assert str(caught.value) == sentence
    assert driver.prepare(PLANE, "particles", times=[0.0, 1.0], options={"n": 10**6}).states.nbytes < 1e9
    cube = vl.Problem(vl.Softmax(A=-np.eye(3)), vl.Gaussian(np.zeros(3), np.eye(3)), 1.0)
    monkeypatch.setattr(memory, "available", lambda: 2e8)
    with pytest.raises(vl.InputError, match="ask for 101 states of 262,144 cells, or more where the run refines"):
        vl.solve(cube, "finite-volume")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say what a process has taken")
def test_no_more_is_available_than_the_machine_has_nor_than_the_process_may_take():
    page = resource.getpagesize()
    everything = page * os.sysconf("SC_PHYS_PAGES")
    assert 0 < memory.available() <= everything
    taken = page * int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + 10**8, before[1]))
    try:
        assert 0.9e8 < memory.available() <= 1e8
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize(
    "files",
    [
        {"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "5000000\n"},
        {
            "/proc/self/cgroup": "0::/slurm/job_1/task_0\n",
            "/sys/fs/cgroup/slurm/job_1/memory.max": "5000000\n",
            "/sys/fs/cgroup/slurm/job_1/task_0/memory.max": "max\n",
        },
        {
            "/proc/self/cgroup": "9:cpu:/a\n4:memory:/docker/f00\n0::/\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "5000000\n",
        },
    ],
    ids=["version 2", "a group around it", "version 1 in a container"],
)
def test_limits_of_control_groups(files, monkeypatch):
    files = files | {"/proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n"}
    files["/proc/self/statm"] = "700 100 50 1 0 9 0"  # pages: in all, and resident
    monkeypatch.setattr(memory, "_text", lambda path: files.get(path, ""))
    assert memory.available() == 5_000_000 - 100 * resource.getpagesize()
    del files["/proc/self/cgroup"]
    assert memory.available() == 8_000 * 1024
    files.clear()  # a system without such files
    assert memory.available() == resource.getpagesize() * os.sysconf("SC_PHYS_PAGES")
