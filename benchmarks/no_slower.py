"""The speed of one state of the code held against that of another, in turns on the same machine.

    python benchmarks/no_slower.py BEFORE AFTER [--rounds 6] [--threads 1] [--json PATH] [--only JOB ...]

BEFORE and AFTER are checkouts, each run by its ``.venv/bin/python`` if it has one. Every job calls public names alone,
in a process of its own that compiles first; the states take turns, and the best time of each counts. The exit code is 1
if a job takes more than 3 % longer after than before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 1.03
SECONDS = 1.5  # of repetitions in a turn
CALLS = 3  # at least


def velocity(d: int, n: int, strength: float, **options: Any) -> Callable[[], object]:
    """The velocity at all of n points in a box."""
    import vlasov as vl

    points = np.random.default_rng(1).uniform(-1.0, 1.0, (n, d))
    cloud, attention = vl.Particles(points), vl.Softmax(A=strength * (0.75 * np.eye(d) + 0.25 * np.eye(d, k=1)))
    return lambda: attention.velocity(cloud, cloud.points, tolerance=1e-9, **options)


def lattice(cells: int) -> Callable[[], object]:
    """The velocity at all centres of a square grid."""
    import vlasov as vl

    edges = [np.linspace(-1.0, 1.0, cells + 1)] * 2
    centers = (edges[0][1:] + edges[0][:-1]) / 2
    values = np.exp(-4 * (centers[:, None] ** 2 + (centers - 0.2) ** 2))
    density, attention = vl.Density(values, edges), vl.Softmax(A=[[15.0, 5.0], [5.0, 15.0]])
    x = np.stack(np.meshgrid(centers, centers, indexing="ij"), axis=-1).reshape(-1, 2)
    return lambda: attention.velocity(density, x, tolerance=1e-9, method="lattice")


def run(solver: str, case: str = "mixture-2d", **options: Any) -> Callable[[], object]:
    """A run of a named case to its horizon."""
    import vlasov as vl

    problem = vl.load_case(case).problem
    return lambda: vl.solve(problem, solver, times=[problem.horizon], **options)


JOBS: dict[str, Callable[[], Callable[[], object]]] = {
    "plane, n = 1e6": lambda: velocity(2, 1_000_000, 20.0),
    "plane, n = 1e4": lambda: velocity(2, 10_000, 20.0),
    "line, n = 1e6": lambda: velocity(1, 1_000_000, 50.0),
    "space, n = 1e5": lambda: velocity(3, 100_000, 8.0),
    "all pairs, d = 2, n = 4,000": lambda: velocity(2, 4_000, 20.0, method="all-pairs"),
    "all pairs, d = 64, n = 2,000": lambda: velocity(64, 2_000, 0.1, method="all-pairs"),
    "n = 100": lambda: velocity(2, 100, 5.0),
    "lattice, 512 x 512": lambda: lattice(512),
    "particles, n = 2e5": lambda: run("particles", n=200_000, tolerance=1e-6),
    "particles, n = 1,000": lambda: run("particles", n=1_000),
    "finite volumes, 128 x 128": lambda: run("finite-volume", cells=128),
    "finite volumes, 256 x 256": lambda: run("finite-volume", cells=256),
    "finite volumes, a square's hull": lambda: run("finite-volume", case="box-2d"),
    "gaussian": lambda: run("gaussian", case="gaussian-collapse"),
}


def best(job: str, threads: int) -> float:
    """The least seconds of a call in this process: of the processor for one thread, of the clock for several."""
    sys.path.insert(0, str(Path.cwd()))
    import vlasov as vl

    vl.set_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter  # what others do with the core does not count
    call, times = JOBS[job](), []
    call()  # compiles
    while len(times) < CALLS or sum(times) < SECONDS:
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def in_state(folder: Path, job: str, threads: int) -> float:
    """The same in a process that imports the package from a checkout."""
    python = folder / ".venv/bin/python"
    environment = {key: value for key, value in os.environ.items() if key not in ("OPENBLAS_CORETYPE", "PYTHONPATH")}
    environment |= {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run(
        [str(python) if python.exists() else sys.executable, __file__, "--job", job, "--threads", str(threads)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{folder}: {job} failed:\n{done.stderr}")
    return float(done.stdout)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", nargs="*", type=Path, metavar="BEFORE AFTER")
    parser.add_argument("--only", nargs="+", choices=JOBS, metavar="JOB", help=f"of {', '.join(JOBS)}")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(best(arguments.job, arguments.threads))
        return 0
    if len(arguments.states) != 2:
        parser.error("name two checkouts, BEFORE and AFTER")
    results, failed = {}, 0
    print(f"{'job':34} {'before':>10} {'after':>10}  ratio, {arguments.threads} threads, load {os.getloadavg()[0]:.1f}")
    for job in arguments.only or JOBS:
        times: tuple[list[float], list[float]] = ([], [])
        for turn in range(arguments.rounds):
            for state in (0, 1) if turn % 2 == 0 else (1, 0):
                times[state].append(in_state(arguments.states[state].resolve(), job, arguments.threads))
        before, after = min(times[0]), min(times[1])
        failed += after > LIMIT * before
        results[job] = {"before": times[0], "after": times[1], "ratio": after / before}
        verdict = "" if after <= LIMIT * before else "  SLOWER"
        print(f"{job:34} {before:9.4g}s {after:9.4g}s  {after / before:.3f}{verdict}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"threads": arguments.threads, "jobs": results}, indent=1))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
