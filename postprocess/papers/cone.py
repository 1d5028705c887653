"""Many covariances of the plane on their way: in the cone, or divided by their traces in the disc."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.postprocess.drawing.cone import coordinates, draw_cone, draw_disc
from vlasov.postprocess.drawing.style import END, INK, PALETTE, TOKEN, entitle, panelled, styled
from vlasov.postprocess.papers import variants
from vlasov.postprocess.papers.limits import BLOWN_UP, CONVERGED, DIVERGING, Outcomes, outcomes, rank_counts, shares
from vlasov.solvers.covariances import covariances

_BELOW = 0.92  # of the height of axes in space, which end far above the cone: where their title is
_POINTS, _EARLY, _NEAR = 60, 1e-2, 1e-7  # of a path; first time after zero; how near to a blow-up it is drawn
_LOOK = ((CONVERGED, TOKEN, "converges"), (BLOWN_UP, END, "blows up"), (DIVERGING, PALETTE[2], "diverges"))


class Panel(NamedTuple):
    """A variant: where covariances end, and their paths (b, times, 2, 2)."""

    variant: str
    found: Outcomes
    paths: Array


@styled
def figure(given: dict[str, Any]) -> tuple[Figure, dict[str, Any]]:
    """The picture and its facts, by variant."""
    disc, initial = given["kind"] == "trace-one", variants.beginnings(given["grid"])
    panels = [_solved(one, variants.attention(one, given), initial, given["horizon"]) for one in given["variants"]]
    options = {} if disc else {"projection": "3d"}
    drawn, axes = panelled(2.6 * max(len(panels), 2), 3.1, 1, len(panels), least=1.6, subplot_kw=options)
    entitle(drawn, given["title"])
    used = set()
    for ax, panel in zip(axes, panels, strict=True):
        used |= set(panel.found.fate.tolist())
        (_draw_disc if disc else _draw_cone)(ax, panel, given)
        ax.set_title(panel.variant, y=None if disc else _BELOW)
    handles = [Line2D([], [], color=colour, label=name) for fate, colour, name in _LOOK if fate in used]
    drawn.legend(handles=handles, loc="outside lower center", ncols=3)
    return drawn, {panel.variant: _facts(panel, given) for panel in panels}


def _solved(name: str, attention: Attention, initial: Array, horizon: float) -> Panel:
    """Where they end first, then paths at times of their own."""
    found = outcomes(attention, initial, horizon)
    share = np.linspace(0.0, 1.0, _POINTS)
    early = np.append(0.0, np.geomspace(_EARLY, 1.0, _POINTS - 1) if horizon <= 1 else _late(horizon))
    times = np.where((found.fate == CONVERGED)[:, None], early, found.time[:, None] * share)
    towards = found.time[:, None] * (1 - np.append(np.geomspace(1.0, _NEAR, _POINTS - 1), 0.1 * _NEAR))
    times = np.where((found.fate == BLOWN_UP)[:, None], towards, times)
    run = covariances(attention, initial, times[:, -1], times=times, most_growth=1e13, check=False)
    return Panel(name, found, run["covariance"].values)


def _late(horizon: float) -> Array:
    return np.geomspace(_EARLY, horizon, _POINTS - 1)


def _draw_cone(ax: Any, panel: Panel, given: dict[str, Any]) -> None:
    paths = coordinates(panel.paths)
    height = float(np.nanmax(paths[panel.found.fate == CONVERGED][..., 2]))
    draw_cone(ax, height)
    _draw_limits(ax, panel.variant, given, height)
    for fate, colour, _ in _LOOK:
        chosen = paths[panel.found.fate == fate]
        if len(chosen):
            chosen = np.where(chosen[..., 2:] <= height, chosen, np.nan)
            ax.add_collection3d(Line3DCollection(chosen, colors=colour, linewidths=0.5, alpha=0.6))
            ax.plot(*chosen[:, 0].T, ".", color=INK, markersize=1.5, alpha=0.5)
            ax.plot(*chosen[:, -1].T, "o", color=colour, markersize=2.5)
    ax.set(xlabel="", ylabel="", zlabel="")
    ax.tick_params(labelsize=6)


def _draw_limits(ax: Any, variant: str, given: dict[str, Any], height: float) -> None:
    """Where limits lie by the theory: lines u u^T with <A u, u> = 0, or a plane between two of them."""
    rays = height * coordinates(np.array([np.outer(u, u) for u in isotropic(given)]).reshape(-1, 2, 2))
    if variant == "multi-head" and len(given["Q"]) == 1:
        other = height * coordinates(np.diag([0.0, 1.0]))
        ax.add_collection3d(Poly3DCollection([[np.zeros(3), rays[0], other]], color=INK, alpha=0.15))
        return
    if variant != "multi-head":
        for ray in rays:
            ax.plot(*np.stack([0 * ray, ray], axis=1), color=INK, linewidth=1.2)


def isotropic(given: dict[str, Any]) -> Array:
    """Unit vectors u with <A u, u> = 0: none, one or two of them, up to sign."""
    a = np.array(given["K"]).T @ np.array(given["Q"])
    values, vectors = np.linalg.eigh((a + a.T) / 2)
    if values[0] * values[1] > 1e-12 * np.square(values).max():
        return np.empty((0, 2))
    slopes = np.sqrt(np.abs(values))[::-1]
    found = [
        vectors @ (sign * slopes[0], slopes[1]) for sign in ((1, -1) if min(slopes) > 1e-6 * max(slopes) else (1,))
    ]
    return np.array([u / np.linalg.norm(u) for u in found])


def _draw_disc(ax: Any, panel: Panel, given: dict[str, Any]) -> None:
    draw_disc(ax)
    with np.errstate(invalid="ignore", divide="ignore"):
        paths = coordinates(panel.paths)
        paths = paths[..., :2] / paths[..., 2:]
    for fate, colour, _ in _LOOK:
        chosen = paths[panel.found.fate == fate]
        ax.add_collection(LineCollection(list(chosen), colors=colour, linewidths=0.4, alpha=0.5))
        ends = np.array([path[np.isfinite(path[:, 0])][-1] for path in chosen]).reshape(-1, 2)
        ax.plot(*ends.T, "o", color=colour, markersize=2.5)
    ax.set(xlabel="$(a - b)/(a + b)$", ylabel="$2c/(a + b)$" if panel.variant == given["variants"][0] else "")


def _facts(panel: Panel, given: dict[str, Any]) -> dict[str, Any]:
    """Numbers of a caption."""
    found = panel.found
    facts: dict[str, Any] = {"covariances": len(panel.paths)} | shares(found)
    last = np.linalg.eigh(found.last)
    if (found.fate == CONVERGED).any():
        traces = np.trace(found.last[found.fate == CONVERGED], axis1=1, axis2=2)
        facts |= {"ranks of limits": rank_counts(found), "largest trace at the end": float(traces.max())}
    single, lines = (found.fate == CONVERGED) & (found.rank == 1), isotropic(given)
    if single.any() and len(lines):
        turned = np.array([[-u[1], u[0]] for u in lines])
        angles = np.abs(last.eigenvectors[single, :, 1] @ turned.T)
        facts["limits on each line"] = np.bincount(angles.argmin(axis=1), minlength=len(lines)).tolist()
        facts["largest angle to the nearest line"] = float(angles.min(axis=1).max())
    if (full := (found.fate == CONVERGED) & (found.rank == 2)).any() and len(given["Q"]) == 1:
        q, limit = np.array(given["Q"][0]), found.last[full]
        facts["largest distance to the plane"] = float(
            np.abs(limit[:, 0] @ q / np.trace(limit, axis1=1, axis2=2)).max()
        )
    for fate, name in ((BLOWN_UP, "blow up"), (DIVERGING, "diverge")):
        chosen = found.fate == fate
        if chosen.any():
            ends = found.time[chosen]
            facts[f"times when they {name}"] = [float(ends.min()), float(np.median(ends)), float(ends.max())]
            ratios = last.eigenvalues[chosen, 0] / last.eigenvalues[chosen, 1]
            facts[f"second eigenvalue over the first where they {name}"] = float(ratios.max())
            facts[f"its median where they {name}"] = float(np.median(ratios))
    return facts
