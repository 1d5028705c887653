"""The sections of a report: what was solved, how far to trust it, pictures, numbers, and how to repeat and cite it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from vlasov.cases.equations import in_words
from vlasov.errors import InputError, SolverError
from vlasov.postprocess.citing import cite
from vlasov.postprocess.registry import kind_of
from vlasov.postprocess.report import casefile, panels, trust
from vlasov.postprocess.report.elements import Parts, code, escaped, facts, group, paragraph
from vlasov.postprocess.report.repeating import repeated
from vlasov.postprocess.report.scene import said_of, scene
from vlasov.postprocess.report.sources import Source
from vlasov.solvers.dataset import RUN, kept_problem, tell_apart
from vlasov.solvers.progress import part, reached

_PROBLEMS, _PICTURES = 0.05, 0.4  # shares of the time that are over when problems, and pictures, are written


def write(parts: Parts, given: Sequence[Source]) -> None:
    """All sections: runs first, side by side where they are several, then everything else."""
    runs = [one for one in given if one.kind == RUN.name]
    if runs:
        _problems(parts, runs)
        reached("solutions in time", _PROBLEMS)
        _pictures(parts, runs)
        _trust(parts, runs)
        if len(runs) > 1:
            reached("distances", _PICTURES)
            with part(_PICTURES, 1 - _PICTURES):
                _side_by_side(parts, runs)
        _numbers(parts, runs)
    for one in given:
        if one.kind != RUN.name:
            _study(parts, one, alone=len(given) == 1)
    _making(parts, given)


def _heading(parts: Parts, title: str) -> None:
    parts.body.append(f"<h2>{escaped(title)}</h2>")


def _problems(parts: Parts, given: Sequence[Source]) -> None:
    """Each different problem once, in words and as a case file."""
    _heading(parts, "The problem")
    different = dict[str, Source]()
    for source in given:
        different.setdefault(str(source.dataset.attrs.get("problem", "")), source)
    for source in different.values():
        _problem(parts, source, name=len(different) > 1)


def _problem(parts: Parts, one: Source, *, name: bool) -> None:
    found = kept_problem(one.dataset)
    if name:
        parts.body.append(f"<h3>{escaped(one.title)}</h3>")
    if found is None:
        parts.body.append(paragraph("The problem is not in the file: one of its parameters was a Python function."))
        return
    parts.body.append(facts(in_words(found)))
    text = casefile.case_file(one.dataset)
    if len(text) > casefile.LONGEST:
        said = f"As a case file the problem has {len(text):,} letters, too many for this page; the run's file holds it."
        parts.body.append(paragraph(said, "note"))
        return
    inner = code(text, f"{casefile.case_name(one.dataset)}.toml")
    parts.body.append(f"<details><summary>As a case file (TOML)</summary>{inner}</details>")


def _trust(parts: Parts, runs: Sequence[Source]) -> None:
    _heading(parts, "How far to trust it")
    for one, name in zip(runs, tell_apart([one.dataset for one in runs]), strict=True):
        if len(runs) > 1:
            parts.body.append(f"<h3>{escaped(name)} {trust.badge(one.dataset)}</h3>")
        parts.body.append(trust.section(one.dataset))


def _pictures(parts: Parts, runs: Sequence[Source]) -> None:
    """Solutions at one time, under one slider."""
    _heading(parts, "The solution in time")
    made, notes, titles = [], [], [f"Solver {runs[0].dataset.attrs.get('solver', '')}"]
    if len(runs) > 1:
        titles = tell_apart([run.dataset for run in runs])
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
    try:
        found = compare(*(one.dataset for one in runs))
    except (InputError, SolverError) as mistake:
        parts.body.append(paragraph(f"They cannot be compared: {mistake}.", "note"))
        return
    if found.attrs.get("doubt"):
        parts.body.append(paragraph(f"{found.attrs['doubt']}.", "doubt"))
    parts.body.append(panels.section(parts, found))


def _numbers(parts: Parts, runs: Sequence[Source]) -> None:
    """Curves and the table of each run."""
    for one, name in zip(runs, tell_apart([one.dataset for one in runs]), strict=True):
        _heading(parts, "Moments, errors and estimates" + (f": {name}" if len(runs) > 1 else ""))
        parts.body.append(panels.section(parts, one.dataset))


def _study(parts: Parts, one: Source, *, alone: bool) -> None:
    """A study, a comparison, or what else was made of runs."""
    kind = kind_of(one.dataset)
    title = kind.title if kind is not None and kind.title else one.kind.capitalize()
    _heading(parts, title if alone else f"{title}: {one.title}")
    parts.body.append(trust.section(one.dataset))
    parts.body.append(panels.section(parts, one.dataset))
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
        lines = repeated(one)
        parts.body.append(code(lines) if lines else paragraph("The file does not hold all that repeats it.", "note"))
    _heading(parts, "What to cite")
    for text in dict.fromkeys(_citation(one.dataset) for one in given):
        parts.body.append(code(text))


def _citation(dataset: xr.Dataset) -> str:
    """What to cite: BibTeX, or the one sentence of the file where its problem is not known."""
    try:
        return cite(dataset)
    except InputError:
        return str(dataset.attrs.get("citation", "vlasov"))
