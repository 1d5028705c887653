"""What moves on a page: one solution in physical coordinates at its output times, as the page's scripts read it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.postprocess.drawing.view import View
from vlasov.postprocess.report import densities
from vlasov.postprocess.report.packing import pack_tokens, size_of
from vlasov.solvers.dataset import require_states

_MOST_BYTES = 5_000_000  # of densities: a page has less than eight megabytes
_MOST_TOKENS, _MOST_NUMBERS = 3000, 500_000
_HEAVY = 1e-3  # of the largest weight: lighter tokens do not widen a picture
_FOLLOWS, _UNLIKE = 5.0, 8.0  # ratios of sizes, over time and between axes


def scene(run: xr.Dataset, title: str, *, share: int = 1, over: xr.Dataset | None = None) -> dict[str, Any]:
    """A solution for the page, in as many bytes as its share of it allows.

    d > 3 is shown in the first three principal directions of all times together. ``over``: a run by tokens with the
    same output times, to be drawn over a density.
    """
    require_states(run)
    view, d = View(run), run.sizes["component"]
    most_bytes = _MOST_BYTES // share
    times, density, boxes = _cells(run, densities.MOST_CELLS // share, most_bytes)
    mean, covariance, labels = view.mean[times], view.covariance[times], [f"x_{k}" for k in range(1, d + 1)]
    directions = None
    if d > 3:
        directions, labels = _principal(mean, covariance)
        mean, covariance = mean @ directions, directions.T @ covariance @ directions
    tokens = None
    if view.has_positions:
        tokens, seen = _tokens(view, times, directions, share)
        boxes.append(seen)
        if d == 1:
            density = densities.of_tokens_on_line(run, times, most_bytes)
    elif over is not None and density is not None:
        tokens, seen = _tokens(View(over), times, None, share)
        boxes.append(seen)
    if not boxes:
        reach = 3 * np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))
        boxes.append(np.stack([mean - reach, mean + reach], axis=2))
        if d <= 2:
            density = {"kind": "bell", "mean": mean.tolist(), "covariance": covariance.tolist()}
    windows = _padded(np.stack([np.min(boxes, axis=0)[..., 0], np.max(boxes, axis=0)[..., 1]], axis=2))
    early = np.isin(times, view.before_runaway())
    fixed = np.stack([windows[early][..., 0].min(axis=0), windows[early][..., 1].max(axis=0)], axis=1)
    margin = 0.05 * (fixed[:, 1] - fixed[:, 0])  # what stands still or moves as one must not sit on the border
    fixed = fixed + np.stack([-margin, margin], axis=1)
    size = fixed[:, 1] - fixed[:, 0]
    return {
        "title": title, "d": min(d, 3), "times": view.times[times].tolist(), "outputs": view.times.size,
        "labels": labels, "windows": windows.tolist(), "fixed": fixed.tolist(),
        "follow": _follows(windows, tokens_alone=density is None), "equal": bool(size.max() <= _UNLIKE * size.min()),
        "mean": mean.tolist(), "covariance": covariance.tolist(), "density": density, "tokens": tokens,
    }  # fmt: skip


def _cells(run: xr.Dataset, budget: int, most_bytes: int) -> tuple[list[int], dict[str, Any] | None, list[Array]]:
    """Output times, the density at them, and the boxes of what is seen: fewer times where they would not fit."""
    while True:
        times, joined = densities.kept_times(run, budget)
        if "density" not in run or run.sizes["component"] > 3:
            return times, None, []
        density, seen = densities.of_frames(run, times, joined, most_bytes)
        if size_of(density["frames"]) <= most_bytes or len(times) <= 2:
            return times, density, [seen]
        budget //= 2


def _follows(windows: Array, *, tokens_alone: bool) -> bool:
    """Whether a picture follows the solution: where it grows much. Tokens that gather in a point are to be seen."""
    size = (windows[..., 1] - windows[..., 0]).max(axis=1)
    return bool(size.max() > _FOLLOWS * size.min() and (size[-1] > size[0] or not tokens_alone))


def said_of(made: dict[str, Any]) -> str:
    """What a reader must know of a scene: rounding, what is left out, and how to look."""
    parts = []
    if made["density"] is not None:
        parts.append(densities.rounding(made["density"]))
    if (tokens := made["tokens"]) is not None and tokens["count"] < tokens["total"]:
        parts.append(f"{tokens['count']:,} of {tokens['total']:,} tokens are shown, drawn by their weights.")
    if tokens is not None and made["d"] > 1 and made["density"] is None:
        parts.append("Colours tell places in the sequence." if tokens["places"] else "Colours tell where tokens began.")
    if (shown := len(made["times"])) < made["outputs"]:
        parts.append(f"{shown} of {made['outputs']} output times are shown.")
    if made["d"] == 3:
        seen = (
            "; the surface interpolates between cells; without it, colours are the largest density along lines of sight"
            if made["density"]
            else ""
        )
        parts.append(f"Drag to turn, Ctrl + wheel or the buttons to zoom{seen}.")
    else:
        parts.append("Drag to move, Ctrl + wheel or the buttons to zoom, double click for all.")
    return " ".join(parts)


def _tokens(view: View, times: list[int], directions: Array | None, share: int) -> tuple[dict[str, Any], Array]:
    """Tokens packed, as many as fit, and the box (time, d, 2) that holds them."""
    d = min(view.dimension, 3)
    count = max(50, min(_MOST_TOKENS, _MOST_NUMBERS // share // (len(times) * d)))
    chosen = view.visible if view.visible.size <= count else view.representatives(count)
    x = view.positions(chosen, np.asarray(times))
    x = x if directions is None else x @ directions
    weights = view.weights[chosen]
    heavy = x[:, weights >= _HEAVY * weights.max()]
    equal = bool(np.ptp(weights) <= 1e-9 * weights.max())
    packed = pack_tokens(x) | {
        "d": d,
        "count": int(chosen.size),
        "total": int(view.weights.size),
        "index": None if chosen.size == view.weights.size else chosen.tolist(),
        "weights": None if equal else [float(f"{w:.6g}") for w in weights],
        "places": None if view.places is None else [float(f"{s:.6g}") for s in view.places[chosen]],
    }
    return packed, np.stack([heavy.min(axis=1), heavy.max(axis=1)], axis=2)


def _padded(boxes: Array) -> Array:
    """With a margin, and of some width where all mass is in one point."""
    low, high = boxes[..., 0], boxes[..., 1]
    largest = (high - low).max(axis=1, keepdims=True)
    least = np.maximum(1e-3 * largest, 1e-9 * np.abs(boxes).max(axis=(1, 2))[:, None])
    least = np.where(least > 0, least, 1.0)
    pad = np.where(high - low > least, 0.05 * (high - low), np.maximum(0.25 * largest, least))
    return np.stack([low - pad, high + pad], axis=-1)


def _principal(mean: Array, covariance: Array) -> tuple[Array, list[str]]:
    """Return the first three principal directions (d, 3) of all times together, and their names.

    The signs are those of every run; names say the place and the share of the variance.
    """
    size = max(float(np.abs(mean).max()), float(np.sqrt(np.abs(covariance).max()))) or 1.0  # squares would overflow
    away = (mean - mean.mean(axis=0)) / size
    pooled = (covariance / size / size).mean(axis=0) + away.T @ away / len(mean)
    values, vectors = np.linalg.eigh(pooled)
    vectors = vectors[:, :-4:-1] * np.sign(vectors[np.abs(vectors).argmax(axis=0), range(len(pooled))])[:-4:-1]
    shares = 100 * values[:-4:-1] / (np.trace(pooled) or 1.0)
    return vectors, [f"PC {k} of {len(pooled)} ({share:.0f} %)" for k, share in enumerate(shares, 1)]
