"""The edge of the continuous spectrum: sup_x |D phi_t(x)| of the flow in a given field, one token at a time.

    x' = Gamma_mu(t)(x),   B' = D Gamma_mu(t)(x) B,   B(0) = I,   mu(t) the path

over the tokens themselves, and in the limit of many tokens over probes without weight, refined around the maximum: a
token next to an unstable point between clusters is torn away, though there may be none in the sample.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Measure
from vlasov.postprocess.sensitivity.growth import spectral
from vlasov.postprocess.sensitivity.path import Path, mixed
from vlasov.postprocess.sensitivity.tangency import Tangency
from vlasov.solvers.ode.dop853 import STAGES, A, B

_ROUNDS, _SHRINK = 14, 0.42  # of looks around the maximum
_SIDE = {1: 9, 2: 5, 3: 3}  # probes along each axis of a look
_ENOUGH = 1e-9  # relative change of the maxima, in two rounds, at which looking ends


class Edge(NamedTuple):
    """At each output time: sup_x |D phi_t(x)|, and where x is at time zero."""

    value: Array
    place: Array


def of_tokens(path: Path, tangency: Tangency) -> Edge:
    """Over the tokens of the path."""
    norms = _norms(path, tangency, None)
    best = norms.argmax(axis=1)
    return Edge(norms[np.arange(len(best)), best], path.outputs[0][best])


def of_limit(path: Path, tangency: Tangency, initial: Measure) -> Edge:
    """Over the support of the initial measure: probes around the tokens where it is largest."""
    edge, d = of_tokens(path, tangency), path.cloud.dimension
    if d not in _SIDE or not tangency.free or path.cloud.s is not None:
        return edge
    value, place = edge.value.copy(), edge.place.copy()
    points, still = path.outputs[0], 0
    reach = np.array([_spacing(points, centre) for centre in place])
    unit = np.stack(np.meshgrid(*[np.linspace(-1, 1, _SIDE[d])] * d, indexing="ij"), axis=-1).reshape(-1, d)
    low, high = points.min(axis=0), points.max(axis=0)  # beyond, no node says what is felt there
    for _ in range(_ROUNDS):
        probes = (place[1:, None] + reach[1:, None, None] * unit).reshape(-1, d)
        inside = (initial.density(probes) > 0) & ((probes >= low) & (probes <= high)).all(axis=1)
        if not inside.any():
            break
        probes = probes[inside]
        norms = _norms(path, tangency, probes)
        best = norms.argmax(axis=1)
        larger = norms[np.arange(len(best)), best]
        better = larger > value
        still = 0 if (larger > value * (1 + _ENOUGH))[1:].any() else still + 1
        value, place = np.where(better, larger, value), np.where(better[:, None], probes[best], place)
        reach *= _SHRINK
        if still == 2:
            break
    return Edge(value, place)


def _spacing(points: Array, centre: Array) -> float:
    """How far the nearest few tokens are."""
    squares = np.square(points - centre).sum(axis=1)
    near = min(4 * points.shape[1], len(points) - 1)
    return float(np.sqrt(np.partition(squares, near)[near]))


def _norms(path: Path, tangency: Tangency, probes: Array | None) -> Array:
    """|D phi_t(x)| at each output time and probe; without probes, at the tokens."""
    x = path.outputs[0] if probes is None else probes
    blocks = np.array(tangency.blocks(x))
    found, ends = [spectral(blocks)], set(path.ends[1:])
    flow, cloud = path.flow, path.cloud
    slopes, turns = np.empty((STAGES, *x.shape)), np.empty((STAGES, *blocks.shape))
    for number, step in enumerate(path.steps, start=1):
        for s, points in enumerate(step.stages()):
            measure, t = cloud.moved(points), step.time(s)
            at = points if probes is None else x + step.h * mixed(A[s, :s], slopes) if s else x
            if probes is not None:
                flow.velocity(measure, at, t, out=slopes[s])
            moved = blocks + step.h * mixed(A[s, :s], turns) if s else blocks
            turns[s] = flow.jacobian(measure, at, t) @ moved
        if probes is not None:
            x = x + step.h * mixed(B, slopes)
        blocks = blocks + step.h * mixed(B, turns)
        if number in ends:
            found.append(spectral(blocks))
    return np.array(found)
