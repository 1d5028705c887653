"""The sections of a report: what was solved, how far to trust it, pictures, numbers, and how to repeat and cite it."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from vlasov.errors import InputError, SolverError
from vlasov.postprocess.report import casefile, curves, others, studies, trust, words
from vlasov.postprocess.report.elements import (
    Parts,
    charts,
    code,
    details,
    escaped,
    facts,
    group,
    paragraph,
    table,
)  # fmt: skip
from vlasov.postprocess.report.scene import said_of, scene
from vlasov.postprocess.report.sources import Source
from vlasov.problem import Problem
from vlasov.solvers.dataset import (
    BEYOND,
    COMPARISON,
    DEPTH,
    ENERGIES,
    LIPSCHITZ,
    RUN,
    SENSITIVITY,
    STUDY,
    SWEEP,
    problem_of,
)  # fmt: skip

_OF_KIND: dict[str, tuple[str, Callable[[Parts, xr.Dataset], str]]] = {
    STUDY: ("How fast n tokens approach the limit", studies.of_mean_field),
    DEPTH: ("How fast L layers approach the flow", studies.of_depth),
    LIPSCHITZ: ("How rough attention is on n tokens", studies.of_lipschitz),
    SWEEP: ("A case for many values of its parameters", studies.of_sweep),
    COMPARISON: ("How far solutions are apart", others.of_comparison),
    ENERGIES: ("Energies", others.of_energies_alone),
    SENSITIVITY: ("How much small changes grow", others.of_sensitivity),
    BEYOND: ("How far from Gaussian", others.of_gaussian_match),
}
_COMMANDS = {
    STUDY: "vlasov converge {case}.toml --n {n} --replicas {replicas} --p {p} --sampling {sampling}",
    DEPTH: "vlasov depth {case}.toml --depths {depth} --replicas {replicas}",
    LIPSCHITZ: "vlasov lipschitz {case}.toml --n {n} --replicas {replicas}",
    SENSITIVITY: "vlasov sensitivity {case}.toml",
}


def write(parts: Parts, given: Sequence[Source]) -> None:
    """All sections: runs first, side by side where they are several, then everything else."""
    runs = [one for one in given if one.kind == RUN]
    if runs:
        _problems(parts, runs)
        _pictures(parts, runs)
        _trust(parts, runs)
        if len(runs) > 1:
            _side_by_side(parts, runs)
        _numbers(parts, runs)
    for one in given:
        if one.kind != RUN:
            _study(parts, one, alone=len(given) == 1)
    _making(parts, given)


def problem(source: Source) -> Problem | None:
    """The problem, if it was kept and can be built again."""
    try:
        return problem_of(source.dataset)
    except (InputError, TypeError):
        return None


def called(given: Sequence[Source]) -> list[str]:
    """Names of several runs that tell them apart: solvers, else titles, else files."""
    options = ([str(one.dataset.attrs.get("solver", "")) for one in given], [one.title for one in given],
               [one.name for one in given])  # fmt: skip
    for names in options:
        if len(set(names)) == len(names) and all(names):
            return names
    return [f"{one.dataset.attrs.get('solver', one.title)} ({k})" for k, one in enumerate(given, 1)]


def _heading(parts: Parts, title: str) -> None:
    parts.body.append(f"<h2>{escaped(title)}</h2>")


def _problems(parts: Parts, given: Sequence[Source]) -> None:
    """Each different problem once, in words and as a case file."""
    seen: list[str] = []
    _heading(parts, "The problem")
    for one in given:
        text = str(one.dataset.attrs.get("problem", ""))
        if text in seen:
            continue
        seen.append(text)
        _problem(parts, one, name=len({str(o.dataset.attrs.get("problem", "")) for o in given}) > 1)


def _problem(parts: Parts, one: Source, *, name: bool) -> None:
    found = problem(one)
    if name:
        parts.body.append(f"<h3>{escaped(one.title)}</h3>")
    if found is None:
        parts.body.append(paragraph("The problem is not in the file: one of its parameters was a Python function."))
        return
    parts.body.append(facts(words.told(found)))
    text = casefile.case_file(one.dataset)
    if len(text) > casefile.LONGEST:
        said = f"As a case file the problem has {len(text):,} letters, too many for this page; the run's file holds it."
        parts.body.append(paragraph(said, "note"))
        return
    inner = code(text, f"{casefile.case_name(one.dataset)}.toml")
    parts.body.append(details("As a case file (TOML)", inner))


def _trust(parts: Parts, runs: Sequence[Source]) -> None:
    _heading(parts, "How far to trust it")
    for one, name in zip(runs, called(runs), strict=True):
        if len(runs) > 1:
            parts.body.append(f"<h3>{escaped(name)} {trust.badge(one.dataset)}</h3>")
        parts.body.append(trust.section(one.dataset))


def _pictures(parts: Parts, runs: Sequence[Source]) -> None:
    """Solutions at one time, under one slider."""
    _heading(parts, "The solution in time")
    titles = called(runs) if len(runs) > 1 else [f"Solver {runs[0].dataset.attrs.get('solver', '')}"]
    made, notes = [], []
    for one, title in zip(runs, titles, strict=True):
        try:
            over = _over(one, runs)
            made.append(scene(one.dataset, title, share=len(runs), over=None if over is None else over.dataset))
            notes.append(said_of(made[-1]) + (f" Tokens: {titles[runs.index(over)]}." if over is not None else ""))
        except InputError as mistake:  # what a picture cannot show
            parts.body.append(paragraph(f"{title} has no picture: {mistake}.", "note"))
    if made:
        parts.body.append(group(parts, made, notes))


def _over(one: Source, runs: Sequence[Source]) -> Source | None:
    """Tokens of the same problem at the same times, to be drawn over a density."""
    if "density" not in one.dataset:
        return None
    for other in runs:
        same = other.dataset.attrs.get("problem") == one.dataset.attrs.get("problem")
        if "position" in other.dataset and same and np.array_equal(other.dataset["time"], one.dataset["time"]):
            return other
    return None


def _side_by_side(parts: Parts, runs: Sequence[Source]) -> None:
    """Distances between the runs, as vl.compare has them."""
    from vlasov.postprocess.compare import compare

    _heading(parts, "How far the solutions are apart")
    names = called(runs)
    rows = [[name, *(str(one.dataset.attrs.get(key, "")) for key in ("solver", "status")),
             float(one.dataset.attrs.get("error_estimate", float("nan"))),
             float(one.dataset.attrs.get("wall_seconds", float("nan")))]
            for one, name in zip(runs, names, strict=True)]  # fmt: skip
    parts.body.append(table(["run", "solver", "status", "estimated error", "seconds"], rows, "Runs"))
    try:
        found = compare(*(one.dataset for one in runs))
    except (InputError, SolverError) as mistake:
        parts.body.append(paragraph(f"They cannot be compared: {mistake}.", "note"))
        return
    if found.attrs.get("doubt"):
        parts.body.append(paragraph(f"{found.attrs['doubt']}.", "doubt"))
    parts.body.append(others.of_comparison(parts, found))


def _numbers(parts: Parts, runs: Sequence[Source]) -> None:
    """Curves and the table of each run."""
    for one, name in zip(runs, called(runs), strict=True):
        _heading(parts, "Moments, errors and estimates" + (f": {name}" if len(runs) > 1 else ""))
        parts.body.append(charts(parts, curves.of_run(one.dataset, problem(one))))
        parts.body.append(f"<h3>At output times</h3>{others.of_moments(one.dataset)}")


def _study(parts: Parts, one: Source, *, alone: bool) -> None:
    """A study, a comparison, or what else was made of runs."""
    title, draw = _OF_KIND.get(one.kind, (one.kind.capitalize(), others.of_any))
    _heading(parts, title if alone else f"{title}: {one.title}")
    parts.body.append(trust.section(one.dataset))
    parts.body.append(draw(parts, one.dataset))
    if rows := others.solvers_of(one.dataset):
        parts.body.append(f"<h3>Solutions</h3>{facts(rows)}")
    if one.dataset.attrs.get("problem"):
        _heading(parts, "The problem" if alone else f"The problem: {one.title}")
        _problem(parts, one, name=False)


def _making(parts: Parts, given: Sequence[Source]) -> None:
    """Options, the command that repeats it, and what to cite."""
    _heading(parts, "How it was made, and how to repeat it")
    for one in given:
        if len(given) > 1:
            parts.body.append(f"<h3>{escaped(one.name or one.title)}</h3>")
        parts.body.append(facts(trust.options(one.dataset)))
        command = repeated(one)
        if command:
            parts.body.append(code(command))
    _heading(parts, "What to cite")
    for text in dict.fromkeys(citation(one.dataset) for one in given):
        parts.body.append(code(text))


def repeated(one: Source) -> str:
    """The commands that make a Dataset again, with the case file of this page."""
    attrs, name = one.dataset.attrs, casefile.case_name(one.dataset)
    text = casefile.case_file(one.dataset) if problem(one) is not None else ""
    if one.kind == RUN and text and len(text) <= casefile.LONGEST:
        saved = f"# with the case file above, saved as {name}.toml\n"
        return saved + f"vlasov run {name}.toml --solver {shlex.quote(str(attrs['solver']))} -o again.nc"
    if one.kind == RUN and text:
        return (
            "import json\nimport vlasov as vl\n\n"
            f"run = vl.open_run({(one.name or 'run.nc')!r})\nproblem = vl.Problem.from_json(run.attrs['problem'])\n"
            "options = json.loads(run.attrs['options'])\n"
            "again = vl.solve(problem, run.attrs['solver'], times=run['time'].values, **options)"
        )
    if one.kind in _COMMANDS and text and len(text) <= casefile.LONGEST:
        named = [dim for dim in ("n", "depth", "p", "sampling") if dim in one.dataset.dims and dim in one.dataset]
        sizes = {dim: ",".join(map(_short, one.dataset[dim].values)) for dim in named}
        filled = _COMMANDS[one.kind].format(
            case=shlex.quote(name), replicas=one.dataset.sizes.get("replica", 1), **sizes
        )
        return f"# with the case file above, saved as {name}.toml\n{filled}"
    return ""


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float | np.number) else shlex.quote(str(value))


def citation(dataset: xr.Dataset) -> str:
    """What to cite: ``vl.cite`` where it is there, else the one sentence of the file."""
    try:
        return str(importlib.import_module("vlasov.postprocess.citing").cite(dataset))
    except (ImportError, InputError):
        return str(dataset.attrs.get("citation", "vlasov"))
