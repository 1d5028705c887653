"""How a comparison is shown: panels, tables and notes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.kinds import TRANSPORT, Kind
from vlasov.postprocess.panels import Curve, Panel, Table, spread
from vlasov.postprocess.stability import SETTLED, bound_curve, written
from vlasov.solvers.dataset import table_in

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
    "growth_error": "estimated error of that ratio",
    "own_error": "sum of the errors of mean and covariance that the two runs estimate of themselves",
    "quantisation": "W_p from the tokens' places, with the best weights, to the density",
    "bounded": "whether the estimates of the theory hold for this order",
    "radius": "largest distance from the origin in the support",
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
_FACTOR, _SMALLEST = 2.0, 1e-11  # runs know their errors to a factor; what is rounding in any case
_TELLING = 0.1  # own errors beyond say that nothing is known
_SMALLEST_DRAWN, _LARGEST = 1e-13, 1e200  # values of a curve that is drawn: others are rounding, or run away
_AMPLIFIED = "amplified"
_UNITS = "[x]: in the units of x."
_RELATIVE = "[s.d.]: in standard deviations, sqrt(tr Σ), of the first; [rel.]: relative to it; "
_AGREEMENT = (
    ("mean_error", "means", " of a standard deviation"),
    ("covariance_error", "covariances", ""),
    ("density_error", "densities", " in L1"),
)
_RATES = {"log_logarithmic_norm": "exp ∫λ", "log_norm": "exp ∫|J|"}
_DIFFERENCES = {
    "mean_error": "mean\n[s.d.]",
    "covariance_error": "cov.\n[rel.]",
    "density_error": "density\n[L1]",
    "moments": "moments\n3, 4",
}
_LATER, _LATER_BY_ORDER = ("own_error", "density_error_uncertainty"), ("quantisation", "growth_error")  # than 0.1.0
_ROWS, _ALL_ROWS = 5, 12  # of a table: so many out of more than these
_EXACT = 5e-4  # relative error of a distance that is written without it


def is_different(comparison: xr.Dataset) -> bool:
    """Return whether the solutions begin with different measures."""
    return comparison.attrs.get("initial") == "different"


def _drawable(values: Array) -> Array:
    return np.where(np.abs(values) < _LARGEST, values, np.nan)


def _curve(label: str, times: Array, value: Array, error: Array | None = None, **look: Any) -> Curve:
    """Return the curve through the values that there are, with a band of their errors; rounding is no value."""
    there = np.isfinite(_drawable(value)) & (np.abs(value) > _SMALLEST_DRAWN)
    times, value = times[there], value[there]
    if error is None:
        return Curve(label, times, value, **look)
    error = np.nan_to_num(error[there])
    return Curve(label, times, value, np.maximum(value - error, 0.0), value + error, **look)


def _panel(title: str, curves: Sequence[Curve], y: str = "", note: str = "") -> Panel:
    """Return a panel over time, logarithmic if there is anything above zero."""
    return Panel(title, "t", curves, y, logy=any((curve.y > 0).any() for curve in curves), note=note)


def _since(comparison: xr.Dataset, name: str) -> str:
    """Return in words from when on a pair has this mark."""
    return f"from t = {float(comparison['time'].values[comparison[name].values.any(axis=0)].min()):.4g} on"


def _complete(comparison: xr.Dataset) -> xr.Dataset:
    """Return the comparison with NaN for variables that files of earlier versions do not have."""
    likes = {"mean_error": _LATER, "growth": _LATER_BY_ORDER}
    missing = {name: like for like, names in likes.items() for name in names if name not in comparison}
    return comparison.assign({name: comparison[like] * math.nan for name, like in missing.items()})


def _with_moments(comparison: xr.Dataset) -> xr.Dataset:
    """Return the comparison with the larger error of the moments of order 3 and 4, and without amplified numbers."""
    whole = comparison.assign(moments=comparison["moment_error"].sel(order=[3, 4]).max("order"))
    return whole.assign({name: whole[name].where(~whole["amplified"]) for name in ("wasserstein", *_DIFFERENCES)})


def _panels(comparison: xr.Dataset) -> list[Panel]:
    """Return the distances with their floor, the differences with the solvers' own errors, and the growth."""
    comparison, several = _complete(comparison), comparison.sizes["pair"] > 1  # then the largest p alone
    panels = [_distances(comparison, several), _moments(comparison, several), _growth(comparison)]
    return panels if np.isfinite(comparison["growth"].values[:, 1:]).any() else panels[:2]


def _distances(comparison: xr.Dataset, several: bool) -> Panel:
    times, curves = comparison["time"].values, list[Curve]()
    shown = _with_moments(comparison).isel(p=[-1] if several else slice(None))
    for k, pair in enumerate(map(str, shown["pair"].values)):
        own = shown.isel(pair=k)
        for j, p in enumerate(own["p"].values):
            value, error = (own[name].values[:, j] for name in ("wasserstein", "wasserstein_error"))
            label, dash = pair if several else f"W_{p:g}", _DASHES[j % len(_DASHES)]
            curves.append(_curve(label, times, value, error, dash=dash, colour=k))
    if shown["quantisation"].notnull().any():
        floor = shown["quantisation"].isel(p=-1).max("pair").values
        curves.append(_curve("tokens alone", times, floor, role="guide", dash="--"))
    title = f"Distance W_{shown['p'].values[-1]:g}" if several else "Distance"
    return _panel(title, curves, note="Bands hold the errors of the distances.")


def _moments(comparison: xr.Dataset, several: bool) -> Panel:
    times, curves, shown = comparison["time"].values, list[Curve](), _with_moments(comparison)
    for k, pair in enumerate(map(str, shown["pair"].values)):
        own = shown.isel(pair=k)
        if several:
            largest = own[list(_DIFFERENCES)].to_dataarray().max("variable").values
            curves.append(_curve(pair, times, largest))
        else:
            curves += [_curve(" ".join(head.split()), times, own[name].values) for name, head in _DIFFERENCES.items()]
    if not is_different(comparison):
        expected = shown["own_error"].max("pair").values
        curves.append(_curve("mean, cov.: estimated", times, expected, role="guide", dash="--"))
    return _panel("Largest difference" if several else "Differences", curves)


def _growth(comparison: xr.Dataset) -> Panel:
    """Return W_p(t) / W_p(0) for the largest p, with what is possible for small differences and the theory's bound."""
    times, p = comparison["time"].values, f"{comparison['p'].values[-1]:g}"
    curves = [
        _curve(str(own["pair"].values), times, own["growth"].values, own["growth_error"].values)
        for own in (comparison.isel(pair=k, p=-1) for k in range(comparison.sizes["pair"]))
    ]
    if "optimal_growth" in comparison:
        local = " (local)" if comparison["far"].values.any() else ""
        optimal = np.fmax.reduce(comparison["optimal_growth"].values)
        curves.append(_curve(f"optimal{local}", times, optimal))
        for (name, label), dash in zip(_RATES.items(), ("--", "-."), strict=True):
            curves.append(bound_curve(label + local, times, np.fmax.reduce(comparison[name].values), dash))
    if _are_bounded(comparison):
        theory = np.fmax.reduce(comparison["log_a_posteriori"].values)
        curves.append(bound_curve("theory, a posteriori", times, theory, ":"))
    return _panel("Growth of the distance", curves, f"W_{p}(t) / W_{p}(0)")


def _are_bounded(comparison: xr.Dataset) -> bool:
    """Whether the theory bounds the growth for the largest p."""
    return bool(comparison["bounded"].values[..., -1].all())


def _tables(comparison: xr.Dataset) -> list[Table]:
    title, tables = str(comparison.attrs.get("title", "")), list[Table]()
    comparison, count = _complete(comparison), comparison.sizes["time"]
    places = spread(count, _ROWS if count > _ALL_ROWS else count)
    whole = _with_moments(comparison).isel(time=places)
    for k, pair in enumerate(comparison["pair"].values):
        own = whole.isel(pair=k)
        columns = {"t": [_cell(t) for t in own["time"].values], **_difference_columns(own), **_distance_columns(own)}
        tables.append(_table(f"{title}: {pair}", columns))
        if np.isfinite(own["growth"].values[1:, -1]).any():
            p = f"{own['p'].values[-1]:g}"
            columns = {"t": columns["t"], **_growth_columns(own)}
            tables.append(_table(f"Growth W_{p}(t) / W_{p}(0): {pair}", columns))
    runs = {name: run for name, run in table_in(comparison.attrs, "runs").items() if isinstance(run, dict)}
    heads = ["solution", "solver", "size", "status", "estimated error"]
    rows = [
        [name, run.get("solver", ""), _size(run), run.get("status", ""), _number(run)] for name, run in runs.items()
    ]
    return [*tables, Table("Solutions", heads, rows)]


def _table(title: str, columns: Mapping[str, Sequence[str]]) -> Table:
    """Return the table of the columns in which there is a text."""
    shown = {head: texts for head, texts in columns.items() if any(texts)}
    return Table(title, list(shown), list(zip(*shown.values(), strict=True)))


def _difference_columns(own: xr.Dataset) -> dict[str, list[str]]:
    """Return texts of the differences at each time, by their heads; moments 3 and 4 where there is no density."""
    columns = {}
    for name, head in _DIFFERENCES.items():
        if is_different(own) or (name == "moments" and own["density_error"].notnull().any()):
            continue
        if name == "density_error":
            errors = np.nan_to_num(own["density_error_uncertainty"].values)
            texts = [resolved(*pair) for pair in zip(own[name].values, errors, strict=True)]
        else:
            texts = [_cell(value) for value in own[name].values]
        columns[head] = _amplified(own, texts)
    return columns


def _distance_columns(own: xr.Dataset) -> dict[str, list[str]]:
    """Return texts of W_p at each time, and of what tokens alone make of it, by their heads.

    Beside the coupled distance W_p of the largest order alone, so that 80 columns hold all.
    """
    columns, last = {}, own.sizes["p"] - 1
    if coupled := "coupled" in own and bool(own["coupled"].notnull().any()):
        pairs = zip(own["coupled"].values[:, last], own["coupled_error"].values[:, last], strict=True)
        columns["coupled\n[x]"] = _amplified(own, [resolved(*pair) for pair in pairs])
    for k, p in enumerate(own["p"].values):
        if coupled and k < last:
            continue
        pairs = zip(own["wasserstein"].values[:, k], own["wasserstein_error"].values[:, k], strict=True)
        columns[f"W_{p:g}\n[x]"] = _amplified(own, [resolved(*pair) for pair in pairs])
    if own["quantisation"].notnull().any():
        columns[f"tokens\nW_{own['p'].values[-1]:g}"] = [_cell(value) for value in own["quantisation"].values[:, -1]]
    return columns


def _growth_columns(own: xr.Dataset) -> dict[str, list[str]]:
    """Return texts of the chain measured <= optimal <= exp int lambda <= exp int |J|, and of the theory's bound."""
    pairs = zip(own["growth"].values[:, -1], own["growth_error"].values[:, -1], strict=True)
    columns = {"measured": _amplified(own, [resolved(*pair) for pair in pairs])}
    if "optimal_growth" in own:
        columns["optimal"] = [_cell(value) for value in own["optimal_growth"].values]
        columns |= {label: [written(float(value)) for value in own[name].values] for name, label in _RATES.items()}
    if _are_bounded(own):
        columns["theory"] = [written(float(value)) for value in own["log_a_posteriori"].values]
    return columns


def _amplified(own: xr.Dataset, texts: Sequence[str]) -> list[str]:
    return [_AMPLIFIED if flag else text for flag, text in zip(own["amplified"].values, texts, strict=True)]


def _cell(value: float) -> str:
    """Return a number in few characters; nothing for NaN."""
    return "" if math.isnan(value) else f"{value:.3g}" if 1e-2 <= abs(value) < 1e4 or value == 0 else f"{value:.1e}"


def resolved(value: float, error: float) -> str:
    """Return a number with its relative error; where it may be zero the largest that it may be."""
    if math.isnan(value):
        return ""
    if error >= value > 0 or error > value == 0:
        return f"< {rounded_up(value + error)}"
    if error <= _EXACT * value:
        return _cell(value)
    percent = 100 * error / value
    return f"{_cell(value)} ±{percent:.{0 if percent >= 1 else 1}f}%"


def rounded_up(value: float) -> str:
    """Return two digits of a number, no less than the number."""
    return f"{float(Context(prec=2, rounding=ROUND_CEILING).create_decimal(repr(float(value)))):.1e}" if value else "0"


def _size(run: dict[str, str]) -> str:
    """Return the number of tokens or cells of a run, as its options say it."""
    options = json.loads(run.get("options", "{}"))
    cells = options.get("cells")
    sizes = f"{options['n']:,} tokens" if options.get("n") else " x ".join(map(str, np.atleast_1d(cells))) + " cells"
    return sizes if options.get("n") or cells else ""


def _number(run: dict[str, str]) -> float:
    try:
        return float(run.get("error_estimate", math.nan))
    except ValueError:
        return math.nan


def _notes(comparison: xr.Dataset) -> list[str]:
    """Return in sentences how well solutions agree or how far they part, and what is doubtful."""
    comparison, notes = _complete(comparison), list[str]()
    if comparison["amplified"].values.any():
        notes.append(
            f"amplified: {_since(comparison, 'amplified')} the unstable mean has multiplied a small difference of the "
            "starts until it is as large as the measure; the distance there says nothing about the solvers."
        )
    whole = _with_moments(comparison)
    for k in range(comparison.sizes["pair"]):
        notes += _parting(whole.isel(pair=k)) if is_different(comparison) else _agreement(whole.isel(pair=k))
    if "far" in comparison and not is_different(comparison):
        notes += _possible(comparison.isel(pair=0))
    elif "far" in comparison and comparison["far"].values.any():
        notes.append(_far(comparison))
    if reason := str(comparison.attrs.get("left_out", "")):
        notes.append(f"{reason[0].upper()}{reason[1:]}.")
    if reason := str(comparison.attrs.get("without_density", "")):
        notes.append(f"{reason}.")
    return [*notes, *_of_theory(comparison), ("" if is_different(comparison) else _RELATIVE) + _UNITS]


def _agreement(own: xr.Dataset) -> list[str]:
    """Return how far two solutions of one problem are apart at most, beside what they expect, and what tokens hide."""
    largest = float(own[["mean_error", "covariance_error"]].to_dataarray().max())
    expected = float(own["own_error"].max())
    if expected > _TELLING or " / layers" in f" / {own['pair'].values}":  # layers are another problem than the flow
        verb, to = "are apart", "by"
    else:
        agree = not largest > _FACTOR * expected + _SMALLEST
        verb, to = ("agree", "to") if agree else ("differ by more than they say", "by")
    most = own.assign(density_error=own["density_error"] + own["density_error_uncertainty"].fillna(0.0))
    parts = [
        f"{words} {to} {rounded_up(float(most[name].max()))}{unit}"
        for name, words, unit in _AGREEMENT
        if most[name].notnull().any()
    ]
    if not parts:
        return []
    text = f"{str(own['pair'].values).replace(' / ', ' and ')} {verb}: {', '.join(parts)}"
    if own["own_error"].notnull().any():
        text += f" (their own estimates for mean and covariance: {rounded_up(expected)})"
    there = np.flatnonzero((own["quantisation"] + own["wasserstein"]).isel(p=-1).notnull().values)
    if there.size:
        at = own.isel(time=there[-1], p=-1)
        text += (
            f". At t = {float(at['time']):.4g} W_{float(at['p']):g} = {_cell(float(at['wasserstein']))}; no weights of "
            f"the tokens come nearer to the density than {_cell(float(at['quantisation']))}"
        )
    return [f"{text}."]


def _parting(own: xr.Dataset) -> list[str]:
    """Return by how much the distance of two solutions from different starts has grown, and how much it might."""
    grown = np.flatnonzero(np.isfinite(own["growth"].values[:, -1]))
    if not grown.size or grown[-1] == 0:
        return []
    at, p = own.isel(time=int(grown[-1])), f"{own['p'].values[-1]:g}"
    text = f"W_{p} has grown {resolved(float(at['growth'][-1]), float(at['growth_error'][-1]))} times"
    if "optimal_growth" in at and at["optimal_growth"].notnull():
        text += f", small differences grow {float(at['optimal_growth']):.4g} times at most"
    return [f"{text}, by t = {float(at['time']):.4g}."]


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
        why = "the support of the initial measure is not bounded" if without else "none is known for this attention"
        return [f"theory: no estimate holds, since {why}."]
    with np.errstate(invalid="ignore", divide="ignore"):
        open_to = float(np.nanmax(errors[:, 1:] / logs[:, 1:], initial=0.0, where=logs[:, 1:] > 0))
    if open_to <= SETTLED:
        return []
    exact = f"to {100 * open_to:.2g} %" if open_to < 1 else "to no digit"
    return [f"theory, a posteriori: these output times tell its exponent {exact}; more of them tell more."]


def _possible(own: xr.Dataset) -> list[str]:
    """Return how much small differences grow until the last time at which that is known."""
    places = np.flatnonzero(np.isfinite(own["optimal_growth"].values))
    if not places.size or places[-1] == 0:
        return []
    at = own.isel(time=places[-1])
    rates = ", ".join(f"{label} {written(float(at[name]))}" for name, label in _RATES.items() if at[name].notnull())
    text = f"small differences of the starts grow at most {float(at['optimal_growth']):.4g} times"
    return [f"{text} by t = {float(at['time']):.4g}{f' ({rates})' if rates else ''}."]


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
