"""Causal sums over all pairs: exact up to rounding, for any d and any tilt, bitwise blind to what is not seen."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import all_pairs
from vlasov.tilting.all_pairs.many_dimensions import prefix_means
from vlasov.tilting.all_pairs.panels import TERMS
from vlasov.tilting.all_pairs.tiles import Sources
from vlasov.tilting.prefixes import pair_kernels
from vlasov.tilting.prefixes.halves import Counts, Part
from vlasov.tilting.results import longest

_NONE = np.empty(0)


def moments(
    points: Array,
    log_weights: Array | None,
    xi: Array,
    seen: Counts,
    *,
    precision: Literal["float64", "float32"] = "float64",
    workspace: Workspace | None = None,
) -> Part:
    """log Z and means at tilts xi (m, d), each over the first ``seen`` (m,) of the sources (n, d).

    Every target sees a source that carries weight. Targets are quickest in the order of what they see.
    """
    points, xi = plain(points), plain(xi)
    weights = _NONE if log_weights is None else plain(log_weights)
    (n, d), m = points.shape, len(xi)
    finite = weights[np.isfinite(weights)]
    base = float(finite[0]) if finite.size else 0.0
    layout = all_pairs._layout(n, d, precision)
    buffer = all_pairs._buffer(layout, workspace)
    sources = Sources(*pair_kernels.prepare(points, weights, base, buffer, *layout.shape))
    means = pair_kernels.few if d <= all_pairs._FEW else prefix_means
    mass, mean = np.empty(m), np.empty((m, d))
    for part in all_pairs._parts(n // 2 + 1, m, d):
        in_threads(
            all_pairs._threads(n // 2 + 1, m, d), pair_kernels.share(means),
            sources, xi[part], seen[part], mass[part], mean[part], layout.zero,
        )  # fmt: skip
    return Part(mass, mean, *_error_bounds(points, finite - base, base, xi, layout))


def _error_bounds(points: Array, logs: Array, base: float, xi: Array, layout: all_pairs._Layout) -> tuple[float, float]:
    """As ``all_pairs.tiles.error_bounds``, with the first point in place of the middle and the first log weight.

    What a target sees weighs e^base at least, so that of lighter sources only those near it count; heavier ones all do.
    """
    n, d = points.shape
    unit = 2.0**-53 if layout.dtype.itemsize == 8 else 2.0**-24
    away, farthest = float(np.linalg.norm(points[0])), longest(xi)
    radius = longest(points - points[0])
    reach = farthest * radius if radius > 0 else 0.0
    high, low = (float(logs.max()), float(-logs.min())) if logs.size else (0.0, 0.0)
    exponents = (d + 5) * (reach + max(high, min(low, 2 * reach + math.log(n) + 42))) + math.log(n) + 8
    sums = (TERMS if layout.shape[1] == 1 else layout.shape[1] / 2) + 8
    terms = 3 * math.sqrt(d) * reach + math.log(n) + 4 + abs(base) + high + (farthest * away if away > 0 else 0.0)
    mean = unit * radius * (exponents + 2 * sums + 3) + 4.5e-16 * away
    return mean, unit * (exponents + sums + 3) + 1.2e-16 * (d + 6) * terms
