"""How a comparison is shown: panels, tables and notes, and the picture with the solutions above its panels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.kinds import TRANSPORT, Kind
from vlasov.postprocess.panels import Curve, Panel, Table, panels_of, spread
from vlasov.postprocess.stability import SETTLED, bound_curve, written
from vlasov.solvers.dataset import require, table_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

    from vlasov.postprocess.drawing.paper import Width

_NAMES = {
    "wasserstein": "Wasserstein distance W_p of the two",
    "wasserstein_error": "estimated error of the distance",
    "moment_error": "largest difference of moments, in standard deviations of the first",
    "density_error": "difference of the densities in L1",
    "density_error_uncertainty": "uncertainty of that difference, where tokens carry their density",
    "difference": "relative difference of the densities at tokens, rho' / rho - 1",
    "difference_position": "positions of these tokens",
    "coupled": "distance in L^p of tokens from where the velocity of the other solution moves them",
    "coupled_error": "uncertainty of that distance",
    "mean_error": "difference of the means, in standard deviations of the first",
    "covariance_error": "difference of the covariances, relative to the first",
    "growth": "W_p(t) / W_p(0), where both are above their errors",
    "bounded": "whether the estimates of the theory hold for this order",
    "radius": "largest distance from the origin in the support",
    "radius_bound": "bound of the radius by the theory",
    "amplified": "whether instability alone explains the difference",
    "log_a_posteriori": "logarithm of the a-posteriori estimate of the growth",
    "log_a_posteriori_error": "uncertainty of that logarithm, from every second output time",
    "log_a_priori": "logarithm of the a-priori bound of the growth",
    "optimal_growth": "largest growth of small differences",
    "optimal_error": "estimated error of the largest growth",
    "log_logarithmic_norm": "integral of the logarithmic norm, which bounds the growth",
    "log_norm": "integral of the norm of the derivative, which bounds the growth",
    "far": "whether the two are too far apart for small differences",
}
_DASHES = ("-", "--", "-.", ":")
_ROUNDING = 1e-6
_LARGEST = 1e200  # value of a curve that is drawn
_AMPLIFIED = "amplified"
_RATES = {"log_logarithmic_norm": "exp ∫λ", "log_norm": "exp ∫|J|"}
_BOUNDS = {"log_a_posteriori": "a-posteriori estimate", "log_a_priori": "a-priori bound"}
_DIFFERENCES = {"mean_error": "mean", "covariance_error": "cov.", "density_error": "density", "moments": "moments"}
_TIMES = 4  # snapshots and ellipses
_PANEL = 2.1  # inches of a panel in print, at least


def _is_different(comparison: xr.Dataset) -> bool:
    return comparison.attrs.get("initial") == "different"


def _drawable(values: Array) -> Array:
    return np.where(np.abs(values) < _LARGEST, values, np.nan)


def _panel(title: str, curves: Sequence[Curve], y: str = "", note: str = "") -> Panel:
    """Return a panel over time, logarithmic if there is anything above zero."""
    return Panel(title, "t", curves, y, logy=any((curve.y > 0).any() for curve in curves), note=note)


def _since(comparison: xr.Dataset, name: str) -> str:
    """Return in words from when on a pair has this mark."""
    return f"from t = {float(comparison['time'].values[comparison[name].values.any(axis=0)].min()):.4g} on"


def _with_moments(comparison: xr.Dataset) -> xr.Dataset:
    """Return the comparison with the larger error of the moments of order 3 and 4, and without amplified numbers."""
    whole = comparison.assign(moments=comparison["moment_error"].sel(order=[3, 4]).max("order"))
    return whole.assign({name: whole[name].where(~whole["amplified"]) for name in ("wasserstein", *_DIFFERENCES)})


def _panels(comparison: xr.Dataset) -> list[Panel]:
    whole, times = _with_moments(comparison), comparison["time"].values
    several = comparison.sizes["pair"] > 1  # then the largest p alone
    shown = whole.isel(p=[-1]) if several else whole
    distances, differences = list[Curve](), list[Curve]()
    for k, pair in enumerate(map(str, comparison["pair"].values)):
        own = shown.isel(pair=k)
        for j, p in enumerate(own["p"].values):
            value, error = (own[name].values[:, j] for name in ("wasserstein", "wasserstein_error"))
            error, label = np.nan_to_num(error), pair if several else f"W_{p:g}"
            low, dash = np.maximum(value - error, 0.0), _DASHES[j % len(_DASHES)]
            distances.append(Curve(label, times, _drawable(value), low, value + error, dash=dash, colour=k))
        if several:
            largest = own[list(_DIFFERENCES)].to_dataarray().max("variable").values
            differences.append(Curve(pair, times, _drawable(largest)))
        else:
            differences += [Curve(label, times, _drawable(own[name].values)) for name, label in _DIFFERENCES.items()]
    note = "Bands hold the estimated errors of the distances."
    first = _panel(f"Distance W_{shown['p'].values[-1]:g}" if several else "Distance", distances, note=note)
    second = _panel("Largest difference of moments" if several else "Differences", differences)
    return [first, _growth(comparison) if _is_different(comparison) else second, _radii(comparison)]


def _growth(comparison: xr.Dataset) -> Panel:
    """Return W_p(t) / W_p(0) for the largest p, with what is possible for small differences and the theory's bounds."""
    times, p = comparison["time"].values, f"{comparison['p'].values[-1]:g}"
    curves = [
        Curve(str(pair), times, _drawable(values))
        for pair, values in zip(comparison["pair"].values, comparison["growth"].values[..., -1], strict=True)
    ]
    if "optimal_growth" in comparison:
        local = " (local)" if comparison["far"].values.any() else ""
        optimal = np.fmax.reduce(comparison["optimal_growth"].values)
        curves.append(Curve(f"optimal{local}", times, _drawable(optimal)))
        for (name, label), dash in zip(_RATES.items(), ("--", "-."), strict=True):
            curves.append(bound_curve(label + local, times, np.fmax.reduce(comparison[name].values), dash))
    if _are_bounded(comparison):
        for (name, label), dash in zip(_BOUNDS.items(), (":", "-"), strict=True):
            curves.append(bound_curve(label, times, np.fmax.reduce(np.atleast_2d(comparison[name].values)), dash))
    return _panel("Growth of the distance", curves, f"W_{p}(t) / W_{p}(0)")


def _are_bounded(comparison: xr.Dataset) -> bool:
    """Whether the theory bounds the growth for the largest p."""
    return "bounded" not in comparison or bool(comparison["bounded"].values[..., -1].all())


def _radii(comparison: xr.Dataset) -> Panel:
    times = comparison["time"].values
    curves = [
        Curve(str(name), times, _drawable(radii))
        for name, radii in zip(comparison["solution"].values, comparison["radius"].values, strict=True)
    ]
    bound = Curve("bound R_0 exp ∫|V|", times, comparison["radius_bound"].values, role="bound", dash="--")
    return Panel("Radius of the support", "t", [*curves, bound])


def _tables(comparison: xr.Dataset) -> list[Table]:
    title, tables = str(comparison.attrs.get("title", "")), list[Table]()
    whole = _with_moments(comparison)
    for k, pair in enumerate(comparison["pair"].values):
        own = whole.isel(pair=k)
        names = [] if _is_different(comparison) else [name for name in _DIFFERENCES if own[name].notnull().any()]
        heads = ["t", *(f"W_{p:g}" for p in own["p"].values), *(_DIFFERENCES[name] for name in names)]
        tables.append(Table(f"{title}: {pair}", heads, list(_differences(own, names))))
        if _is_different(comparison) or own["growth"].notnull().any():
            tables.append(_growth_table(own, str(pair)))
    runs = {name: run for name, run in table_in(comparison.attrs, "runs").items() if isinstance(run, dict)}
    heads = ["solution", "solver", "status", "error"]
    rows = [[name, *(run.get(key, "") for key in heads[1:3]), _number(run)] for name, run in runs.items()]
    return [*tables, Table("Solutions", heads, rows)]


def _differences(own: xr.Dataset, names: Sequence[str]) -> Iterator[list[Any]]:
    """Yield a row for each time: distances with their errors, and other differences."""
    for j, t in enumerate(own["time"].values):
        at, cells = own.isel(time=j), list[str]()
        for value, error in zip(at["wasserstein"].values, at["wasserstein_error"].values, strict=True):
            cells.append(f"{value:.2e} ± {error:.0e}" if math.isfinite(value) else "")
        row = [*cells, *(_with_uncertainty(at, name) for name in names)]
        yield [float(t), *([_AMPLIFIED] * len(row) if bool(at["amplified"]) else row)]


def _with_uncertainty(at: xr.Dataset, name: str) -> float | str:
    """Return a difference at one time, with its uncertainty where it has one."""
    value, uncertainty = float(at[name]), float(at.get(f"{name}_uncertainty", math.nan))
    return value if math.isnan(uncertainty) else f"{value:.2e} ± {uncertainty:.0e}"


def _growth_table(own: xr.Dataset, pair: str) -> Table:
    """Return the growth of the distance of a pair by time, and what bounds it."""
    p, bounds = f"{own['p'].values[-1]:g}", {"log_a_posteriori": "estimate", "log_a_priori": "at most"}
    optimal = {"optimal_growth": "optimal"} if "optimal_growth" in own and _is_different(own) else {}
    rates = (_RATES if optimal else {}) | bounds
    rows, known = list[list[Any]](), _are_bounded(own)
    for j, t in enumerate(own["time"].values):
        at = own.isel(time=j)
        growth = float(at["growth"][-1])
        shown = _AMPLIFIED if bool(at["amplified"]) else "unresolved" if math.isnan(growth) else growth
        exponents = [float(at[name]) if known or name not in bounds else math.nan for name in rates]
        rows.append([float(t), shown, *(float(at[name]) for name in optimal), *map(written, exponents)])
    return Table(f"Growth W_{p}(t) / W_{p}(0): {pair}", ["t", "growth", *optimal.values(), *rates.values()], rows)


def _number(run: dict[str, str]) -> float:
    try:
        return float(run.get("error_estimate", math.nan))
    except ValueError:
        return math.nan


def _notes(comparison: xr.Dataset) -> list[str]:
    """Return where solutions part only by instability, how much small differences grow, and what is doubtful."""
    notes = [f"{comparison.attrs['without_density']}."] if comparison.attrs.get("without_density") else []
    if comparison["amplified"].values.any():
        notes.append(
            f"amplified: {_since(comparison, 'amplified')} the unstable mean has multiplied a small difference of the "
            "starts until it is as large as the measure; the distance there says nothing about the solvers."
        )
    if "far" in comparison and not _is_different(comparison):
        notes += _possible(comparison.isel(pair=0))
    elif "far" in comparison and comparison["far"].values.any():
        notes.append(_far(comparison))
    return notes + _of_theory(comparison)


def _far(comparison: xr.Dataset) -> str:
    """Return since when numbers for small differences are local, and how much more was measured."""
    with np.errstate(invalid="ignore"):
        excess = comparison["growth"].values[..., -1] / comparison["optimal_growth"].values
    text = (
        f"local: {_since(comparison, 'far')} solutions are too far apart for the derivative of the flow, which says "
        "how small differences grow along each of them; between them differences may grow more."
    )
    most = float(np.nanmax(excess, initial=0.0, where=comparison["far"].values))
    return text if most <= 1 + _ROUNDING else f"{text} Measured was up to {most:.4g} times the local optimum."


def _of_theory(comparison: xr.Dataset) -> list[str]:
    """Return why there is no estimate, or how well it is known."""
    logs, errors = (comparison[name].values for name in ("log_a_posteriori", "log_a_posteriori_error"))
    radii = comparison["radius"].isel(time=0)
    without = [str(name) for name in comparison["solution"].values[np.isnan(radii.values)]]
    if np.isnan(logs).all():
        why = f"the support is not bounded ({', '.join(without)})" if without else "none is known for this attention"
        return [f"?: no estimate holds, since {why}."]
    with np.errstate(invalid="ignore", divide="ignore"):
        open_to = float(np.nanmax(errors[:, 1:] / logs[:, 1:], initial=0.0, where=logs[:, 1:] > 0))
    if open_to <= SETTLED:
        return []
    exact = f"to {100 * open_to:.2g} %" if open_to < 1 else "to no digit"
    return [f"estimate, a posteriori: these output times tell its exponent {exact}; more of them tell more."]


def _possible(own: xr.Dataset) -> list[str]:
    """Return how much small differences grow until the last time at which that is known."""
    known = np.flatnonzero(np.isfinite(own["optimal_growth"].values))
    if not known.size or known[-1] == 0:
        return []
    at = own.isel(time=known[-1])
    rates = ", ".join(f"{label} {written(float(at[name]))}" for name, label in _RATES.items() if at[name].notnull())
    times = f"{float(at['optimal_growth']):.4g} times by t = {float(at['time']):.4g}"
    return [f"small differences of the starts grow at most {times}{f' ({rates})' if rates else ''}."]


COMPARISON = Kind(
    "comparison",
    "what vl.compare returned",
    title="How far solutions are apart",
    variables=_NAMES,
    panels=_panels,
    tables=_tables,
    notes=_notes,
    cites=(TRANSPORT,),
)


def draw(
    comparison: xr.Dataset, solutions: Sequence[xr.Dataset], study: xr.Dataset | None = None, *, width: Width = None
) -> Figure:
    """Return a figure of the solutions, with the panels of their comparison below.

    Above is a density with tokens over it, else the first solution alone where all have tokens or densities in d > 1,
    else the covariances of all. The first panel of a study may stand beside the others.
    """
    from vlasov.postprocess.drawing.panels import picture

    require(comparison, COMPARISON, "comparison")
    panels = [*_panels(comparison), *([] if study is None else panels_of(study)[:1])]
    doubt = str(comparison.attrs.get("doubt", ""))
    words = f"Not to be trusted: {doubt}" if doubt else ""
    above, rows = partial(_draw_solutions, comparison, solutions), 2 if _mapped(comparison, solutions) else 1
    return picture(panels, str(comparison.attrs["title"]), words, above=above, rows_above=rows, width=width)


def _mapped(comparison: xr.Dataset, solutions: Sequence[xr.Dataset]) -> str:
    """Return the pair of which the difference of densities is drawn at its tokens; '' for none."""
    pair = [str(run.attrs["solver"]) for run in solutions if {"position", "density"} & set(run.data_vars)]
    names = {" / ".join(pair), " / ".join(pair[::-1])} & set(comparison["pair"].values.tolist())
    if _is_different(comparison) or len(names) != 1 or "difference" not in comparison:
        return ""
    name = names.pop()
    return name if comparison["difference"].sel(pair=name).notnull().any() else ""


def _draw_solutions(comparison: xr.Dataset, solutions: Sequence[xr.Dataset], figure: Figure, place: SubplotSpec) -> int:
    """Draw the solutions at a place of a figure; return the lines of the key below the figure."""
    from vlasov.postprocess.compare.maps import draw_maps
    from vlasov.postprocess.drawing.covariances import eigenvalues, ellipses
    from vlasov.postprocess.drawing.paper import fitting
    from vlasov.postprocess.drawing.snapshots import SNAPSHOT, add_key, has_key, is_overlay, layers_of, snapshots

    mapped = _mapped(comparison, solutions)
    rows = place.subgridspec(2 if mapped else 1, 1)

    def panels(count: int, least: float, row: int = 0) -> list[Axes]:
        across = fitting(count, least)
        grid = rows[row].subgridspec(-(-count // across), across)
        return [figure.add_subplot(grid[k]) for k in range(count)]

    runs = {str(run.attrs["solver"]): run for run in solutions}
    pair = [runs[name] for name in ("finite-volume", "particles") if name in runs]
    overlay = not _is_different(comparison) and len(pair) == 2 and is_overlay(pair)
    on_line = solutions[0].sizes["component"] == 1
    if overlay or (not on_line and all({"position", "density"} & set(run.data_vars) for run in solutions)):
        times = comparison["time"].values
        shown = times[spread(times.size, _TIMES)]
        drawn = [run.sel(time=times) for run in (pair if overlay else solutions[:1])]
        plane = (0, 1) if "density" in drawn[0] else None
        axes = panels(shown.size, SNAPSHOT)
        snapshots(*drawn, times=shown.tolist(), components=plane, axes=axes)
        if mapped:
            shares = comparison.sel(pair=mapped, time=shown)
            draw_maps(shares, axes, panels(shown.size, SNAPSHOT, 1))
        if not overlay:
            axes[0].set_title(f"{comparison['solution'].values[0]}: {axes[0].get_title()}")
        layers = layers_of(drawn, True)
        return add_key(figure, layers) if has_key(layers) else 0
    axes = panels(1 if on_line else 2, _PANEL)
    if not on_line:
        ellipses(*solutions, count=_TIMES, ax=axes[0])
    eigenvalues(*solutions, ax=axes[-1])
    return 0
