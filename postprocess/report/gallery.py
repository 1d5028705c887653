"""The gallery of one's own cases: a folder with a report for each case file, and a page that leads to them.

A folder and not one file: a report may have eight megabytes, and a reader opens few of many. Runs in the folder of the
cases that solve a case's problem as it stands now are shown, together where they are several; a case without any is
solved by its first solver, and the run is kept beside its report.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import xarray as xr

from vlasov.cases import Case, load_case
from vlasov.cases.solving import solve, task
from vlasov.errors import InputError, SolverError
from vlasov.postprocess.report import Report, of_sources, trust
from vlasov.postprocess.report.elements import Parts, escaped, paragraph
from vlasov.postprocess.report.page import whole_page
from vlasov.postprocess.report.sources import Source, opened
from vlasov.problem import Problem
from vlasov.solvers.dataset import RUN, kept_problem
from vlasov.solvers.targets import check_target, origin

_INDEX = "index.html"
_MOST = 240  # letters of a description


def gallery(folder: Path, target: Path, say: Callable[[str], None] = print, *, overwrite: bool = False) -> list[Path]:
    """Write reports of all case files in a folder to another; return the paths of the index and of each report."""
    if not folder.is_dir():
        raise InputError(f'"{folder}" is not a folder; give one with case files', "--all-cases")
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise InputError(f'"{folder}" holds no case files (.toml); "vlasov copy" gives you one', "--all-cases")
    cases = [_loaded(file) for file in files]  # complained about before any work
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f'"{target}" cannot be made: {error.strerror}', "--output") from None
    for name in (_INDEX, *map(_page, cases)):
        check_target(target / name, _origin(name), overwrite=overwrite)
    runs, cards, written = _runs(folder, target), [], []
    for case in cases:
        page, title, badges, trouble = _page(case), escaped(case.title), "", ""
        try:
            sources = _of_case(case, runs, target, say, overwrite=overwrite)
            written.append(of_sources(sources, _origin(page)).save(target / page))
            title = f'<a href="{escaped(quote(page))}">{title}</a>'
            badges = "".join(trust.badge(source.dataset) for source in sources)
        except SolverError as failure:
            say(f"{case.name}: {failure}")
            trouble = paragraph(f"The run failed: {failure}", "doubt")
        cards.append(f"<li><h3>{title}</h3>{badges}{paragraph(_beginning(case.description))}{trouble}</li>")
    title, footer = f"Cases in {folder.resolve().name}", "Written by vlasov report --all-cases."
    parts = Parts(body=[f"<h1>{escaped(title)}</h1>", f'<ul class="cases">{"".join(cards)}</ul>'])
    index = Report("Cases", whole_page(title, parts, footer, _origin(_INDEX)))
    return [index.save(target / _INDEX), *written]


def _loaded(file: Path) -> Case:
    """A case, of which a complaint names the file."""
    try:
        return load_case(file)
    except InputError as mistake:
        raise InputError(f'{mistake}, in "{file}"', "--all-cases") from None


def _page(case: Case) -> str:
    """The name of its report, which is not that of the page of all."""
    return f"{case.name}-case.html" if f"{case.name}.html" == _INDEX else f"{case.name}.html"


def _origin(page: str) -> str:
    """A page is made anew whenever its case has changed."""
    return origin("report", page)


def _runs(*folders: Path) -> list[Source]:
    """Runs in the folders, each file once; what is no run of ours is passed over."""
    found = []
    for file in dict.fromkeys(file.resolve() for folder in folders for file in sorted(folder.glob("*.nc"))):
        try:
            found += opened(file)
        except InputError:
            continue
    return [one for one in found if one.kind == RUN.name]


def _of_case(
    case: Case, runs: list[Source], target: Path, say: Callable[[str], None], *, overwrite: bool
) -> list[Source]:
    """The runs of a case, or one made now."""
    known = [one for one in runs if _solves(one.dataset, case.problem)]
    if known:
        say(f"{case.name}: {', '.join(one.name for one in known)}")
        return known
    solver = task(case).solver
    file = target / f"{case.name}-{solver}.nc"
    say(f"{case.name}: no run of it in the folder; solving it by {solver}")
    solve(case, output=file, overwrite=overwrite, warn_above=math.inf)
    return opened(file)


def _solves(run: xr.Dataset, problem: Problem) -> bool:
    """Return whether a run is of this problem, whatever it is called."""
    kept = kept_problem(run)
    return kept is not None and kept.changed(name=problem.name) == problem


def _beginning(text: str) -> str:
    """Return the words that the page of all has room for."""
    return text if len(text) < _MOST else text[:_MOST].rsplit(" ", 1)[0] + " …"
