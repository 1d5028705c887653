"""How long every command takes for every case, in wall and CPU seconds, beside how long it may take.

    python benchmarks/waiting.py [--command run compare ...] [--case NAME ...] [--rounds 2] [--limit 60] [--json PATH]

Every command runs with its default options in a process of its own; the least wall time of some rounds counts, since
the first one may compile kernels. On a busy machine CPU seconds tell more: wall time on a quiet one is between these
and their half, on two cores. "*": the command printed on stderr how long it would take.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from timing import machine, table, write_json

import vlasov as vl

COMMANDS = {  # a command with its subject and output, and the wall seconds that it may take
    "run": ("run {case} -o case.nc --force", 2.5),
    "compare": ("compare {case} -o compare.png --force", 5.0),
    "observe": ("observe case.nc", 5.0),
    "converge": ("converge {case} --n 64,128,256 --replicas 4 -o converge-{round}", 5.0),
    "sensitivity": ("sensitivity {case} -o sensitivity.png --force", 10.0),
    "shift": ("compare {case} --shift 0.1 -o shift.png --force", 10.0),
}
GAUSSIAN = 1.0  # wall seconds that ``run`` may take where the solver is "gaussian"
MARK = "... "  # begins lines of progress (``solvers.progress.MARK``)
_SAYS_HOW_LONG = re.compile(r"\d ?(s|seconds|min|minutes|h|hours)\b")


class Measured(NamedTuple):
    """Seconds of a command; ``code`` is its exit code, negative where it was stopped at the limit."""

    wall: float
    cpu: float
    code: int
    announced: bool

    def __str__(self) -> str:
        mark = "*" if self.announced else ""
        if self.code:
            return f"{'>' if self.code < 0 else 'failed '}{self.wall:.0f}{mark}"
        return f"{self.wall:.1f}/{self.cpu:.1f}{mark}"


def measure(arguments: list[str], folder: Path, limit: float) -> Measured:
    """Return the seconds of a command in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(filter(None, (str(Path.cwd()), environment.get("PYTHONPATH"))))
    with (folder / "stderr").open("w+") as stderr:
        began = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, "-m", "vlasov.cli", *arguments], cwd=folder, env=environment | {"PYTHONPATH": path},
            stdout=subprocess.DEVNULL, stderr=stderr,
        )  # fmt: skip
        killer = threading.Timer(limit, child.kill)
        killer.start()
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
        killer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        said = [line for line in stderr if not line.startswith(MARK)]
        announced = any(_SAYS_HOW_LONG.search(line) for line in said)
    return Measured(wall, used.ru_utime + used.ru_stime, child.returncode, announced)


def of_case(case: str, commands: list[str], rounds: int, limit: float) -> Iterator[tuple[str, Measured]]:
    """Yield each command with the best of its rounds; a command that reaches the limit gets no second round."""
    with tempfile.TemporaryDirectory() as folder:
        for command in ("run", *(command for command in commands if command != "run")):  # observe reads the run
            best: Measured | None = None
            for number in range(rounds):
                arguments = COMMANDS[command][0].format(case=case, round=number).split()
                seconds = measure(arguments, Path(folder), limit)
                best = seconds if best is None or seconds.wall < best.wall else best
                if seconds.code < 0:
                    break
            if command in commands and best is not None:
                yield command, best


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--command", nargs="+", choices=COMMANDS, default=list(COMMANDS), help='"shift": compare --shift'
    )
    parser.add_argument("--case", nargs="+", choices=vl.case_names(), default=vl.case_names(), metavar="CASE")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a command is stopped")
    parser.add_argument("--json", metavar="PATH", help="write all figures")
    arguments = parser.parse_args()
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(f"wall/CPU seconds\n{'':24}" + "".join(f"{command:>14}" for command in arguments.command))
    taken: dict[str, dict[str, Measured]] = {command: {} for command in arguments.command}
    for case in arguments.case:
        print(f"{case:24}", end="", flush=True)
        for command, seconds in of_case(case, arguments.command, arguments.rounds, arguments.limit):
            taken[command][case] = seconds
            print(f"{seconds!s:>14}", end="", flush=True)
        print()
    gaussian = {case for case in arguments.case if next(iter(vl.load_case(case).solvers)) == "gaussian"}
    groups = [
        (command, most, cases)
        for command, (_, usual) in COMMANDS.items() if command in taken
        for most, cases in (
            ((GAUSSIAN, gaussian), (usual, set(arguments.case) - gaussian)) if command == "run"
            else ((usual, set(arguments.case)),)
        )
    ]  # fmt: skip
    rows = []
    for command, most, cases in groups:
        seconds = {case: taken[command][case] for case in arguments.case if case in cases}
        above = [case + "*" * s.announced for case, s in seconds.items() if s.wall > most or s.code]
        middle = statistics.median([s.wall for s in seconds.values()] or [0.0])
        total = sum(s.cpu for s in seconds.values())
        rows.append((command, f"{most:g}", str(len(seconds)), f"{middle:.1f}", f"{total:.0f}", ", ".join(above)))
    print("\n" + table(("command", "at most", "cases", "median", "CPU, all", "above"), rows))
    if arguments.json:
        write_json(arguments.json, {"machine": machine(), "seconds": taken})


if __name__ == "__main__":
    main()
