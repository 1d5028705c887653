"""How sensitivities are shown: growth between its bounds, who carries it, and a table with the digits that are sure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from vlasov.postprocess.panels import Curve, Panel, Table
from vlasov.postprocess.stability import bound_curve, written

_SMALL = 1e-4  # numbers below have an exponent
_DIGITS = 8  # at most
_OF = {"limit": "in the limit of many tokens", "tokens": "of these tokens"}
_RATES = {"log_logarithmic_norm": ("exp ∫λ", "--"), "log_norm": ("exp ∫|J|", ":")}


def panels(dataset: xr.Dataset) -> list[Panel]:
    """Return growth with its bounds, and the share of the measure that carries it, over time."""
    times, growth = dataset["time"].values, dataset["growth"].values
    error = np.nan_to_num(dataset["growth_error"].values, posinf=0.0)
    low = np.maximum(growth - error, 0.0)
    curves = [Curve("growth", times, growth, low, growth + error)]
    for name, (label, dash) in _RATES.items():
        if name in dataset:
            curves.append(bound_curve(label, times, dataset[name].values, dash))
    share = Curve("share of the measure", times, dataset["participation"].values)
    return [
        Panel("Growth of small changes", "t", curves, "|h(t)| / |h(0)|", logy=True),
        Panel("Who carries the growth", "t", [share], logy=False),
    ]


def tables(dataset: xr.Dataset) -> list[Table]:
    """Return growth, its bounds and who carries it at each time."""
    title = f"{dataset.attrs['title']}: growth of small changes {_OF.get(dataset.attrs['of'], '')}"
    rates = {name: label for name, (label, _) in _RATES.items() if name in dataset}
    rows = list[list[Any]]()
    for at in (dataset.isel(time=k) for k in range(dataset.sizes["time"])):
        growth = sure_digits(float(at["growth"]), float(at["growth_error"])) + " (this sample's)" * bool(at["sample"])
        carried = f"{float(at['carriers']):.3g} ({_percent(100 * float(at['participation']))} %)"
        rows.append([float(at["time"]), growth, *(written(float(at[name])) for name in rates), carried])
    return [Table(title, ["t", "growth", *rates.values(), "carried by"], rows)]


def sure_digits(value: float, error: float) -> str:
    """Return a number by the digits that its error leaves."""
    if math.isnan(value) or error > abs(value):
        return "unknown"
    if math.isnan(error):
        return f"{value:.8g}"
    if error == 0:
        return f"{value:.8g} ± 0"
    first = math.floor(math.log10(abs(value)))
    last = max(math.floor(math.log10(error)), first - _DIGITS + 1)
    off = f"{error:.0e}" if error < _SMALL or first >= _DIGITS else f"{float(f'{error:.0e}'):g}"
    if abs(value) < _SMALL or first >= _DIGITS:
        return f"{value:.{first - last}e} ± {off}"
    return f"{round(value, -last):.{max(0, -last)}f} ± {off}"


def _percent(share: float) -> str:
    return f"{share:.0f}" if share >= 1 else f"{share:.1g}"


def notes(dataset: xr.Dataset) -> list[str]:
    """Return what the growth cost, and whether times end early or it is the growth of a few tokens."""
    attrs = dataset.attrs
    sentences = [
        f"{attrs['n']:,} {'nodes' if attrs['of'] == 'limit' else 'tokens'}, {attrs['steps']} steps, "
        f"{attrs['products']} products with the tangent flow or its adjoint."
    ]
    if attrs["status"] == "blow-up":
        whose = "solution blows" if attrs["of"] == "limit" else "tokens blow"  # a Gaussian may, where tokens do not
        sentences.append(f"The {whose} up at t = {attrs['blow_up_time']:.6g}, before which times end.")
    if dataset["sample"].values.any():
        since = float(dataset["time"].values[dataset["sample"].values.argmax()])
        sentences.append(
            f"From t = {since:.4g} on a few tokens carry the growth: the number is theirs, not the limit's."
        )
    return sentences
