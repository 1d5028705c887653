"""Curves of a run over time: moments, errors, radii beside their bound, energies; as the page's scripts read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from vlasov import estimates
from vlasov.balance import check
from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.postprocess.energies import energies
from vlasov.postprocess.stability import by_theory
from vlasov.problem import Problem
from vlasov.solvers.record import ERRORS

_MOST_CURVES = 6  # of eigenvalues and components in one picture
_OUTPUTS = 41  # at which energies are computed
_MOST_TOKENS = 5000  # with which they are
_STILL = 1e-6  # of the deviation: means that move less stand still
_LOST = 1e-9  # of mass: less is told, not drawn
_DECADES = 100.0  # from where on an axis is logarithmic


def curve(name: str, x: Array, y: Array, **how: Any) -> dict[str, Any]:
    """One curve: ``grey`` for bounds and guides, ``dash``, ``points``, ``low`` and ``high`` for a band, ``colour``."""
    numbers = {key: np.asarray(value, dtype=float).tolist() for key, value in how.items() if key in ("low", "high")}
    return {"name": name, "x": np.asarray(x, float).tolist(), "y": np.asarray(y, float).tolist(), **how, **numbers}


def chart(title: str, xname: str, series: Sequence[dict[str, Any]], *, logx: bool = False, note: str = "",
          logy: bool | None = None, least: float = 0.0) -> dict[str, Any] | None:  # fmt: skip
    """A picture of curves; None where there is nothing to draw. ``logy``: by the values where it is None.

    An axis of y is at least so long: what changes less is rounding.
    """
    drawn = [one for one in series if np.isfinite(one["y"]).any()]
    if not drawn:
        return None
    values = np.concatenate([np.asarray(one["y"], float) for one in drawn])
    values = values[np.isfinite(values)]
    if logy is None:
        logy = bool(values.min() > 0 and values.max() > _DECADES * values.min())
    return {"title": title, "xname": xname, "series": drawn, "logx": logx, "logy": logy, "note": note,
            "least": least}  # fmt: skip


def of_run(run: xr.Dataset, problem: Problem | None) -> list[dict[str, Any]]:
    """Everything that a run and its problem say over time."""
    times, d = run["time"].values, run.sizes["component"]
    if times.size < 2:
        return []
    mean, values = run["mean"].values, np.linalg.eigvalsh(run["covariance"].values)[:, ::-1]
    shown = min(d, _MOST_CURVES)
    name = "t" if run["time"].attrs.get("long_name", "time") == "time" else str(run["time"].attrs["long_name"])
    few = f" (the first {shown} of {d})" if d > shown else ""
    made = [
        chart(f"Mean{few}", name, [curve(f"mean of x_{k + 1}", times, mean[:, k]) for k in range(shown)], logy=False,
              least=_STILL * float(np.sqrt(values.sum(axis=1).max()))),
        chart(
            f"Eigenvalues of the covariance{few}" if d > 1 else "Variance", name,
            [curve(f"λ_{k + 1}" if d > 1 else "variance", times, values[:, k]) for k in range(shown)],
        ),
        _radius(run, problem, name),
        _mass(run, name),
        chart(
            "Errors, as the run estimates them", name,
            [curve(run[one].attrs.get("long_name", one), times, np.where(run[one] > 0, run[one], np.nan))
             for one in ERRORS if one in run],
            logy=True,
        ),
    ]  # fmt: skip
    return [one for one in made if one] + (_energies(run, problem) if problem is not None else [])


def _radius(run: xr.Dataset, problem: Problem | None, name: str) -> dict[str, Any] | None:
    if "radius" not in run or not np.isfinite(run["radius"]).any():
        return None
    times, radius = run["time"].values, run["radius"].values
    series = [curve("radius", times, radius)]
    if problem is not None and np.isfinite(problem.initial.support_radius):  # a Gaussian has no compact support
        bound = by_theory(estimates.support_radius, problem, float(radius[0]), times)
        series.append(curve("bound R₀ exp ∫|V|", times, bound, grey=True, dash=True, fits=True))
    return chart("Radius of the support", name, series)


def _mass(run: xr.Dataset, name: str) -> dict[str, Any] | None:
    if "mass" not in run or "density" not in run:
        return None
    lost = np.abs(run["mass"].values - run["mass"].values[0])
    if not lost.max() > _LOST:
        return None
    series = [curve("|mass(t) − mass(0)|", run["time"].values, np.where(lost > 0, lost, np.nan))]
    return chart("Mass that is lost or gained", name, series, logy=True)


def _energies(run: xr.Dataset, problem: Problem) -> list[dict[str, Any]]:
    """Of gradient flows, V = A = A^T; none for others, or where that would take long."""
    try:
        check(problem)
    except InputError:
        return []
    if run.sizes.get("particle", 0) > _MOST_TOKENS:
        return []
    picked = np.unique(np.linspace(0, run.sizes["time"] - 1, min(_OUTPUTS, run.sizes["time"])).round().astype(int))
    try:
        found = energies(run.isel(time=picked))
    except (InputError, SolverError):
        return []
    return of_energies(found)


def of_energies(found: xr.Dataset) -> list[dict[str, Any]]:
    """Energy, its rate and the identity between them."""
    times = found["time"].values
    known = {name: curve(found[name].attrs["long_name"], times, found[name].values) for name in found.data_vars}
    floor = {name: curve(found[name].attrs["long_name"], times, np.where(found[name] > 0, found[name], np.nan))
             for name in ("identity_error", "quadrature_error")}  # fmt: skip
    made = [
        chart("Energy", "t", [known["energy"]], note=f"Gradient flow; metric: {found.attrs.get('metric', '')}."),
        chart("Rate of the energy, and speed", "t", [known["dissipation"], known["speed"]]),
        chart(
            "What is gained against what is dissipated", "t", list(floor.values()), logy=True,
            note="The identity holds where its distance is not above the error of the integral.",
        ),
    ]  # fmt: skip
    return [one for one in made if one]
