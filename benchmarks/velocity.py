"""Race our velocity against NumPy, PyTorch, JAX, KeOps and the machine's limits; see README.md beside this file.

python benchmarks/velocity.py [--job NAME ...] [--quick] [--threads 1,2] [--json PATH]

The job ``choice`` compares the times that method="auto" predicts with those of this machine, and what it loses by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import limits
import numpy as np
import probes
import variant_peers
from contestants import Contestant, Effort, Result, need, ours, peer, race
from peers import BY_HAND, PEERS
from problems import Problem
from program import Job, Options, run
from timing import Check, ChildFailed, Report, Timing, Unavailable, in_child, number, seconds

PACKAGES = ("vlasov", "numpy", "scipy", "numba", "llvmlite", "pyFFTW", "torch", "jax", "jaxlib", "pykeops")
HEADER = ("contestant", "threads", "targets", "time", "ns per", "wall ns per", "cores", "error/R", "how")
CHOICE_SIZES = (200, 500, 700, 1_000, 1_400, 2_000, 5_000, 20_000, 100_000)  # close to where the choice changes

JOBS: dict[str, Job] = {}


def job(function: Job) -> Job:
    """Register a job under its function's name."""
    JOBS[function.__name__.replace("_", "-")] = function
    return function


# -- all pairs -------------------------------------------------------------------------------------------------------


@job
def all_pairs(options: Options) -> Report:
    """All pairs, d = 2, n = 1e4, against the peers and the arithmetic limit."""
    return _all_pairs(
        Problem(2, 10_000, "ball", 1.0),
        options,
        ratios={1: 3.0, 2: 4.0},
        above_limit=1.5,
    )


@job
def all_pairs_64(options: Options) -> Report:
    """All pairs, d = 64, n = 1e4."""
    return _all_pairs(Problem(64, 10_000, "normal", 1.0), options, ratios={2: 1.5})


@job
def all_pairs_single(options: Options) -> Report:
    """All pairs in float32, d = 2, n = 1e4."""
    return _all_pairs(Problem(2, 10_000, "ball", 1.0), options, ratios={1: 3.5, 2: 3.5}, dtype="float32")


def _all_pairs(
    problem: Problem,
    options: Options,
    *,
    ratios: dict[int, float],
    above_limit: float | None = None,
    dtype: str = "float64",
) -> Report:
    report = _report(f"All pairs, d = {problem.d}, n = m = {problem.n:,}, {dtype}", "pair")
    for threads in options.threads:
        limit = in_child(limits.measure, dtype, threads, options.effort.budget, threads=threads)
        contestants = [
            ours("vlasov all pairs", "all-pairs" if dtype == "float64" else f"all-pairs-{dtype}"),
            *(peer(entry, dtype) for entry in PEERS),
            peer(BY_HAND, dtype),
        ]
        results = race(problem, contestants, threads, options.effort)
        _enter(report, results, "pair")
        bound = limit.per_pair(problem.d)
        report.rows.append(("arithmetic limit", str(threads), "", "", number(bound), "", "", "", ""))
        report.raw[f"limits, {threads} threads"] = limit._asdict()
        us, best, by_hand = _standing(results)
        _compare_with_peers(report, us, best, by_hand, ratios.get(threads))
        if us is not None:
            ratio = 1e9 * us.seconds / us.problem.n**2 / bound
            if above_limit is None:
                report.notes.append(f"{_threads(threads)}: {number(ratio)} times the arithmetic limit")
            else:
                demand = f"all pairs / arithmetic limit, d = {problem.d}, {_threads(threads)}"
                report.checks.append(Check(demand, ratio, above_limit, at_least=False))
    return report


@job
def ball(options: Options) -> Report:
    """d = 2, n = 1e5 in a ball of radius 2, |A| = 1, tolerance 1e-9, against the peers."""
    problem = Problem(2, options.size(100_000), "ball", 1.0)
    report = _report(f"d = 2, n = m = {problem.n:,}, ball of radius 2, |A| = 1, tolerance 1e-9", "point")
    for threads in options.threads:
        contestants = [_fast("vlasov auto"), *(peer(entry) for entry in PEERS), peer(BY_HAND)]
        results = race(problem, contestants, threads, options.effort)
        _enter(report, results, "point")
        us, best, by_hand = _standing(results)
        _compare_with_peers(report, us, best, by_hand, 1500.0)
    return report


@job
def variants(options: Options) -> Report:
    """Each other attention over all pairs, n = 1e4, d = 2, 16, 64, against the best of its peers."""
    n = options.size(10_000)
    header = ("attention", "d", "threads", "contestant", "time", "ns per pair", "cores", "error/R", "/ ours", "how")
    report = Report(f"Attentions over all pairs, n = m = {n:,}", header)
    for d, cloud in ((2, "ball"), (16, "normal"), (64, "normal")):
        problem = Problem(d, n, cloud, 1.0)
        for threads in options.threads:
            limit = in_child(limits.measure, "float64", threads, options.effort.budget, threads=threads)
            products = 2 * d * n * n * limit.multiply_add * 1e-9
            for attention in variant_peers.ATTENTIONS:
                known = in_child(variant_peers.reference, problem, attention, threads=1)
                results = race(problem, variant_peers.contestants(attention), threads, options.effort, known)
                _enter_variant(report, attention, results, products)
    return report


def _enter_variant(report: Report, attention: str, results: list[Result], products: float) -> None:
    """Rows and the demand of one race; ``products``: seconds of a sum's products at the machine's peak."""
    us = next((r for r in results if r.name == "vlasov"), None)
    if us is None:
        return
    threads, d, n = us.threads, us.problem.d, us.problem.n
    for result in results:
        cost, cores = number(1e9 * result.seconds / n**2), f"{result.outcome.timing.cores:.2f}"
        times = seconds(result.seconds), cost, cores, f"{result.error:.0e}", number(result.seconds / us.seconds)
        report.rows.append((attention, str(d), str(threads), result.name, *times, result.outcome.how))
    words = f"{attention}, d = {d}, {_threads(threads)}"
    costs = ", ".join(f"{result.name} {number(1e9 * result.seconds / n**2)}" for result in results)
    print(f"  {words}, ns per pair: {costs}", flush=True)
    timings = {r.name: {"wall": r.outcome.timing.wall, "cpu": r.outcome.timing.cpu} for r in results}
    report.raw[words] = timings | {"error": us.error, "bound": us.outcome.bound, "products": products}
    peers = [result for result in results if result is not us]
    if peers:
        best = min(peers, key=lambda result: result.seconds)
        report.checks.append(Check(f"best peer ({best.name}) / vlasov, {words}", best.seconds / us.seconds, 2.0))
        sums = {"sinkhorn": variant_peers.HALF_STEPS, "masked": 0.5}.get(attention, 1.0)
        reached = number(best.seconds / (sums * products))
        report.notes.append(f"{words}: the best peer takes {reached} times its products at the machine's peak")
        if threads > 1:
            least = min(peers, key=lambda result: result.cpu)
            report.notes.append(f"{words}: {least.name} / vlasov by CPU time: {number(least.cpu / us.cpu)}")
    report.checks.append(_accuracy(us))


# -- linear cost -----------------------------------------------------------------------------------------------------


@job
def plane(options: Options) -> Report:
    """d = 2, n = 1e6, S = 20, tolerance 1e-9, against our own all pairs."""
    report, results = _against_all_pairs(Problem(2, options.size(1_000_000), "box", 20.0), options, 5_000.0)
    for us in results:
        if us.threads == 1:
            report.checks.append(
                Check(
                    "ns per point, d = 2, 1 thread (if the machine is quiet)",
                    1e9 * us.seconds / us.problem.n,
                    80.0,
                    False,
                    "ns",
                )
            )
    return report


@job
def line(options: Options) -> Report:
    """d = 1, n = 1e7, S = 50, tolerance 1e-9, against our own all pairs."""
    return _against_all_pairs(Problem(1, options.size(10_000_000), "box", 50.0), options, 200_000.0)[0]


@job
def space(options: Options) -> Report:
    """d = 3, n = 1e6, S = 8, tolerance 1e-9, against our own all pairs."""
    return _against_all_pairs(Problem(3, options.size(1_000_000), "box", 8.0), options, 2_000.0)[0]


def _against_all_pairs(problem: Problem, options: Options, demand: float) -> tuple[Report, list[Result]]:
    title = f"d = {problem.d}, n = m = {problem.n:,}, S = {problem.strength:g}, tolerance 1e-9"
    report = _report(title, "point")
    found = []
    for threads in options.threads:
        results = race(problem, [_fast("vlasov auto"), ours("vlasov all pairs", "all-pairs")], threads, options.effort)
        _enter(report, results, "point")
        us, slow = (next((r for r in results if r.name == f"vlasov {name}"), None) for name in ("auto", "all pairs"))
        if us is not None and slow is not None:
            words = f"all pairs / fast, d = {problem.d}, n = {problem.n:.0e}, {_threads(threads)}"
            report.checks += [Check(words, slow.seconds / us.seconds, demand), _accuracy(us)]
            if threads > 1:
                report.notes.append(f"{_threads(threads)}: the same by CPU time: {number(slow.cpu / us.cpu)}")
            found.append(us)
    return report, found


@job
def growth(options: Options) -> Report:
    """d = 2, S = 20: time for n = 1e7 / time for n = 1e6."""
    report = _report("d = 2, S = 20, tolerance 1e-9: growth in n", "point")
    for threads in options.threads:
        times = []
        for n in (options.size(1_000_000), options.size(10_000_000)):
            results = race(Problem(2, n, "box", 20.0), [_fast(f"vlasov auto, n = {n:.0e}")], threads, options.effort)
            _enter(report, results, "point")
            times += [result.seconds for result in results]
        if len(times) == 2:
            report.checks.append(
                Check(f"time(10 n) / time(n), d = 2, {_threads(threads)}", times[1] / times[0], 12.0, at_least=False)
            )
    return report


# -- other doors -----------------------------------------------------------------------------------------------------


@job
def lattice(options: Options) -> Report:
    """Cell averages on 1024 x 1024 cells, targets at their centres, S = 20, against convolution by SciPy's FFT."""
    need("lattice")
    grid = probes.Grid(options.size(1024))
    header = ("contestant", "threads", "time", "ns per cell", "wall", "cores", "error/R", "how")
    report = Report(f"Lattice, {grid.cells} x {grid.cells} cells, S = 20, tolerance 1e-9, A symmetric", header)
    exact = in_child(probes.lattice_reference, grid, threads=1)
    ways: dict[str, tuple[Any, ...]] = {
        "vlasov lattice": (probes.lattice, "lattice"),
        "SciPy FFT": (probes.lattice_by_scipy,),
    }
    for threads in options.threads:
        times = {}
        for name, (function, *arguments) in ways.items():
            try:
                turns = [
                    in_child(function, grid, options.effort, threads, *arguments, threads=threads)
                    for _ in range(options.effort.rounds)
                ]
            except (Unavailable, ChildFailed) as reason:
                print(f"  {name}: {str(reason).strip().splitlines()[-1]}")
                continue
            timing, values, how = turns[0]
            for other, _, _ in turns[1:]:
                timing += other
            best = times[name] = timing.best(threads)
            error = float(np.abs(values - exact).max())
            cost, wall = number(1e9 * best / grid.cells**2), seconds(min(timing.wall))
            report.rows.append(
                (name, str(threads), seconds(best), cost, wall, f"{timing.cores:.2f}", f"{error:.0e}", how)
            )
            report.raw[f"{name}, {threads} threads"] = {"wall": timing.wall, "cpu": timing.cpu, "error": error}
        us = times.pop("vlasov lattice", None)
        if us is not None and times:
            fastest = min(times, key=times.__getitem__)
            words = f"{fastest} / lattice, {_threads(threads)}"
            report.checks.append(Check(words, times[fastest] / us, 3.0))
    return report


@job
def hundred(options: Options) -> Report:
    """n = 100, d = 2: time of one evaluation, and of the same sum in plain NumPy."""
    report = Report("n = 100, d = 2: time of one velocity", ("way", "threads", "time"))
    for threads in options.threads:
        found = in_child(probes.hundred, options.effort.budget, threads=threads)
        for way, timing in found.items():
            report.rows.append((way, str(threads), seconds(timing.best(threads))))
            report.raw[f"{way}, {threads} threads"] = timing.wall
        ratio = found["NumPy"].best(threads) / found["attention.velocity"].best(threads)
        report.checks.append(Check(f"NumPy / attention.velocity, n = 100, d = 2, {_threads(threads)}", ratio, 2.0))
    return report


@job
def choice(options: Options) -> Report:
    """Both methods' predicted and measured times, d = 1, 2, 3, n = 200 to 1e5, and what "auto" loses by its choice."""
    need("laplace", "auto")
    names = [f"{way} {kind}" for way in ("laplace", "all pairs") for kind in ("predicted", "measured")]
    header = ("d", "threads", "S", "n", *names, "chosen by auto", "regret")
    report = Report("Choice of the method, n = m points in [-1, 1]^d, tolerance 1e-9", header)
    for threads in options.threads:
        regrets, detours, cores = {}, {}, []
        for d, strengths in {1: (2.0, 20.0), 2: (2.0, 20.0), 3: (2.0, 8.0, 20.0)}.items():
            ratios: dict[str, list[float]] = {"laplace": [], "all-pairs": []}
            for problem, predicted, timings, chosen in _choices(d, strengths, options.effort, threads):
                measured = {way: timing.best(threads) for way, timing in timings.items()}
                fastest = min(measured[way] for way in ratios)
                place = (str(d), str(threads), f"{problem.strength:g}", f"{problem.n:,}")
                words = f"d = {d}, S = {problem.strength:g}, n = {problem.n:,}"
                regrets[words], detours[words] = measured[chosen] / fastest, measured["auto"] / fastest
                for way, found in ratios.items():
                    found.append(measured[way] / predicted[way])
                figures = (seconds(kind[way]) for way in ratios for kind in (predicted, measured))
                report.rows.append((*place, *figures, chosen, number(regrets[words])))
                report.raw[f"{words}, {threads} threads"] = {
                    "predicted": predicted,
                    "wall": {way: timing.wall for way, timing in timings.items()},
                    "cpu": {way: timing.cpu for way, timing in timings.items()},
                    "chosen": chosen,
                    "regret": regrets[words],
                }
                if problem.n == CHOICE_SIZES[-1]:
                    cores.append(timings["all-pairs"].cores)
            spans = ", ".join(f"{way} {number(min(found))} to {number(max(found))}" for way, found in ratios.items())
            report.notes.append(f"d = {d}, {_threads(threads)}: measured / predicted for one thread: {spans}")
        worst, longest = max(regrets, key=regrets.__getitem__), max(detours, key=detours.__getitem__)
        detour = f"auto with its planning / the faster method, at most: {number(detours[longest])} ({longest})"
        report.notes.append(f"{_threads(threads)}: {detour}")
        if threads > 1:
            busy = f"{min(cores):.2f} to {max(cores):.2f}"
            report.notes.append(f"{_threads(threads)}: cores at work in all pairs, n = {CHOICE_SIZES[-1]:,}: {busy}")
        demand = f"largest regret of auto ({worst}), {_threads(threads)}"
        report.checks.append(Check(demand, regrets[worst], 2.0, at_least=False))
    return report


def _choices(
    d: int, strengths: Sequence[float], effort: Effort, threads: int
) -> Iterator[tuple[Problem, dict[str, float], dict[str, Timing], str]]:
    """Problems with predicted and measured times of the methods, and what "auto" chose."""
    problems = [Problem(d, n, "box", strength) for strength in strengths for n in CHOICE_SIZES]
    rounds = [in_child(probes.choice, problems, effort, threads, threads=threads) for _ in range(effort.rounds)]
    for problem, (predicted, timings, chosen), *others in zip(problems, *rounds, strict=True):
        for _, more, _ in others:
            timings = {way: timing + more[way] for way, timing in timings.items()}
        yield problem, predicted, timings, chosen


@job
def memory(options: Options) -> Report:
    """Peak memory of one velocity, n = 1e7, d = 2."""
    need("laplace")
    n = options.size(10_000_000)
    report = Report(f"Memory for one velocity, n = {n:,}, d = 2, S = 20", ("what", "threads", "MB"))
    for threads in options.threads:
        peak, arrays = in_child(probes.memory, n, threads=threads)
        report.rows += [
            ("input: points and weights", str(threads), number(arrays / 1e6)),
            ("peak, without the interpreter and its modules", str(threads), number(peak / 1e6)),
        ]
        allowed = (2.5 * arrays + 200e6) / 1e6
        report.checks.append(Check(f"peak memory, {_threads(threads)}", peak / 1e6, allowed, False, "MB"))
    return report


@job
def solver(options: Options) -> Report:
    """Particle solver, 1e6 particles of mixture-2d to t = 1 at tolerance 1e-6, against its velocities alone."""
    need("laplace")
    n = options.size(1_000_000)
    report = Report(f"Particle solver, mixture-2d, n = {n:,}, to t = 1, tolerance 1e-6", ("what", "threads", ""))
    for threads in options.threads:
        run = in_child(probes.solver, n, threads, threads=threads, limit=3600.0)
        report.rows += [
            ("the run", str(threads), seconds(run["wall"])),
            ("of it, before the first velocity", str(threads), seconds(run["before"])),
            ("of it, after the last velocity", str(threads), seconds(run["after"])),
            ("velocity evaluations", str(threads), str(run["evaluations"])),
            ("time of one, alone, at t = 0 and t = 1", str(threads), seconds(run["one"])),
            ("all of them inside the run", str(threads), seconds(run["inside"])),
            ("methods", str(threads), ", ".join(run["methods"])),
        ]
        report.raw[f"{threads} threads"] = run
        own = number(run["wall"] / run["inside"])
        report.notes.append(f"{_threads(threads)}: the run takes {own} times its own velocity evaluations")
        ratio = run["wall"] / (run["evaluations"] * run["one"])
        demand = f"run / (evaluations x time of one), {_threads(threads)}"
        report.checks.append(Check(demand, ratio, 1.3, at_least=False))
    return report


@job
def stages(options: Options) -> Report:
    """The stages of one evaluation, d = 2, n = 1e6, S = 20, and how far each is from the machine's limits."""
    need("laplace")
    n = options.size(1_000_000)
    header = ("stage", "threads", "time", "ns per point", "memory", "arithmetic", "time / larger")
    report = Report(f"Stages of one velocity, d = 2, n = {n:,}, S = 20, tolerance 1e-9", header)
    for threads in options.threads:
        limit = in_child(limits.measure, "float64", threads, options.effort.budget, threads=threads)
        found = in_child(probes.stages, n, threads, options.effort, threads=threads)
        for stage in found["stages"]:
            traffic, work = 1e-9 * stage["bytes"] / limit.copy, 1e-9 * stage["multiply_adds"] * limit.multiply_add
            least = max(traffic, work)
            report.rows.append(
                (
                    stage["name"],
                    str(threads),
                    seconds(stage["seconds"]),
                    number(1e9 * stage["seconds"] / n),
                    seconds(traffic) if traffic else "",
                    seconds(work) if work else "",
                    number(stage["seconds"] / least) if least else "",
                )
            )
        report.notes.append(f"{_threads(threads)}: {found['plan']}")
        report.notes.append(
            f"{_threads(threads)}: copy {number(limit.copy)} GB/s, triad {number(limit.triad)} GB/s, "
            f"{number(1 / limit.multiply_add)} fused multiply-adds per ns"
        )
        report.raw[f"{threads} threads"] = found | {"limits": limit._asdict()}
    return report


# -- tables ----------------------------------------------------------------------------------------------------------


def _fast(name: str) -> Contestant:
    return ours(name, "auto", needs="laplace")


def _report(title: str, unit: str) -> Report:
    return Report(title, [f"{name} {unit}" if name.endswith("ns per") else name for name in HEADER])


def _enter(report: Report, results: list[Result], unit: str) -> None:
    for result in results:
        scale = 1e9 / result.problem.n ** (2 if unit == "pair" else 1)
        timing = result.outcome.timing
        report.rows.append(
            (
                result.name,
                str(result.threads),
                result.targets,
                seconds(result.seconds),
                number(result.seconds * scale),
                number(result.wall * scale),
                f"{timing.cores:.2f}",
                f"{result.error:.0e}",
                result.outcome.how,
            )
        )
        report.raw[f"{result.name}, {result.threads} threads"] = {
            "targets": result.outcome.targets,
            "seconds_for_all_targets": result.seconds,
            "error": result.error,
            "bound": result.outcome.bound,
            "how": result.outcome.how,
            "wall": timing.wall,
            "cpu": timing.cpu,
        }


def _standing(results: list[Result]) -> tuple[Result | None, Result | None, Result | None]:
    """Ours, the best of the peers, and NumPy by hand."""
    us = next((r for r in results if r.name.startswith("vlasov")), None)
    by_hand = next((r for r in results if r.name == BY_HAND.name), None)
    peers = [r for r in results if r is not us and r is not by_hand]
    return us, min(peers, key=lambda r: r.seconds, default=None), by_hand


def _compare_with_peers(
    report: Report, us: Result | None, best: Result | None, by_hand: Result | None, demand: float | None
) -> None:
    if us is None or best is None:
        return
    ratio = best.seconds / us.seconds
    if us.threads > 1:
        report.notes.append(f"{_threads(us.threads)}: {best.name} / vlasov by CPU time: {number(best.cpu / us.cpu)}")
    words = f"best peer ({best.name}) / vlasov, d = {us.problem.d}, n = {us.problem.n:.0e}, {_threads(us.threads)}"
    if demand is None:
        report.notes.append(f"{words}: {number(ratio)}")
    else:
        report.checks.append(Check(words, ratio, demand))
    report.checks.append(_accuracy(us))
    if by_hand is not None:
        report.notes.append(f"{_threads(us.threads)}: NumPy by hand / vlasov: {number(by_hand.seconds / us.seconds)}")


def _accuracy(us: Result) -> Check:
    """Our error keeps the bound that came with it."""
    words = f"{us.name}, {_threads(us.threads)}: error / returned bound"
    return Check(words, us.error / us.outcome.bound, 1.0, at_least=False)


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


# -- the program -----------------------------------------------------------------------------------------------------


if __name__ == "__main__":
    run(__doc__.splitlines()[0], JOBS, PACKAGES, "a tenth of the points, few repetitions")
