"""A comparison as a picture: the solutions over each other, and below how far they are apart over time.

A solver has one colour wherever it is drawn, and so has a pair; the legends below the panels name both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from vlasov.checks import Array
from vlasov.postprocess.drawing.covariances import eigenvalues, ellipses
from vlasov.postprocess.drawing.legible import at_least_two, legend_inside
from vlasov.postprocess.drawing.paper import Width, fitting
from vlasov.postprocess.drawing.snapshots import SNAPSHOT, is_overlay, snapshots
from vlasov.postprocess.drawing.style import (
    END,
    INK,
    PALE,
    PALETTE,
    TOKEN,
    entitle,
    legend_below,
    new_figure,
    say_below,
    styled,
)
from vlasov.postprocess.stability import LARGEST, written
from vlasov.postprocess.studies.rates import rms
from vlasov.solvers.dataset import require

_PANEL = 2.1  # inches of a panel in print, at least
_DRAWABLE = 1e200
_ELLIPSES = 4  # of each solution
_DASHES = ("-", "--", "-.", ":")
_LETTERS = 6.0  # points, of legends in panels
_SAMPLE = 3.2  # lengths of letters: dashes can be told apart
_OF_SOLVER = {"particles": TOKEN, "finite-volume": END}  # as in snapshots
_OTHERS, _PAIRS = (PALETTE[2], PALETTE[4], PALETTE[5]), (PALETTE[3], PALETTE[6], PALE)
_REACH = 1e4  # times the largest ratio: bounds beyond are told, not drawn


@styled
def draw(
    comparison: xr.Dataset, datasets: Sequence[xr.Dataset], study: xr.Dataset | None = None, *, width: Width = None
) -> Figure:
    """Densities or tokens, or ellipses of Gaussians; below, distances, errors of moments, and radii with their bound.

    Above, a density with tokens over it; else the first solution alone; with a Gaussian solution, or on the line, the
    covariances of all. Of solutions from different initial data, the growth of their distance and its bounds take the
    place of moments. With a mean-field study, its errors against n take the place of the radii. A panel that nothing is
    known for is left out.
    """
    from vlasov.postprocess.compare import COMPARISON

    require(comparison, COMPARISON, "comparison")
    by_solver = {str(dataset.attrs["solver"]): dataset for dataset in datasets}
    pair = [by_solver[name] for name in ("finite-volume", "particles") if name in by_solver]
    times = comparison["time"].values
    shown = times[np.unique(np.linspace(0, times.size - 1, min(4, times.size)).round().astype(int))]
    stable = comparison.attrs.get("initial") == "different"
    overlay = not stable and len(pair) == 2 and is_overlay(pair)
    figure = new_figure(9.0, 6.4)
    narrow = fitting(3, _PANEL) == 1
    if narrow:
        figure.set_figheight(9.4)  # no more than a page
    rows = figure.add_gridspec(2, 1, height_ratios=(1.15 if not narrow else 2.0, 3.0 if narrow else 1.0))
    if overlay or _all_are_pictured(datasets):
        panels = _panels(figure, rows[0], shown.size, SNAPSHOT)
        measures = [dataset.sel(time=times) for dataset in (pair if overlay else datasets[:1])]
        plane = (0, 1) if "density" in measures[0] else None
        snapshots(measures, times=shown, components=plane, axes=panels)
        if not overlay:
            panels[0].set_title(f"{comparison['solution'].values[0]}: {panels[0].get_title()}")
    else:
        _draw_covariances(figure, rows[0], datasets)
    drawn = _with_values(comparison, ["wasserstein", "growth" if stable else "moment_error", "radius"])
    drawn = [name for name in drawn if study is None or name != "radius"]
    panels = _panels(figure, rows[1], len(drawn) + (study is not None))
    for ax, name in zip(panels, drawn, strict=False):
        _DRAW[name](ax, comparison)
    if study is not None:
        _draw_study(panels[-1], study)
    lines = _add_legend(figure, comparison, solvers=overlay or "radius" in drawn)
    if doubtful := _doubtful(comparison):
        say_below(figure, f"Not to be trusted: {doubtful}.", above=lines + 1)
    entitle(figure, str(comparison.attrs["title"]))
    return figure


def _all_are_pictured(datasets: Sequence[xr.Dataset]) -> bool:
    """Whether all solutions in d > 1 hold tokens or a density: none is a Gaussian, which its covariance describes."""
    return all({"position", "density"} & set(one.data_vars) and one.sizes["component"] > 1 for one in datasets)


def _with_values(comparison: xr.Dataset, names: Sequence[str]) -> list[str]:
    """Return the names of the quantities with a positive number to draw; the moments if there are none."""

    def anything(name: str) -> bool:
        values = np.fmax(comparison[name].values, comparison.get(f"{name}_error", np.nan))
        return bool((np.isfinite(values) & (values > 0)).any())

    return [name for name in names if anything(name)] or ["moment_error"]


def _doubtful(comparison: xr.Dataset) -> str:
    """Names of the runs that doubt themselves."""
    doubts = str(comparison.attrs.get("doubt", "")).split("; ")
    names = map(str, comparison["solution"].values)
    return ", ".join(name for name in names if any(doubt.startswith(f"{name}: ") for doubt in doubts))


def _colours(comparison: xr.Dataset) -> dict[str, str]:
    """Of the solutions."""
    others = iter(_OTHERS)
    return {name: _OF_SOLVER.get(name) or next(others, INK) for name in map(str, comparison["solution"].values)}


def _add_legend(figure: Figure, comparison: xr.Dataset, *, solvers: bool) -> int:
    """One for all panels: solvers, then pairs; how many lines it has."""
    named = list(_colours(comparison).items()) if solvers else []
    entries = [Line2D([], [], color=colour, marker="o", ms=4, label=name) for name, colour in named]
    for i, pair in enumerate(comparison["pair"].values):
        entries.append(Line2D([], [], color=_PAIRS[i % len(_PAIRS)], lw=2, label=str(pair)))
    return legend_below(figure, entries)


def _panels(figure: Figure, place: SubplotSpec, count: int, least: float = _PANEL) -> list[Axes]:
    """So many panels, side by side where they have room."""
    across = fitting(count, least)
    row = place.subgridspec(-(-count // across), across)
    return [figure.add_subplot(row[k]) for k in range(count)]


def _draw_covariances(figure: Figure, place: SubplotSpec, datasets: Sequence[xr.Dataset]) -> None:
    """Ellipses and eigenvalues side by side; on the line there are no ellipses."""
    on_line = datasets[0].sizes["component"] == 1
    panels = _panels(figure, place, 1 if on_line else 2)
    if not on_line:
        ellipses(list(datasets), count=_ELLIPSES, ax=panels[0])
    eigenvalues(list(datasets), ax=panels[-1])


def _draw_distances(ax: Axes, comparison: xr.Dataset) -> None:
    """Distances; where one is less than its error, a triangle that points down from the error."""
    times, unseen, drawn = comparison["time"].values, False, False
    for i in range(comparison.sizes["pair"]):
        meant = ~comparison["amplified"].values[i]
        for k in range(comparison.sizes["p"]):
            values, errors = (comparison[name].values[i, :, k] for name in ("wasserstein", "wasserstein_error"))
            seen = values > errors
            colour, dash = _PAIRS[i % len(_PAIRS)], _DASHES[k % len(_DASHES)]
            heights = np.where(meant, _drawable(np.where(seen, values, errors)), np.nan)
            ax.plot(times, heights, color=colour, ls=dash)
            below = ~seen & meant & (errors > 0)
            ax.plot(times[below], _drawable(errors[below]), "v", color=colour, ms=4, mfc="none")
            unseen, drawn = unseen or bool(below.any()), drawn or bool((heights > 0).any())
    for k, order in enumerate(comparison["p"].values):
        ax.plot([], [], color=INK, ls=_DASHES[k % len(_DASHES)], label=f"$W_{{{order:g}}}$")
    if unseen:
        ax.plot([], [], "v", color=INK, ms=4, mfc="none", label="unresolved: at most")
    if comparison["amplified"].values.any():
        since = times[comparison["amplified"].values.any(axis=0)].min()
        ax.axvline(since, color=PALE, ls=":", label="amplified from here on")
    _decimal(ax, "distance", drawn=drawn)
    legend_inside(ax, points=_LETTERS, handlelength=_SAMPLE)


def _decimal(ax: Axes, name: str, *, drawn: bool) -> None:
    """A logarithmic axis against time, with numbers at powers of ten, two of them at least; linear without values."""
    ax.set(xlabel="time $t$", ylabel=name)
    if not drawn:
        return
    ax.set_yscale("log")
    low, high = np.log10(ax.get_ylim())
    low, high = np.floor(low + 1e-9), np.ceil(high - 1e-9)
    if low >= high:  # one value, which is a power of ten
        low, high = low - 1, low + 1
    ax.set_ylim(10.0**low, 10.0**high)
    ax.yaxis.set_major_locator(LogLocator(numticks=7))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _drawable(values: Array) -> Array:
    """Without numbers that a logarithmic axis cannot place."""
    return np.where((values < _DRAWABLE) & (values > 0), values, np.nan)


def _draw_moments(ax: Axes, comparison: xr.Dataset) -> None:
    times = comparison["time"].values
    for i in range(comparison.sizes["pair"]):
        for k, order in enumerate(comparison["order"].values):
            values = _drawable(np.maximum(comparison["moment_error"].values[i, :, k], 1e-17))
            values = np.where(comparison["amplified"].values[i], np.nan, values)
            label = f"order {order}" if i == 0 else None
            ax.plot(times, values, color=_PAIRS[i % len(_PAIRS)], ls=_DASHES[k], label=label)
    _decimal(ax, "error of moments", drawn=True)
    legend_inside(ax, points=_LETTERS, handlelength=_SAMPLE)


def _draw_growth(ax: Axes, comparison: xr.Dataset) -> None:
    """W_p(t) / W_p(0) for the largest p, with those bounds that are in reach; the others are told."""
    times, told = comparison["time"].values, []
    growth = comparison["growth"].values[..., -1]
    for i in range(comparison.sizes["pair"]):
        ax.plot(times, _drawable(growth[i]), color=_PAIRS[i % len(_PAIRS)])
    top = min(_REACH * float(np.nanmax(growth, initial=1.0, where=np.isfinite(growth))), LARGEST)
    order = f"W_{{{comparison['p'].values[-1]:g}}}"
    known = "bounded" not in comparison or bool(comparison["bounded"].values[:, -1].all())
    if "optimal_growth" in comparison:
        _draw_local(ax, comparison, top)
    bounds = {
        "a-posteriori estimate": comparison["log_a_posteriori"].values,
        "a-priori bound": comparison["log_a_priori"].values[None],
    }
    for (name, each), dash in zip(bounds.items(), _DASHES[1:], strict=False):
        exponents = np.where(np.isnan(each).all(axis=0), np.nan, np.fmax.reduce(each))
        if not (known and np.isfinite(exponents).any()):
            continue
        values = np.exp(np.minimum(exponents, 600.0))
        if (values[1:] < top).any():
            ax.plot(times, np.where(values < top, values, np.nan), color=INK, ls=dash, label=name)
        if not values[-1] < top:
            told.append(f"{name} at the end: {written(float(exponents[-1]))}")
    for words in told:
        ax.plot([], [], " ", label=words)
    _decimal(ax, f"${order}(t)\\,/\\,{order}(0)$", drawn=bool((growth > 0).any()))
    legend_inside(ax, points=_LETTERS, handlelength=_SAMPLE)


def _draw_local(ax: Axes, comparison: xr.Dataset, top: float) -> None:
    """The largest growth of small differences, and what bounds it; paler where solutions are farther apart."""
    times, words = comparison["time"].values, " (local)" if comparison["far"].values.any() else ""
    optimal = comparison["optimal_growth"].values
    if "among_gaussians" in comparison and bool(comparison["among_gaussians"].all()):
        words = f" among Gaussians{words}"
    shown = {
        f"optimal{words}": (np.fmax.reduce(optimal), END, "-"),
        rf"$\exp\int\lambda${words}": (
            np.exp(np.minimum(_largest(comparison, "log_logarithmic_norm"), 600.0)),
            END,
            "--",
        ),
        rf"$\exp\int|J|${words}": (np.exp(np.minimum(_largest(comparison, "log_norm"), 600.0)), END, ":"),
    }
    for label, (values, colour, dash) in shown.items():
        if np.isfinite(values).any():
            ax.plot(
                times, np.where(values < top, _drawable(values), np.nan), color=colour, ls=dash, lw=1.0, label=label
            )


def _largest(comparison: xr.Dataset, name: str) -> Array:
    """Of all pairs."""
    found: Array = np.fmax.reduce(comparison[name].values)
    return found


def _draw_radii(ax: Axes, comparison: xr.Dataset) -> None:
    times, largest = comparison["time"].values, 0.0
    for i, (name, colour) in enumerate(_colours(comparison).items()):
        radii = comparison["radius"].values[i]
        if np.isfinite(radii).any():
            ax.plot(times, _drawable(radii), color=colour, label=f"_{name}")
            largest = max(largest, float(np.nanmax(_drawable(radii), initial=0.0)))
    limit = comparison["radius_bound"].values
    if np.isfinite(limit).any() and largest > 0:
        shown = np.where(limit < _REACH * largest, limit, np.nan)
        ax.plot(times, _drawable(shown), color=INK, ls="--", label=r"$R_0\, e^{\int |V|}$")
    _decimal(ax, "radius of the support", drawn=largest > 0)
    legend_inside(ax, points=_LETTERS)


def _draw_study(ax: Axes, study: xr.Dataset) -> None:
    """Root mean squares over replicas at the last time, for the largest p, with the slope that independence gives."""
    n = study["n"].values
    for i, (name, label) in enumerate((("coupled", "coupled distance"), ("wasserstein", "Wasserstein distance"))):
        if name not in study:
            continue
        values = study[name].isel(time=-1, p=-1, sampling=0)
        errors = rms(values.transpose("n", "replica").values)
        ax.plot(n, errors, "o-", color=PALETTE[i], label=f"{label}, $p$ = {float(study['p'][-1]):g}")
        if i == 0:
            ax.plot(n, 0.7 * errors[0] * (n / n[0]) ** -0.5, color="0.5", ls="--", label="$n^{-1/2}$")
    ax.set(xlabel="number of tokens $n$", ylabel="to the mean-field limit", xscale="log", yscale="log")
    legend_inside(ax, points=_LETTERS)
    at_least_two(ax.xaxis)
    at_least_two(ax.yaxis)


_DRAW = {
    "wasserstein": _draw_distances,
    "growth": _draw_growth,
    "moment_error": _draw_moments,
    "radius": _draw_radii,
}
