"""Reports: one HTML file that shows a run, a study or a comparison to someone who has only a browser.

``sources`` takes Datasets and files; ``sections`` writes the page's sections, of ``casefile``, ``trust``,
``scene`` (on ``densities`` and ``packing``), ``panels`` and ``repeating``; ``elements``
escapes all of it, and ``page`` joins it with the scripts in ``assets``, all that runs in it: nothing is loaded, no
network needed. ``gallery`` makes a folder of reports. Called by ``vl.report`` and ``vlasov report``.
"""

from __future__ import annotations

import html
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import xarray as xr

from vlasov.errors import InputError
from vlasov.postprocess.report import sections, trust
from vlasov.postprocess.report.elements import Parts, escaped
from vlasov.postprocess.report.page import VERSION, whole_page
from vlasov.postprocess.report.sources import Source, opened
from vlasov.solvers.dataset import RUN
from vlasov.solvers.files import as_path, write_text
from vlasov.solvers.targets import check_place

__all__ = ["Report", "report"]

SUFFIXES = (".html", ".htm")
_HEIGHT = 760  # pixels of a report in a notebook


@dataclass(frozen=True)
class Report:
    """A report: it shows itself in a notebook, and ``save`` writes it.

    Attributes
    ----------
    title
        What it is about.
    html
        The whole page.

    Examples
    --------
    >>> page = vl.report(vl.solve("gaussian-collapse", "gaussian"))
    >>> page.save("collapse.html").name, "<script src" in page.html  # it loads nothing
    ('collapse.html', False)
    """

    title: str
    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it to an .html file, whole or not at all."""
        target = checked_target(path)
        write_text(target, self.html, "path")
        return target

    def _repr_html_(self) -> str:
        """The page in a frame of its own, which can touch nothing of the notebook."""
        frame = f'sandbox="allow-scripts allow-downloads" width="100%" height="{_HEIGHT}" style="border: 0"'
        return f'<iframe title="{escaped(self.title)}" {frame} srcdoc="{html.escape(self.html, quote=True)}"></iframe>'


def report(*runs: xr.Dataset | str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> Report:
    """Return one HTML page that shows runs, studies or comparisons, and that opens without a network.

    Parameters
    ----------
    runs
        Datasets of ``vl.solve``, a study or ``vl.compare``, or paths of their files. Several runs stand side by side,
        with their distances as ``vl.compare`` has them.
    path
        An .html file to write, too.

    Returns
    -------
    Report
        It shows itself in a notebook; ``html`` is the page, ``save(path)`` writes it.

    Examples
    --------
    >>> import vlasov as vl
    >>> vl.report(vl.solve("gaussian-collapse", "gaussian"))
    Report(title='Gaussian collapse')
    """
    target = None if path is None else checked_target(path)
    made = of_sources(opened(runs))
    if target is not None:
        made.save(target)
    return made


def of_sources(given: list[Source], origin: str = "") -> Report:
    """The report of what was opened already; the page says the origin."""
    title, parts = _title(given), Parts()
    parts.body.append(f"<h1>{escaped(title)}</h1>{_lead(given)}")
    sections.write(parts, given)
    footer = f"Written by vlasov {escaped(VERSION)}. This page holds all that it shows and loads nothing."
    return Report(title, whole_page(title, parts, footer, origin))


def checked_target(path: str | os.PathLike[str]) -> Path:
    """Where a report can be written."""
    target = as_path(path, "path")
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f'"{target}" must end in .html', "path")
    check_place(target)
    return target


def _title(given: list[Source]) -> str:
    titles = list(dict.fromkeys(source.title for source in given))
    return titles[0] if len(titles) == 1 else f"{titles[0]}, and {len(titles) - 1} more"


def _lead(given: list[Source]) -> str:
    """One line below the title: the kind and how it ended."""
    first, badge = given[0], ""
    if len(given) > 1:
        counts = Counter(source.kind for source in given).items()
        words = " and ".join(f"{count} {_several(kind)}" if count > 1 else f"one {kind}" for kind, count in counts)
    elif first.kind != RUN.name:
        day = str(first.dataset.attrs.get("created", ""))[:10]
        words = first.kind + f", made on {day}" * bool(day) + "."
    else:
        times, badge = first.dataset["time"].values, trust.badge(first.dataset)
        words = f"A run by the solver {first.dataset.attrs.get('solver', '?')}, "
        words += f"d = {first.dataset.sizes['component']}, {times.size} output times up to t = {times[-1]:.6g}."
    return f'<p class="lead">{badge}{escaped(words[:1].upper() + words[1:])}</p>'


def _several(kind: str) -> str:
    """Return the plural of a kind."""
    return kind if kind.endswith("s") else f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
