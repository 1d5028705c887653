"""What compilation costs in two states of the code, each beginning with an empty cache.

    python benchmarks/compiling.py BEFORE AFTER [--only JOB ...] [--rounds 1] [--json PATH] [--kernels]

BEFORE and AFTER are checkouts, each run by its ``.venv/bin/python`` if it has one, else by this one. Every job is run
by a process of its own with an empty NUMBA_CACHE_DIR and one thread; the states take turns, and the least of the
compiler's CPU seconds counts. "compiler": in Numba, a kernel's own time apart from that of those it calls; "process":
all of it. The exit code is 1 if all jobs together compile for more than half as long as before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

CASES = {"finite-volume": "mixture-2d", "particles": "mixture-2d", "gaussian": "gaussian-collapse"}
JOBS = (*CASES, "compare")
LIMIT = 0.5


def work(job: str) -> None:
    """A run of a case to its horizon with default options, or two runs and what lies between them."""
    import vlasov as vl

    case = vl.load_case(CASES.get(job, "mixture-2d"))
    solvers = [job] if job in CASES else ["finite-volume", "particles"]
    runs = [vl.solve(case.problem, solver, times=[0.0, case.problem.horizon]) for solver in solvers]
    if len(runs) > 1:
        vl.compare(*runs)


def measure(job: str) -> dict[str, Any]:
    """Compilations, CPU seconds in the compiler and in the process, and each kernel's own."""
    from numba.core import event

    begun: list[list[float]] = []  # when each compilation that is under way began, and what those inside it took
    own: dict[str, float] = defaultdict(float)
    count = 0

    class Compilations(event.Listener):  # type: ignore[misc]  # Numba has no types
        def on_start(self, _: Any) -> None:
            begun.append([time.process_time(), 0.0])

        def on_end(self, event: Any) -> None:
            nonlocal count
            start, inside = begun.pop()
            took = time.process_time() - start
            if begun:
                begun[-1][1] += took
            function = event.data["dispatcher"].py_func
            own[f"{function.__module__}.{function.__name__}"] += took - inside
            count += 1

    event.register("numba:compile", Compilations())
    work(job)
    compiler = sum(own.values())
    return {"count": count, "compiler": compiler, "process": time.process_time(), "kernels": dict(own)}


def in_state(folder: Path, job: str) -> dict[str, Any]:
    """The same in a process that imports the package from a checkout, with nothing compiled yet."""
    python = folder / ".venv/bin/python"
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(folder), "PYTHONWARNINGS": "ignore"}
        environment |= {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
        done = subprocess.run(
            [str(python) if python.exists() else sys.executable, __file__, "--job", job],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        sys.exit(f"{folder}: {job} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(job: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    """One row of the table."""
    ratios = f"{after['compiler'] / max(before['compiler'], 1e-9):10.2f}"
    columns = "".join(
        f"{state['count']:6d} {state['compiler']:8.2f} {state['process']:8.2f}" for state in (before, after)
    )
    print(f"{job:16}{columns}{ratios}", flush=True)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", nargs="*", type=Path, metavar="BEFORE AFTER")
    parser.add_argument("--only", nargs="+", choices=JOBS, default=JOBS, metavar="JOB", help=f"of {', '.join(JOBS)}")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--kernels", action="store_true", help="print the dearest kernels of each job too")
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(arguments.job)))
        return 0
    if len(arguments.states) != 2:
        parser.error("name two checkouts, BEFORE and AFTER")
    folders = [state.resolve() for state in arguments.states]
    print(f"before: {folders[0]}, after: {folders[1]}, load {os.getloadavg()[0]:.1f}")
    print(f"{'':16}{'count compiler  process':>23}{'count compiler  process':>24}  compiler, after / before")
    results: dict[str, list[dict[str, Any]]] = {}
    for job in arguments.only:
        rounds = [[in_state(folder, job) for folder in folders] for _ in range(arguments.rounds)]
        results[job] = [min(states, key=lambda state: state["compiler"]) for states in zip(*rounds, strict=True)]
        report(job, *results[job])
        for kernel, seconds in sorted(results[job][1]["kernels"].items(), key=lambda item: -item[1])[:25]:
            if arguments.kernels:
                print(f"    {seconds:6.2f} {kernel}")
    keys = ("count", "compiler", "process")
    before, after = ({key: sum(pair[s][key] for pair in results.values()) for key in keys} for s in (0, 1))
    report("all", before, after)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    return int(after["compiler"] > LIMIT * before["compiler"])


if __name__ == "__main__":
    sys.exit(main())
