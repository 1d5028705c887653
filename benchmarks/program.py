"""The command line of every benchmark program: jobs are chosen, run, printed and written down."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from contestants import QUICK, Effort
from timing import ChildFailed, Report, Unavailable, machine, number, seconds, table, versions, write_json


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    threads: tuple[int, ...]
    effort: Effort
    quick: bool

    def size(self, n: int) -> int:
        """The size of a job; a tenth of it in a quick run."""
        return n // 10 if self.quick else n


Job = Callable[[Options], Report]


def run(description: str, jobs: Mapping[str, Job], packages: Sequence[str], quick: str) -> None:
    """Run the jobs that are asked for, print what they find and write it down.

    Parameters
    ----------
    description
        Of the program, one line.
    packages
        Whose versions are printed.
    quick
        What a quick run does less of.
    """
    arguments = _arguments(description, jobs, quick)
    options = Options(arguments.threads, QUICK if arguments.quick else Effort(), arguments.quick)
    chosen = {name: getattr(arguments, name) for name in ("budget", "rounds", "patience")}
    given = {name: value for name, value in chosen.items() if value is not None}
    options = replace(options, effort=replace(options.effort, **given))
    if arguments.quick:
        print(f"Quick run: {quick}; demands are made for the full sizes.")
    before, found = machine(), versions(packages)
    print(", ".join(f"{name} {value}" for name, value in before.items()))
    print(", ".join(f"{name} {version}" for name, version in found.items()))
    if "OPENBLAS_CORETYPE" in os.environ:
        print("OPENBLAS_CORETYPE is unset for all contestants.")
    reports: dict[str, Report] = {}
    for name in arguments.job or jobs:
        print(f"\n== {name}: {jobs[name].__doc__}", flush=True)
        began = time.perf_counter()
        try:
            reports[name] = jobs[name](options)
        except Unavailable as reason:
            print(f"not available: {reason}")
            continue
        except ChildFailed as failure:
            print(f"failed: {failure}")
            continue
        print(
            f"{reports[name]}\n({seconds(time.perf_counter() - began)}, load average {os.getloadavg()[0]:.1f})",
            flush=True,
        )
    rows = [
        (
            check.demand,
            number(check.measured),
            str(check).rpartition("(")[2].rstrip(")"),
            "pass" if check.passed else "FAIL",
        )
        for report in reports.values()
        for check in report.checks
    ]
    print("\n" + table(("demand", "measured", "limit", ""), rows))
    if arguments.json:
        content = {
            "machine": before,
            "load_average_at_end": os.getloadavg(),
            "versions": found,
            "quick": arguments.quick,
            "jobs": {name: report.as_json() for name, report in reports.items()},
        }
        write_json(arguments.json, content)
        print(f"written to {arguments.json}")


def _arguments(description: str, jobs: Mapping[str, Job], quick: str) -> argparse.Namespace:
    names = "\n".join(f"  {name:18} {function.__doc__}" for name, function in jobs.items())
    parser = argparse.ArgumentParser(
        description=description,
        epilog=f"jobs:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--job", nargs="+", choices=jobs, metavar="NAME", help="jobs to run; all if not given")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--threads", type=_counts, default=_default_threads(), help="such as 1,2 (the default here)")
    parser.add_argument("--rounds", type=int, help="turns of each contestant (2 if not given)")
    parser.add_argument("--budget", type=float, help="seconds of repetitions in each turn (3 if not given)")
    parser.add_argument(
        "--patience", type=float, help="seconds to wait for idle cores before several threads are timed"
    )
    parser.add_argument("--json", metavar="PATH", help="write all figures and raw times")
    return parser.parse_args()


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(count) for count in text.split(","))


def _default_threads() -> tuple[int, ...]:
    return tuple(sorted({1, min(2, os.cpu_count() or 1)}))
