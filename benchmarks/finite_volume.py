"""Measure accuracy and cost of the finite-volume solver against what is known and what the machine allows.

python benchmarks/finite_volume.py [--job NAME ...] [--quick] [--threads 1,2] [--json PATH]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import fv_probes as probes
import fv_problems as known
import limits
import numpy as np
from program import Job, Options, run
from timing import Check, ChildFailed, Report, Timing, Unavailable, in_child, number, seconds

PACKAGES = ("vlasov", "numpy", "scipy", "numba", "llvmlite", "pyFFTW", "POT", "py-pde", "clawpack")
SCHEMES = {"upwind5": 4.5, "weno5": 4.5, "muscl": 1.85, "upwind": 0.9}  # least orders to be seen

JOBS: dict[str, Job] = {}


def job(function: Job) -> Job:
    """Register a job under its function's name."""
    JOBS[function.__name__.replace("_", "-")] = function
    return function


# -- accuracy: these run once, with the largest number of threads ----------------------------------------------------


@job
def order(options: Options) -> Report:
    """Observed orders and L1 errors in a fixed frame: a rotating Gaussian in the plane, and one on the line."""
    header = ("scheme", "t", "cells", "L1 error", "order", "W2", "W2, all tails", "steps", "time", "")
    report = Report("Fixed frame; in the plane A, V not symmetric", header)
    sizes, runs = {1: _coarser(options, 128, 256, 512), 2: _coarser(options, 32, 64, 128, 256)}, {}
    for solve, d, horizon in ((_rotating, 2, 2.0), (_rotating, 2, 0.5), (_line, 1, 1.0)):
        for scheme, least in SCHEMES.items():
            found = runs[d, horizon, scheme] = _alone(options, solve, scheme, horizon, sizes[d])
            _enter_errors(report, scheme, horizon, found, d)
            # The further the measure has moved, the finer the grids on which low orders show.
            pair = {(2, 0.5): (64, 128), (2, 2.0): (128, 256), (1, 1.0): (256, 512)}[d, horizon]
            pair = (64, 128) if d == 2 and least > 2 else pair
            errors = {entry["cells"]: entry["error"] for entry in found}
            if set(pair) <= set(errors):
                demand = f"order of {scheme}, t = {horizon:g}, {pair[0]}^{d} -> {pair[1]}^{d}"
                report.checks.append(Check(demand, _order(pair, errors), least, unit=""))
    report.notes.append("W2 leaves out tails of mass 1e-14, which rounding moves; the next column does not")
    plane, line = runs[2, 2.0, "upwind5"], runs[1, 1.0, "upwind5"]
    for cells, most in ((128, 1.2e-4), (256, 5e-6)):
        for entry in plane:
            if entry["cells"] == cells:
                report.checks.append(_at_most(f"L1 error of upwind5, {cells}^2", entry["error"], most))
    if line[-1]["cells"] == 512:
        report.checks.append(_at_most("L1 error on the line, 512 cells", line[-1]["error"], 3e-7))
        report.checks.append(_at_most("W2 on the line, 512 cells", line[-1]["W2"], 5e-9))
    report.raw |= {f"{d}, {horizon:g}, {scheme}": found for (d, horizon, scheme), found in runs.items()}
    return report


@job
def conservation(options: Options) -> Report:
    """Mass plus outflow, and the smallest density: the runs of "order", the square and a tight domain."""
    report = Report(
        "Conservation and positivity", ("run", "scheme", "cells", "|mass + outflow - 1|", "outflow", "min f")
    )
    found = _alone(options, _balances, _coarser(options, 32, 64, 128, 256))
    for entry in found:
        report.rows.append(
            (
                entry["run"], entry["scheme"], str(entry["cells"]), f"{entry['balance']:.1e}",
                f"{entry['outflow']:.0e}", f"{entry['least']:.0e}",
            )
        )  # fmt: skip
    report.checks += [
        _at_most("|mass + outflow - 1|, the largest", max(entry["balance"] for entry in found), 1e-13),
        Check("density, the smallest", min(entry["least"] for entry in found), 0.0, unit=""),
    ]
    report.raw["runs"] = found
    return report


@job
def collapse(options: Options) -> Report:
    """A = I, V = -I to t = 1e8, 64^2: Sigma shrinks to 5e-9 of its start."""
    report = Report("Collapse, A = I, V = -I, t = 1e8, moving frame", _ISOTROPIC)
    for cells in (64,):
        entry = _alone(options, _isotropic, 1.0, -1.0, 1e8, ((1.0, 0.2), (0.2, 0.6)), cells)
        report.rows.append(_isotropic_row("collapse", entry))
        report.checks.append(_at_most(f"relative error of Sigma, {cells}^2", entry["error"], 1e-9))
        report.raw[f"{cells}"] = entry
    return report


@job
def growth(options: Options) -> Report:
    """Before blow-up, 96^2: Sigma grows 1e4 and 1e6 times; and the time of the blow-up."""
    report = Report("Growth, moving frame, 96^2, Sigma_0 = I", _ISOTROPIC)
    # With V = I the mean is unstable, x' = V x: rounding errors would grow e^5000 times in the first of these.
    runs = (
        ("A = -1e-4 I, V = -I: tilt below 1", -1e-4, -1.0, 1e4, 1e-8),
        ("A = I/2, V = I", 0.5, 1.0, 1e4, 1e-8),
        ("A = I/2, V = I", 0.5, 1.0, 1e6, 1e-5),
    )
    for words, strength, sign, factor, most in runs:
        horizon = (1 - 1 / factor) / (2 * strength * sign)
        entry = _alone(options, _isotropic, strength, sign, horizon, ((1.0, 0.0), (0.0, 1.0)), 96)
        report.rows.append(_isotropic_row(words, entry))
        report.checks.append(_at_most(f"relative error of Sigma, {factor:.0e} times, {words}", entry["error"], most))
        report.raw[f"{words}, {factor:.0e} times"] = entry
    report.notes.append(
        "an error of Sigma_0 grows as Sigma / Sigma_0: error / growth is what it amounts to at the start"
    )
    time, error, found = _alone(options, _blow_up)
    report.notes.append(f"A = I/2, V = I: status {found}, error of t* as the run itself estimates it: {error:.0e}")
    report.checks.append(_at_most("relative error of the time of blow-up", abs(time - 1.0), 1e-5))
    return report


@job
def mixture(options: Options) -> Report:
    """mixture-2d to t = 1: moments up to order 4 against quadrature particles."""
    header = ("solver", "cells", "error of moments", "order", "velocities", "steps", "time", "")
    report = Report("mixture-2d, t = 1, moving frame, upwind5", header)
    own, size, found = _alone(options, _mixture, _coarser(options, 64, 128, 256))
    report.notes.append(
        f"reference: {size:,} weighted particles, tolerance 1e-10; a quarter of them differ by {own:.0e}"
    )
    _enter_moments(report, "moving", found)
    for entry in found:
        if entry["cells"] == 128:
            report.checks.append(_at_most("error of moments, 128^2", entry["error"], 1e-5))
            report.checks.append(_at_most("velocity evaluations, 128^2", entry["evaluations"], 80))
    report.raw |= {"reference": own, "runs": found}
    return report


@job
def ring(options: Options) -> Report:
    """linear-ring to t = 3: moments and L1 error against the exact map of the ring."""
    header = (
        "frame",
        "cells",
        "Dataset",
        "cells' moments",
        "from exact map of t = 0",
        "L1 error",
        "order",
        "steps",
        "time",
        "",
    )
    report = Report("linear-ring: linear attention maps the ring by a matrix", header)
    cells = _coarser(options, 64, 128, 256)
    for frame in ("moving", "fixed"):
        found = _alone(options, _ring, frame, cells)
        for before, entry in zip([None, *found], found, strict=False):
            report.rows.append(
                (
                    frame, _squared(entry["cells"]), f"{entry['dataset']:.1e}", f"{entry['error']:.1e}",
                    f"{entry['dynamics']:.1e}",
                    f"{entry['L1']:.1e}", _order_to(before, entry, "L1"), str(entry["steps"]),
                    seconds(entry["seconds"]), "",
                )
            )  # fmt: skip
        report.raw[frame] = found
        last = (found[-2]["cells"], found[-1]["cells"])
        errors = {entry["cells"]: entry["L1"] for entry in found}
        demand = f"order of the L1 error, {frame} frame, {last[0]}^2 -> {last[1]}^2"
        report.checks.append(Check(demand, _order(last, errors), 0.6, unit=""))
        if frame == "moving":
            finest = found[-1]
            words = f"moments, {finest['cells']}^2, against the initial cell averages mapped exactly"
            report.checks.append(_at_most(words, finest["dynamics"], 1e-6))
            words = f"mean and covariance of the Dataset, {finest['cells']}^2, against the ring"
            report.checks.append(_at_most(words, finest["dataset"], 1e-6))
    report.notes += [
        "moments of the Dataset: mean and covariance against the ring's own",
        "moments of cells, up to order 4, hold what jumps inside of cells do to them; the next column leaves it out",
    ]
    return report


@job
def square(options: Options) -> Report:
    """Box [-1, 1]^2, V = A = I, t = 5: W2 to the clusters at the corners."""
    header = ("scheme", "cells", "W2/sd", "+-", "doublings", "steps", "time", "")
    report = Report("Square, V = A = I, t = 5, moving frame", header)
    for cells in _coarser(options, 64, 128):
        entry = _alone(options, _square, cells)
        report.rows.append(
            (
                "upwind5", _squared(cells), f"{entry['distance']:.2e}", f"{entry['error']:.0e}",
                number(entry["doublings"]), str(entry["steps"]), seconds(entry["seconds"]), entry["advice"],
            )
        )  # fmt: skip
        if cells == 128:
            report.checks.append(_at_most("W2/sd, 128^2", entry["distance"], 2e-2))
        report.raw[f"{cells}"] = entry
    report.notes.append(
        "exact: the product of two solutions on the line, 600 particles each, in 40 groups of equal mass on each side; "
        "+- is what grouping may change. Cells count as Diracs at their centres. Both are folded to one quadrant."
    )
    return report


@job
def space(options: Options) -> Report:
    """A Gaussian in space, A and V not symmetric, t = 1: fixed frame for the order, and the moving frame."""
    header = ("frame", "cells", "L1 error", "order", "velocities", "steps", "time", "")
    report = Report("Gaussian in space, t = 1", header)
    for frame, cells in (("fixed", _coarser(options, 32, 48, 64)), ("moving", _coarser(options, 48, 64)[-1:])):
        found = _alone(options, _space, frame, cells)
        for before, entry in zip([None, *found], found, strict=False):
            report.rows.append(
                (
                    frame, f"{entry['cells']}^3", f"{entry['error']:.1e}", _order_to(before, entry, "error"),
                    str(entry["evaluations"]), str(entry["steps"]), seconds(entry["seconds"]), "",
                )
            )  # fmt: skip
            if entry["cells"] == 64:
                demand = f"64^3, {frame} frame, {_threads(max(options.threads))}"
                report.checks.append(_at_most(demand, entry["seconds"], 120.0, "s"))
        report.raw[frame] = found
    return report


# -- cost ------------------------------------------------------------------------------------------------------------


@job
def cost(options: Options) -> Report:
    """A velocity, a stage of fluxes, and whole runs of mixture-2d; all as multiples of copying the density."""
    header = ("what", "cells", "threads", "time", "ns per cell", "copies", "cores", "how")
    report = Report("Cost: mixture-2d, moving frame, upwind5; fluxes on a grid of their own", header)
    for threads in options.threads:
        memory = in_child(limits.measure, "float64", threads, options.effort.budget, threads=threads)
        how = f"{number(memory.copy)} GB/s; the copies below stay in the cache"
        each = number(16 / memory.copy)  # bytes read and written for a cell
        report.rows.append(("limit: copying from memory", "", str(threads), "", each, "", "", how))
        report.raw[f"limits, {_threads(threads)}"] = memory._asdict()
        for cells in _coarser(options, 256, 512):
            _enter_velocity(report, options, threads, cells)
            for scheme in SCHEMES if cells == 256 else ("upwind5",):
                _enter_fluxes(report, options, threads, cells, scheme)
    for threads in options.threads:
        try:
            _enter_runs(report, options, threads, _coarser(options, 256, 512))
        except ChildFailed as failure:  # what was measured before is still worth a table
            report.notes.append(f"whole runs, {_threads(threads)}, failed: {str(failure).strip().splitlines()[-1]}")
    return report


@job
def profile(options: Options) -> Report:
    """One step of mixture-2d by its parts: the mean over a run to t = 1."""
    header = ("part of a step", "cells", "threads", "time", "ns per cell", "share")
    report = Report("Profile of a step: mixture-2d, moving frame, upwind5", header)
    for threads in options.threads:
        for cells in _coarser(options, 128, 256):
            parts, steps = in_child(probes.profile, cells, threads, options.effort, threads=threads)
            for name in (*probes.PARTS, "the rest", "step"):
                spent = parts.get(name, 0.0)
                share = f"{100 * spent / parts['step']:.0f} %"
                row = (name, _squared(cells), str(threads), seconds(spent), number(1e9 * spent / cells**2), share)
                report.rows.append(row)
            report.raw[f"{cells}^2, {_threads(threads)}"] = parts | {"steps": steps}
    report.notes.append("velocity evaluations of the first steps, which have four, are in the mean")
    return report


@job
def peers(options: Options) -> Report:
    """The transport alone on 256^2 cells with a given velocity: ours against py-pde (and PyClaw, if it installs)."""
    cells = 256
    header = ("contestant", "threads", "time of a step", "ns per cell", "per stage", "cores", "how")
    report = Report(f"Transport of a density, {cells} x {cells} cells, the velocity given", header)
    for threads in options.threads:
        ours = {}
        for scheme, how in (("upwind5", "order 5, RK4, limiter"), ("muscl", "order 2, SSPRK3, limiter")):
            times, _, stages = in_child(probes.fluxes, cells, scheme, threads, options.effort, threads=threads)
            ours[scheme] = times["all, per stage"] * stages
            _enter_peer(report, f"vlasov {scheme}", threads, ours[scheme], cells, stages, how)
        ways = (("py-pde", probes.py_pde, "central differences of order 2, RK4, no limiter", (cells, threads)),)
        for name, function, how, arguments in ways:
            try:
                timing, _ = in_child(function, *arguments, options.effort, threads=threads)
            except (Unavailable, ChildFailed) as reason:
                report.rows.append((name, str(threads), "", "", "", "", str(reason).strip().splitlines()[-1]))
                continue
            _enter_peer(report, name, threads, timing, cells, 4, how)
            ratio = timing.best(threads) / ours["upwind5"].best(threads)
            report.notes.append(f"{_threads(threads)}: {name} / vlasov upwind5, one step: {number(ratio)}")
    try:
        in_child(probes.pyclaw, threads=1)
    except Unavailable as reason:
        report.rows.append(("PyClaw", "", "", "", "", "", str(reason)))
    report.notes.append(
        "All peers get a velocity that does not change, for free, and take a fixed step. Our steps include its "
        "extrapolation from four levels at every stage, and the limiter that keeps the density positive; velocities of "
        "the attention are left out on both sides. No limiter keeps central differences from oscillating."
    )
    return report


# -- runs in processes of their own ----------------------------------------------------------------------------------


def _entry(found: known.Run, cells: int, **more: Any) -> dict[str, Any]:
    return {
        "cells": cells,
        "steps": found.steps,
        "evaluations": found.evaluations,
        "seconds": found.seconds,
        "balance": found.balance,
        **more,
    }


def _rotating(scheme: str, horizon: float, sizes: Sequence[int]) -> list[dict[str, Any]]:
    problem, entries = known.rotating(horizon), []
    for cells in sizes:
        found = known.run(problem, cells=cells, frame="fixed", reconstruction=scheme)
        entries.append(_entry(found, cells, error=known.gaussian_error(found, problem)))
    return entries


def _line(scheme: str, horizon: float, sizes: Sequence[int]) -> list[dict[str, Any]]:
    problem, entries = known.line(horizon), []
    for cells in sizes:
        found = known.run(problem, cells=cells, frame="fixed", reconstruction=scheme)
        distances = {
            "W2": known.gaussian_wasserstein(found, problem),
            "all": known.gaussian_wasserstein(found, problem, 1e-25),
        }
        entries.append(_entry(found, cells, error=known.gaussian_error(found, problem), **distances))
    return entries


def _balances(sizes: Sequence[int]) -> list[dict[str, Any]]:
    import vlasov as vl

    rough = vl.Problem(known.rotating().attention, vl.Box([-1.0, -0.5], [1.0, 0.5]), 1.0)
    runs: list[tuple[str, Any, dict[str, Any], Sequence[int]]] = [
        ("rotating Gaussian, fixed", known.rotating(), {"frame": "fixed"}, sizes),
        ("box, fixed", rough, {"frame": "fixed"}, sizes[1:-1]),
        ("box, moving", rough, {"frame": "moving"}, sizes[1:-1]),
        ("box, fixed, leaves the grid", rough, {"frame": "fixed", "extent": [1.02, 0.52]}, sizes[1:-1]),
    ]
    entries = []
    for words, problem, settings, counts in runs:
        for scheme in SCHEMES:
            for cells in counts:
                found = known.run(problem, cells=cells, reconstruction=scheme, **settings)
                more = {
                    "run": words, "scheme": scheme, "outflow": found.attributes["outflow"],
                    "least": float(found.state.values.min()),
                }  # fmt: skip
                entries.append(_entry(found, cells, **more))
    return entries


def _isotropic(strength: float, sign: float, horizon: float, covariance: Any, cells: int) -> dict[str, Any]:
    known.run(known.isotropic(strength, sign, horizon * 1e-9, covariance), cells=cells)  # compiles
    problem = known.isotropic(strength, sign, horizon, covariance)
    found = known.run(problem, cells=cells)
    error, size = known.isotropic_error(found, problem, strength, sign)
    return _entry(found, cells, error=error, size=size)


def _blow_up() -> tuple[float, float, str]:
    found = known.run(known.isotropic(0.5, 1.0, 1.5, np.eye(2)), cells=96).attributes
    return found["blow_up_time"], found.get("blow_up_time_error", math.nan), found["status"]


def _mixture(sizes: Sequence[int]) -> tuple[float, int, list[dict[str, Any]]]:
    import vlasov as vl

    problem = probes.mixture()
    clouds = []
    for n in (4_500, 18_000):
        result = vl.solve(problem, "particles", n=n, sampling="quadrature", tolerance=1e-10, times=[problem.horizon])
        clouds.append(vl.measure(result))
    exact = clouds[-1].points, clouds[-1].weights
    own = known.moment_error(known.cloud_moments(clouds[0].points, clouds[0].weights), *exact)
    known.run(problem, cells=64)  # compiles
    entries = []
    for cells in sizes:
        found = known.run(problem, cells=cells)
        entries.append(_entry(found, cells, error=known.moment_error(known.grid_moments(found.state), *exact)))
    return own, len(exact[0]), entries


def _ring(frame: str, sizes: Sequence[int]) -> list[dict[str, Any]]:
    import vlasov as vl

    problem = vl.load_case("linear-ring").problem
    points, weights, flow = known.ring_points(problem)
    entries = []
    for cells in sizes:
        found = known.run(problem, cells=cells, frame=frame)
        moments = known.grid_moments(found.state)
        errors = {
            "dataset": known.ring_covariance_error(found, points, weights),
            "error": known.moment_error(moments, points, weights),
            "dynamics": known.moment_error(moments, points, weights, known.ring_moments(found, flow)),
            "L1": known.ring_error(found, problem, flow),
        }
        entries.append(_entry(found, cells, **errors))
    return entries


def _square(cells: int) -> dict[str, Any]:
    found = known.run(known.square(), cells=cells)
    distance, error = known.square_wasserstein(found)
    told = {name: found.attributes[name] for name in ("doublings", "advice")}
    return _entry(found, cells, distance=distance, error=error, **told)


def _space(frame: str, sizes: Sequence[int]) -> list[dict[str, Any]]:
    problem, entries = known.space(), []
    for cells in sizes:
        found = known.run(problem, cells=cells, frame=frame)
        entries.append(_entry(found, cells, error=known.gaussian_error(found, problem)))
    return entries


# -- tables ----------------------------------------------------------------------------------------------------------

_ISOTROPIC = ("run", "|Sigma| / |Sigma_0|", "relative error", "error / growth", "steps", "velocities", "time", "")


def _isotropic_row(words: str, entry: dict[str, Any]) -> tuple[str, ...]:
    return (
        words, f"{entry['size']:.4g}", f"{entry['error']:.1e}", f"{entry['error'] / max(1.0, entry['size']):.0e}",
        str(entry["steps"]), str(entry["evaluations"]), seconds(entry["seconds"]), "",
    )  # fmt: skip


def _enter_errors(report: Report, scheme: str, horizon: float, found: Sequence[dict[str, Any]], d: int) -> None:
    for before, entry in zip([None, *found], found, strict=False):
        report.rows.append(
            (
                scheme, f"{horizon:g}", f"{entry['cells']}^{d}",
                f"{entry['error']:.2e}", _order_to(before, entry, "error"),
                f"{entry['W2']:.1e}" if "W2" in entry else "", f"{entry['all']:.1e}" if "all" in entry else "",
                str(entry["steps"]), seconds(entry["seconds"]), "",
            )
        )  # fmt: skip


def _enter_moments(report: Report, frame: str, found: Sequence[dict[str, Any]]) -> None:
    for before, entry in zip([None, *found], found, strict=False):
        report.rows.append(
            (
                frame, _squared(entry["cells"]), f"{entry['error']:.1e}", _order_to(before, entry, "error"),
                str(entry["evaluations"]), str(entry["steps"]), seconds(entry["seconds"]), "",
            )
        )  # fmt: skip


def _enter_velocity(report: Report, options: Options, threads: int, cells: int) -> None:
    timing, copy, how = _best_of(options, probes.velocity, cells, threads)
    _enter_cost(report, "velocity at the nodes", cells, threads, timing, copy, how)
    _enter_cost(report, "copying the density", cells, threads, copy, copy, "np.copyto, one thread")
    if threads == 1 and cells == 256:
        value = 1e9 * timing.best(threads) / cells**2
        report.checks.append(_at_most(f"velocity, {cells}^2, 1 thread", value, 100.0, "ns per cell"))


def _enter_fluxes(report: Report, options: Options, threads: int, cells: int, scheme: str) -> None:
    times, copy, stages = in_child(probes.fluxes, cells, scheme, threads, options.effort, threads=threads)
    parts = times.items() if scheme == "upwind5" else [("all, per stage", times["all, per stage"])]
    for name, timing in parts:
        how = f"{stages} stages" if name == "all, per stage" else ""
        _enter_cost(report, f"{scheme}: {name}", cells, threads, timing, copy, how)
    if threads == 1 and cells == 256 and scheme == "upwind5":
        value = 1e9 * times["all, per stage"].best(threads) / cells**2
        demand = f"fluxes and limiter, {scheme}, {cells}^2, 1 thread"
        report.checks.append(_at_most(demand, value, 8.0, "ns per cell and stage"))


def _enter_runs(report: Report, options: Options, threads: int, sizes: tuple[int, ...]) -> None:
    found = in_child(probes.whole, sizes, threads, options.effort, threads=threads)
    for cells, (timing, last) in found.items():
        how = f"{last.steps} steps, {last.evaluations} velocities"
        _enter_cost(report, "whole run, t = 1", cells, threads, timing, None, how)
        if cells == 256:
            demand = f"whole run, {cells}^2, wall, {_threads(threads)}"
            report.checks.append(_at_most(demand, min(timing.wall), 5.0, "s"))
    if {256, 512} <= set(found):
        ratio = found[512][0].best(threads) / found[256][0].best(threads)
        report.checks.append(_at_most(f"cost(512^2) / cost(256^2), {_threads(threads)}", ratio, 9.0, "times"))


def _enter_cost(
    report: Report, what: str, cells: int, threads: int, timing: Timing, copy: Timing | None, how: str
) -> None:
    best = timing.best(threads)
    copies = "" if copy is None else number(best / copy.best(threads))
    report.rows.append(
        (
            what, _squared(cells), str(threads), seconds(best), number(1e9 * best / cells**2), copies,
            f"{timing.cores:.2f}", how,
        )
    )  # fmt: skip
    report.raw[f"{what}, {cells}^2, {_threads(threads)}"] = {"wall": timing.wall, "cpu": timing.cpu}


def _enter_peer(report: Report, name: str, threads: int, timing: Timing, cells: int, stages: int, how: str) -> None:
    best = timing.best(threads)
    each = 1e9 * best / cells**2
    row = (name, str(threads), seconds(best), number(each), number(each / stages), f"{timing.cores:.2f}", how)
    report.rows.append(row)
    report.raw[f"{name}, {_threads(threads)}"] = {"wall": timing.wall, "cpu": timing.cpu}


def _best_of(options: Options, function: Any, cells: int, threads: int) -> tuple[Timing, Timing, str]:
    """All rounds together: a machine is not equally busy all the time."""
    turns = [in_child(function, cells, threads, options.effort, threads=threads) for _ in range(options.effort.rounds)]
    timing, copy, how = turns[0]
    for other, other_copy, _ in turns[1:]:
        timing, copy = timing + other, copy + other_copy
    return timing, copy, how


def _alone(options: Options, function: Any, *arguments: Any) -> Any:
    return in_child(function, *arguments, threads=max(options.threads))


def _coarser(options: Options, *sizes: int) -> tuple[int, ...]:
    """The sizes; without the last one in a quick run."""
    return sizes[:-1] if options.quick else sizes


def _at_most(demand: str, measured: float, limit: float, unit: str = "") -> Check:
    return Check(demand, measured, limit, at_least=False, unit=unit)


def _order(pair: tuple[int, int], errors: dict[int, float]) -> float:
    coarse, fine = pair
    return math.log(errors[coarse] / errors[fine]) / math.log(fine / coarse)


def _order_to(before: dict[str, Any] | None, entry: dict[str, Any], name: str) -> str:
    if before is None or not before[name] > 0 or not entry[name] > 0:
        return ""
    return f"{_order((before['cells'], entry['cells']), {e['cells']: e[name] for e in (before, entry)}):.2f}"


def _squared(cells: int) -> str:
    return f"{cells}^2"


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


if __name__ == "__main__":
    run(__doc__.splitlines()[0], JOBS, PACKAGES, "without the finest grids, few repetitions")
