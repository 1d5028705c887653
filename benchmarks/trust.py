"""Whether runs know their own error: random problems, held against plain NumPy and SciPy. The table of issue F.

    python benchmarks/trust.py --problems 20 --seed 1
    python benchmarks/trust.py --problems 300 --json trust.json
    python benchmarks/trust.py --problems 200 --solver particles
    python benchmarks/trust.py --problems 40 --seed 7 --wide
    python benchmarks/trust.py --problems 100 --masked --family softmax l2 linear sigmoid mixed
    python benchmarks/trust.py --problems 60 --blocks --solver layers

Every problem is solved in a process beside, which is ended after ``--limit`` CPU seconds: hangs are listed. The JSON
file is written after every problem, and problems that it holds already are not solved again. ``--wide`` twists problems
as the issue does not ask, but users will (``trust_twists.py``). ``--blocks`` puts LayerNorm and MLP around attention
(``trust_blocks.py``); its solver "depth" judges the slopes of depth studies, and their intervals.
Problems whose reference does not agree with itself to a third of what is found are not judged; they are counted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import trust_block_truth as block_truths
import trust_blocks as blocks
import trust_masked as under_masks
import trust_problems as problems
import trust_twists as twists
from timing import Check, Report, machine, table, versions, write_json
from trust_density import density_error

SOLVERS = ("finite-volume", "particles", "gaussian", "layers", "depth")  # the last two with blocks alone
WRONG, SMALL = 1e-2, 1e-8  # an error that must be warned of; one that nobody needs to know
READ = 1e-3  # of the density: coarse cell averages are read no better here
_SPAWN = mp.get_context("spawn")
_BUSY = 20  # times the limit, in wall time: on a machine that others use
_START = 60.0  # seconds for a process to begin, compilation included


@dataclass
class Outcome:
    """How a problem ended: "judged", "refused", "failed", "hung", or "no reference"; and what was found."""

    problem: str
    end: str
    default: bool
    error: float = np.nan
    estimate: float = np.nan
    density: float = np.nan
    density_estimate: float = np.nan
    reading: float = 0.0  # of the density: by how much it depends on how averages are read
    warned: bool = False
    seconds: float = np.nan
    said: str = ""

    @property
    def judged(self) -> bool:
        """Whether there is an error to speak of."""
        return self.end == "judged"

    @property
    def wrong(self) -> bool:
        """Whether moments or density are off by more than a percent."""
        return self.error > WRONG or self.density > WRONG

    @property
    def told_too_little(self) -> bool:
        """Whether an estimate is below a third of its error."""
        return self.error > max(3 * self.estimate, SMALL) or self.density > max(
            3 * self.density_estimate, READ, 3 * self.reading
        )


def solved(stated: problems.Stated, solver: str) -> Iterator[Outcome]:
    """One problem: solved by the package, without a reference as yet; then held against the reference."""
    import vlasov as vl

    outcome = Outcome(str(stated), "judged", stated.default)
    if solver == "depth":
        yield _study(stated, outcome)
        return
    problem, truth = _built(stated)
    times = None if solver == "layers" else np.linspace(0.0, stated.horizon, 4)
    options = _options(stated, solver)
    if isinstance(problem.initial, vl.Particles):  # none are drawn
        options = {name: value for name, value in options.items() if name not in ("n", "seed")}
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run = vl.solve(problem, solver, times=times, **options)
        except vl.InputError as mistake:
            outcome.end, outcome.said = "refused", str(mistake)
        except vl.SolverError as failure:
            outcome.end, outcome.said = "failed", str(failure)
    outcome.seconds = time.perf_counter() - began
    if not outcome.judged:
        yield outcome
        return
    outcome.warned = any(issubclass(one.category, vl.AccuracyWarning) for one in caught)
    outcome.said = str(run.attrs["status"]) + " " + str(run.attrs["advice"])
    told = [run[name].values for name in ("mean_error", "covariance_error") if name in run]
    outcome.estimate = float(np.max(told)) if told else float(run.attrs["error_estimate"])
    yield replace(outcome, end="no reference")
    reached = run["time"].values
    for careful in (False, True) if solver == "particles" else (True,):  # few nodes do where errors are large
        true = truth(stated, np.concatenate([[0.0], reached[reached > 0]]), careful=careful)
        kept = slice(len(true.means) - len(reached), None)
        found = run["mean"].values, run["covariance"].values
        outcome.error = float(np.max(problems.errors(found, (true.means[kept], true.covariances[kept]))))
        if np.isnan(outcome.error) or true.uncertainty <= outcome.error / 10:  # more nodes would come no farther
            break
    if "density_error" in run:
        outcome.density, outcome.reading = density_error(run, true)
        outcome.density_estimate = float(run["density_error"][-1])
    if np.isnan(outcome.error) and _by_moments(stated):
        outcome.error = np.inf  # the truth has blown up, the run goes on
    if not true.uncertainty <= max(outcome.error / 3, SMALL):
        outcome.end = "no reference"
    yield outcome


def _built(stated: problems.Stated) -> tuple[Any, Any]:
    """The problem as the package takes it, and what solves it."""
    if isinstance(stated, blocks.InBlock):
        return blocks.built_block(stated), block_truths.truth
    if isinstance(stated, under_masks.Masked):
        return under_masks.built_masked(stated), under_masks.truth
    return problems.built(stated), problems.truth


def _options(stated: problems.Stated, solver: str) -> dict[str, Any]:
    if solver == "particles":
        return {"n": 500, "seed": stated.index, "tolerance": float(10.0 ** -(5 + stated.index % 5))}
    if solver == "gaussian":
        return {"tolerance": float(10.0 ** -(6 + stated.index % 5))}
    if solver == "layers" and isinstance(stated, blocks.InBlock):
        return {"n": 500, "seed": stated.index} | stated.asked
    return dict(stated.options)


def _by_moments(stated: problems.Stated) -> bool:
    """Whether a truth that ends early has blown up."""
    if isinstance(stated, blocks.InBlock):
        return stated.by_moments
    return stated.data == "gaussian" and getattr(stated, "mask", "product") == "product"


def _study(stated: problems.Stated, outcome: Outcome) -> Outcome:
    """A depth study: how far its slope is from -1, beside half its interval; and its distances beside NumPy's."""
    import vlasov as vl

    assert isinstance(stated, blocks.InBlock)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem = blocks.built_block(stated)
            n = None if isinstance(problem.initial, vl.Particles) else 40
            study = vl.depth_study(problem, depths=stated.depths, n=n, replicas=3, seed=stated.index)
        except (vl.InputError, vl.SolverError) as mistake:
            outcome.end = "refused" if isinstance(mistake, vl.InputError) else "failed"
            outcome.said = str(mistake)
            return outcome
    outcome.seconds = time.perf_counter() - began
    slope = study.sel(quantity="coupled", p=2).isel(time=-1)
    low, high = float(slope["low"]), float(slope["high"])
    outcome.error, outcome.estimate = abs(float(slope["slope"]) + 1), (high - low) / 2
    if np.isnan(outcome.error) or np.isnan(float(slope["expected"])):  # layers are the flow, or approach none: said so
        outcome.error, outcome.estimate = 0.0, 0.0
    off = block_truths.distances_off(stated, study["coupled"].sel(p=2).isel(time=-1).values)
    outcome.warned = outcome.estimate > WRONG or "trouble" in study.attrs  # an interval so wide says as much
    outcome.said = f"slope {float(slope['slope']):.3f} [{low:.3f}, {high:.3f}], distances off by {off:.1e}"
    return outcome


def _work(pipe: Any) -> None:
    """A process that solves what it is sent."""
    while (task := pipe.recv()) is not None:
        try:
            for outcome in solved(*task):
                pipe.send(outcome)
        except Exception as failure:  # a traceback of the package, or of the reference
            stated, _ = task
            pipe.send(Outcome(str(stated), "failed", stated.default, said=f"{type(failure).__name__}: {failure}"))
        pipe.send(None)


class Worker:
    """A process that is replaced when it takes too long."""

    def __init__(self) -> None:
        self._process: Any = None

    def solve(self, stated: problems.Stated, solver: str, limit: float) -> Outcome:
        """The outcome of a problem, or that there is none; so many CPU seconds for the run, and for the reference."""
        if self._process is None:
            self._pipe, theirs = _SPAWN.Pipe()
            self._process, limit = _SPAWN.Process(target=_work, args=(theirs,), daemon=True), limit + _START
            self._process.start()
            theirs.close()
        self._pipe.send((stated, solver))
        end, spent, waited = Outcome(str(stated), "hung", stated.default, seconds=limit), self._seconds(), 0
        try:
            while self._seconds() - spent < limit and waited < _BUSY * limit:
                if not self._pipe.poll(1.0):
                    waited += 1
                    continue
                found = self._pipe.recv()
                if found is None:
                    return end
                end, spent, waited = found, self._seconds(), 0
        except EOFError:
            end = Outcome(str(stated), "failed", stated.default, said="the process died")
        self._process.kill()
        self._process = None
        return end

    def _seconds(self) -> float:
        """CPU seconds of the process, where the system tells; else no seconds, and only waiting counts."""
        try:
            words = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._pipe.send(None)
            self._process.join(5)


def report(outcomes: Sequence[Outcome], solver: str) -> Report:
    """The demands and what was measured."""
    judged = [one for one in outcomes if one.judged]
    known = [one for one in judged if one.error > SMALL]
    silent = [one for one in judged if one.wrong and not one.warned]
    low = [one for one in judged if one.told_too_little]
    high = [one for one in known if one.estimate > 30 * one.error]
    vain = [one for one in judged if one.warned and not one.wrong]
    default = [one for one in outcomes if one.default and one.end != "no reference"]
    quiet = [one for one in default if one.judged and not one.warned]
    found = Report(f"{len(outcomes)} problems, {solver}", ("end", "problems"))
    for end in ("judged", "refused", "failed", "hung", "no reference"):
        found.rows.append((end, str(sum(one.end == end for one in outcomes))))

    def share(some: Sequence[Outcome], of: Sequence[Outcome]) -> float:
        return 100 * len(some) / max(1, len(of))

    found.checks = [
        Check("off by more than 1 % without a warning", len(silent), 0, at_least=False, unit="problems"),
        Check("estimate >= error / 3", 100 - share(low, judged), 99, unit="%"),
        Check("estimate <= 30 error, of errors above 1e-8", 100 - share(high, known), 90, unit="%"),
        Check("warned in vain", share(vain, judged), 10, at_least=False, unit="%"),
    ]
    if solver == "finite-volume":  # which chooses its resolution; 500 particles have errors to warn of
        found.checks.append(Check("default options that end without a warning", share(quiet, default), 80, unit="%"))
    for name, some in (("SILENT", silent), ("too low", low), ("too high", high), ("in vain", vain)):
        found.notes += [f"{name:8} {line(one)}" for one in some]
    found.notes += [f"{one.end:8} {line(one)}" for one in outcomes if one.end in ("failed", "hung", "refused")]
    return found


def line(one: Outcome) -> str:
    """An outcome in one line."""
    figures = f"moments {one.error:7.1e} told {one.estimate:7.1e}"
    figures += "" if np.isnan(one.density) else f" density {one.density:7.1e} told {one.density_estimate:7.1e}"
    figures = f"{figures:62} {'warned' if one.warned else '':6}"
    return f"{one.problem:62} {one.end:12} {figures if one.judged else '':69} {one.seconds:6.1f} s  {one.said[:110]}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", nargs="+", choices=problems.FAMILIES + problems.VARIANTS, default=problems.FAMILIES)
    parser.add_argument("--data", nargs="+", choices=problems.DATA, default=problems.DATA)
    parser.add_argument("--solver", choices=SOLVERS, default="finite-volume")
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds for a run, and for its reference")
    parser.add_argument("--json", metavar="PATH", help="write all outcomes")
    parser.add_argument("--masked", action="store_true", help="put problems under a causal mask")
    parser.add_argument("--wide", action="store_true", help="twist problems as users will")
    parser.add_argument(
        "--blocks", action="store_true", help="put problems in blocks, of families and data of their own"
    )
    arguments = parser.parse_args()
    data = ("gaussian",) if arguments.solver == "gaussian" else tuple(arguments.data)
    if arguments.solver in ("layers", "depth") and not arguments.blocks:
        parser.error(f'"{arguments.solver}" needs --blocks')
    before, worker = machine(), Worker()
    print(", ".join(f"{name} {value}" for name, value in before.items()))
    asked = {
        name: getattr(arguments, name)
        for name in ("seed", "family", "data", "solver", "limit", "wide", "masked", "blocks")
    }
    outcomes = _known(arguments.json, asked)
    for index in range(arguments.first, arguments.first + arguments.problems):
        stated = problems.stated(index, arguments.seed, tuple(arguments.family), data)
        if arguments.wide:
            stated = twists.twisted(stated, arguments.seed)
        if arguments.solver != "finite-volume" or arguments.masked:
            stated = replace(stated, options={})
        if arguments.masked:
            stated = under_masks.masked(stated, arguments.seed, tokens=arguments.solver == "particles")
        if arguments.blocks:
            stated = blocks.in_block(index, arguments.seed, arguments.solver)
        if str(stated) in outcomes:
            continue
        outcomes[str(stated)] = worker.solve(stated, arguments.solver, arguments.limit)
        print(line(outcomes[str(stated)]), flush=True)
        found = report(list(outcomes.values()), arguments.solver)
        if arguments.json:
            content = {"machine": before, "versions": versions(["numpy", "scipy", "numba"]), "asked": asked}
            each = [asdict(one) for one in outcomes.values()]
            write_json(arguments.json, content | {"report": found.as_json(), "problems": each})
    worker.close()
    found = report(list(outcomes.values()), arguments.solver)
    rows = [(check.demand, f"{check.measured:.4g} {check.unit}", f"{check.limit:g}", "pass" if check.passed else "FAIL")
            for check in found.checks]  # fmt: skip
    print("\n" + "\n".join(found.notes) + "\n\n" + table(found.header, found.rows))
    print(table(("demand", "measured", "limit", ""), rows))


def _known(path: str | None, asked: dict[str, Any]) -> dict[str, Outcome]:
    """Outcomes of an earlier run that asked the same, by their problems."""
    if path is None or not Path(path).exists():
        return {}
    content = json.loads(Path(path).read_text())
    if content["asked"] != json.loads(json.dumps(asked)):  # which makes lists of tuples
        raise SystemExit(f"{path} holds problems of {content['asked']}; give another file")
    return {one["problem"]: Outcome(**one) for one in content["problems"]}


if __name__ == "__main__":
    main()
