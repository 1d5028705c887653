"""Time each kind of attention against the softmax on the same tokens, in turns in one process; see README.md here.

python benchmarks/variants.py [--job NAME ...] [--quick] [--threads 1,2] [--json PATH]

A job is a function of ``Options`` that returns a Report; what its processes do stands in ``variant_probes.py``.
"""

from __future__ import annotations

import variant_probes as probes
from problems import Problem
from program import Job, Options, run
from timing import Check, Report, in_child, number, seconds

PACKAGES = ("vlasov", "numpy", "scipy", "numba", "llvmlite")

JOBS: dict[str, Job] = {}


def job(function: Job) -> Job:
    """Register a job under its function's name."""
    JOBS[function.__name__.replace("_", "-")] = function
    return function


@job
def sigmoid(options: Options) -> Report:
    """Sigmoid by its Fourier series against softmax, tolerance 1e-9: d = 2, S = 5 and 20; d = 3, S = 5."""
    limits = {
        (2, 100_000, 5.0): 1.3,
        (2, 1_000_000, 5.0): 1.3,
        (2, 100_000, 20.0): 2.5,
        (2, 1_000_000, 20.0): 2.5,
        (3, 1_000_000, 5.0): 2.5,
    }
    header = ("d", "n", "S", "threads", "sigmoid", "softmax", "ratio", "sum alone", "error/bound", "how")
    report = Report("Velocity by sigmoid / by softmax, tolerance 1e-9", header)
    for threads in options.threads:
        for (d, n, size), limit in limits.items():
            problem = Problem(d, options.size(n), "box", size)
            found = in_child(probes.sigmoid, problem, options.effort, threads, threads=threads)
            ours, alone, softmax = (found[name].best(threads) for name in ("sigmoid", "sum", "softmax"))
            words = f"sigmoid / softmax, d = {d}, n = {problem.n:.0e}, S = {size:g}, {threads} thread(s)"
            place = (str(d), f"{problem.n:,}", f"{size:g}", str(threads))
            times = (seconds(ours), seconds(softmax), number(ours / softmax), seconds(alone))
            report.rows.append((*place, *times, number(found["error"] / found["bound"]), found["how"]))
            if threads == 1:
                report.checks.append(Check(words, ours / softmax, limit, at_least=False))
            report.checks.append(Check(f"{words}: error / bound", found["error"] / found["bound"], 1.0, at_least=False))
            kept = {name: found[name].cpu for name in ("sigmoid", "sum", "softmax")}
            report.raw[words] = kept | {"error": found["error"], "bound": found["bound"]}
    return report


if __name__ == "__main__":
    run(__doc__.splitlines()[0], JOBS, PACKAGES, "a tenth of the points, few repetitions")
