"""What came out of a mean-field study, as a table for the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from vlasov.postprocess.mean_field.rates import ERRORS, values_of
from vlasov.postprocess.stability import told, written
from vlasov.postprocess.studies.rates import rms
from vlasov.postprocess.studies.table import WIDE, number, slopes, tabulated
from vlasov.solvers.dataset import STUDY, require, time_index

if TYPE_CHECKING:
    from rich.table import Table

_FAR_BELOW = 0.1  # of the smallest error: what the limit's own may be
_LOCAL = (  # of small differences, by the derivative of the limit's flow
    ("optimal", "log_optimal_growth"),
    ("logarithmic norm", "log_logarithmic_norm"),
    ("exp int |J|", "log_norm"),
)
_LABELS = {"mean_error": "mean", "covariance_error": "covariance (relative)", "velocity_error": "velocity at probes"}


def table(dataset: xr.Dataset, time: int | float = -1, width: int = WIDE) -> Table:
    """Errors for the smallest and the largest n, fitted slopes with their intervals, and those of the theory.

    The time is that of ``vl.measure``; on a terminal that is not so wide every number has a line.
    """
    require(dataset, STUDY)
    k = time_index(dataset, time)
    title = f"{dataset.attrs['title']}: n tokens against the limit at t = {float(dataset['time'][k]):g}"
    found = [
        [((str(sampling), label), _numbers(dataset, s, k, quantity, i)) for label, quantity, i in rows(dataset)]
        for s, sampling in enumerate(dataset["sampling"].values)
    ]
    return tabulated(title, notes(dataset, k), ("sampling", "error"), found, width)


def _numbers(dataset: xr.Dataset, sampling: int, time: int, quantity: str, p: int) -> dict[str, str]:
    """What is known of an error, as text by its name."""
    sizes = dataset["n"].values
    errors = rms(values_of(dataset, quantity, sampling, time, p))
    known = np.flatnonzero(np.isfinite(errors))
    last = number(errors[-1])
    if known.size and known[-1] != len(errors) - 1:
        last = f"{number(errors[known[-1]])} (n = {int(sizes[known[-1]])})"
    here = dataset.isel(sampling=sampling, time=time, p=p).sel(quantity=quantity)
    ends = [(f"n = {int(sizes[0])}", number(errors[0])), (f"n = {int(sizes[-1])}", last)]
    return dict(ends[-1:] if sizes.size == 1 else ends) | slopes(here)


def rows(dataset: xr.Dataset) -> list[tuple[str, str, int]]:
    """Label, variable and position of p of every error; those without p once."""
    exponents = list(enumerate(dataset["p"].values))
    found = []
    for quantity in ERRORS:
        if quantity in _LABELS:
            found.append((_LABELS[quantity], quantity, 0))
        else:
            names = {"coupled": "coupled, p = {:g}", "wasserstein": "W_{:g}"}
            found.extend((names[quantity].format(p), quantity, i) for i, p in exponents)
    return found


def notes(dataset: xr.Dataset, time: int = -1) -> str:
    """The limit and its error, the steps, the ratio of distances against its bound, and what masks make of it."""
    attrs, end = dataset.attrs, dataset.isel(time=time)
    own = float(end["reference_error"].max())
    close = [
        str(name) for s, name in enumerate(dataset["sampling"].values) if own > _FAR_BELOW * _smallest(dataset, s, time)
    ]
    nodes = f", {attrs['reference_nodes_per_axis']} nodes per axis" if attrs["reference_nodes_per_axis"] else ""
    verdict = f", NOT far below the smallest errors of {' and '.join(close)}" if close else ""
    lines = [
        f"Limit by {attrs['reference']}{nodes}, {attrs['steps']} steps; its own error is about {own:.1e}{verdict}."
    ]
    if np.isfinite(bias := dataset["transport_bias"].values).any():
        worst = float(np.nanmax(np.abs(bias)))
        lines.append(
            f"W_p is taken to {attrs['points_per_token']} n points of the limit, which changes it by up to "
            f"{100 * worst:.2g} % where that was checked."
        )
    if np.isfinite(end["growth"]).any():
        posteriori = float(end["a_posteriori_estimate"].max())
        bounds = [("a-priori bound", float(end["a_priori_bound"])), ("a-posteriori estimate", posteriori)]
        known = [f"{name} {written(float(end[variable]))} (local)" for name, variable in _LOCAL if variable in end]
        known += [f"{name} {told(bound)}" for name, bound in bounds if not math.isnan(bound)]
        lines.append(
            f"Largest W_p(t) / W_p(0): {float(end['growth'].max()):.4g}; {', '.join(known) or 'no bound is known'} "
            f"(R = {attrs['support_radius']:.3g}, {attrs['support']})."
        )
    if "doubt" in attrs:
        lines.append(f"{attrs['doubt'][0].upper()}{attrs['doubt'][1:]}.")
    if attrs.get("local_doubt"):
        lines.append(f"Growth of small differences: {attrs['local_doubt']}.")
    if "measured" in attrs:
        lines.append(f"Masked: {attrs['measured']}.")
    return "\n".join(lines)


def _smallest(dataset: xr.Dataset, sampling: int, time: int) -> float:
    """Of the coupled distance and the velocity."""
    errors = [rms(values_of(dataset, name, sampling, time, 0)) for name in ("coupled", "velocity_error")]
    return min(float(error[error > 0].min(initial=math.inf)) for error in errors)
