"""Attentions that are gradient flows, V = A = A^T, and the energies that grow along them.

    softmax     E(mu) = int int e^{<A x, y>} dmu dmu / 2       dE/dt = int Z_mu(A x) |Gamma|^2 dmu
    Sinkhorn    F(mu) = (int f dmu + int g dmu) / 2            dF/dt = int |Gamma|^2 dmu

F grows along steepest paths of the Wasserstein metric, E along those of a metric that is twisted by Z. Both velocities
are gradients, of log Z(A x) and of f: the Wasserstein speed of mu is the root of int |Gamma|^2 dmu.

E is kept as its logarithm, of which D / E is the rate, so that nothing overflows. Of a Gaussian with
S = Sigma^{1/2} A Sigma^{1/2} it is infinite where |S| >= 1, and with p = Sigma^{1/2} A alpha else

    log 2 E = <alpha, A alpha> + <p, (1 - S)^{-1} p> - log det(1 - S^2) / 2
      2 F = <alpha, A alpha> + sum_k s_k c_k + log(1 - c_k^2) / 2,    c = 2 s / (1 + sqrt(1 + 4 s^2))

with the singular values s_k of S. There dE/dt = 2 E int |Gamma|^2 dnu with nu = Z(A x) mu / 2 E, a Gaussian too.

References: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322; Sander et al. (2022), arXiv:2110.11773.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vlasov.attention import Attention, Sinkhorn, Softmax
from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.measures import Gaussian, How, Measure, Memory
from vlasov.patience import Patience
from vlasov.tilting import Request

_ROUNDED = 1e-12  # of the largest entry of A: V = A and A = A^T as far as products of Q and K tell
_REACH = 4.0  # standard deviations, up to which nodes of a measure serve
_EPS = float(np.finfo(float).eps)


class Energy(NamedTuple):
    """What a measure has, and how fast it grows.

    Attributes
    ----------
    value
        log E of softmax, F of Sinkhorn: what is finite.
    rate
        d/dt of it: (dE/dt) / E, or dF/dt.
    log_dissipation
        log dE/dt, or log dF/dt.
    speed
        The root of int |Gamma|^2 dmu.
    error
        How far the value may be off for the sums' sake; of Sinkhorn also for the marginals'.
    method
        How sums were evaluated.
    """

    value: float
    rate: float
    log_dissipation: float
    speed: float
    error: float
    method: str


def matrix(attention: Attention) -> Array:
    """A of an attention with V = A = A^T; complain where it has no energy."""
    needed = "energies need softmax or Sinkhorn attention with V = A = A^T"
    if not isinstance(attention, Softmax | Sinkhorn):
        raise InputError(f"is {attention.kind}; {needed}", "attention")
    if isinstance(attention, Sinkhorn) and attention.iterations is not None:
        sentence = f"is {attention.iterations}; the energy is that of the fixed point, so leave it out"
        raise InputError(sentence, "attention.iterations")
    for name, value in attention.parameters.items():
        if not isinstance(value, np.ndarray):
            raise InputError(f"depends on time; {needed}, constant in time", f"attention.{name}")
    a, v = attention.product(0.0), attention.values(0.0)
    most = _ROUNDED * float(np.abs(a).max())
    skew = np.abs(a - a.T)
    if skew.max() > most:
        i, j = (int(k) for k in np.unravel_index(int(skew.argmax()), skew.shape))
        entries = f"entry [{i}, {j}] is {a[i, j]:g} and [{j}, {i}] is {a[j, i]:g}"
        raise InputError(f"is not symmetric ({entries}); {needed}", "attention.A")
    if v.shape != a.shape or np.abs(v - a).max() > most:
        raise InputError(f"is not A; {needed}, so give V = A", "attention.V")
    return a


def energy(
    attention: Attention,
    measure: Measure,
    *,
    tolerance: float = 1e-10,
    workspace: Workspace | None = None,
    memory: Memory | None = None,
) -> Energy:
    """The energy of a measure, and how fast it grows.

    Parameters
    ----------
    tolerance
        Of sums, as in ``Attention.velocity``.
    workspace, memory
        Of the caller: scratch memory, and what is warm from measures before.
    """
    a, how = matrix(attention), How(workspace=workspace or Workspace(Patience()), memory=memory)
    try:
        with np.errstate(all="ignore"):
            found = _energy(attention, a, measure, Request(tolerance, log_mass=True), how)
    except np.linalg.LinAlgError:  # of entries that are infinite
        found = _OVERFLOWN
    infinite = found.value == math.inf and math.isnan(found.rate)  # as the energy of a wide Gaussian is indeed
    if not math.isfinite(found.speed) or not (infinite or np.isfinite(found[:2]).all()):
        raise InputError("is so large that its energy is no number; scale it to about one", "measure")
    return found


_OVERFLOWN = Energy(math.nan, math.nan, math.nan, math.nan, math.nan, "")


def _energy(attention: Attention, a: Array, measure: Measure, request: Request, how: How) -> Energy:
    """By what the attention and the measure are."""
    if isinstance(measure, Gaussian):
        return _of_gaussian(attention, a, measure)
    if isinstance(attention, Sinkhorn):
        return _entropic(attention, a, measure, request, how)
    return _exponential(a, measure, request, how.get("workspace"))


def _exponential(a: Array, measure: Measure, request: Request, workspace: Workspace | None) -> Energy:
    """E of softmax, by log Z at the measure's own points."""
    from vlasov.compiled.products import map_rows

    spread = math.sqrt(float(np.trace(measure.covariance)))
    nodes = measure.points_for(_REACH * float(np.linalg.norm(a, 2)) * spread)
    found = measure.tilted(map_rows(nodes.points, a), request, workspace=workspace)
    squares = np.square(map_rows(found.mean, a)).sum(axis=1)
    logs = nodes.log_weights + found.log_mass
    total, dissipated = _log_sum(logs), _log_sum(logs + np.log(squares)) if squares.any() else -math.inf
    speed = math.sqrt(float(np.add.reduce(nodes.weights * squares)))
    return _logarithmic(total, dissipated, speed, found.mass_error, found.method)


def _entropic(attention: Sinkhorn, a: Array, measure: Measure, request: Request, how: How) -> Energy:
    """F of Sinkhorn, by the potentials of points about their mean c: less <A c, c> / 2."""
    from vlasov.compiled.products import map_rows
    from vlasov.measures import Particles

    x = measure.points if isinstance(measure, Particles) else measure.mean[None]
    scaled = attention.scaled(measure, x, 0.0, request, how)
    sums, found = scaled.sums, scaled.found
    about = float(np.add.reduce(sums.weights * (found.rows.log_mass + found.g)))
    squares = np.square(map_rows(found.rows.mean + sums.centre, a)).sum(axis=1)
    grows = float(np.add.reduce(sums.weights * squares))
    value = (about + float(sums.centre @ a @ sums.centre)) / 2
    return _plain(value, grows, found.marginal + found.rows.mass_error, found.rows.method)


def _of_gaussian(attention: Attention, a: Array, gaussian: Gaussian) -> Energy:
    """Closed forms."""
    mean, factor = gaussian.mean, gaussian.factor
    slope = factor.T @ a @ factor
    s, axes = np.linalg.eigh((slope + slope.T) / 2)
    at_mean = float(mean @ a @ mean)
    b, field = attention.affine(gaussian) or (np.zeros_like(mean), np.zeros_like(a))
    squares = _mean_square(b, field, mean, factor)
    rounding = 8 * len(mean) * _EPS
    if isinstance(attention, Sinkhorn):
        s = np.abs(s)
        shared = 2.0 / (1.0 + np.hypot(1.0, 2 * s))  # 1 - c^2, and s c = c^2 / (1 - c^2)
        terms = s * s * shared + np.log(shared) / 2
        size = 1 + abs(at_mean) + float(np.abs(terms).sum())
        return _plain((at_mean + float(terms.sum())) / 2, squares, rounding * size, "closed form")
    if (np.abs(s) >= 1).any():
        return Energy(math.inf, math.nan, math.inf, math.sqrt(squares), math.nan, "closed form")
    p = axes.T @ (factor.T @ (a @ mean))
    moved, spread = p / (1 - s), factor @ (axes / np.sqrt(1 - s * s))
    terms, logs = p * moved, np.log1p(-s * s) / 2
    total = at_mean + float(terms.sum()) - float(logs.sum())
    size = 1 + abs(at_mean) + float(((np.abs(terms) + np.abs(logs) + 1) / (1 - np.abs(s))).sum())
    felt = _mean_square(b, field, mean + factor @ (axes @ moved), spread)
    dissipated = total + math.log(felt) if felt > 0 else -math.inf
    return _logarithmic(total, dissipated, math.sqrt(squares), rounding * size, "closed form")


def _mean_square(b: Array, field: Array, mean: Array, factor: Array) -> float:
    """int |b + B x|^2 of the Gaussian N(mean, F F^T)."""
    return float(np.square(b + field @ mean).sum() + np.square(field @ factor).sum())


def _logarithmic(total: float, dissipated: float, speed: float, error: float, method: str) -> Energy:
    """Of log 2 E and log D."""
    value = total - math.log(2.0)
    rate = math.exp(dissipated - value) if dissipated - value < 709 else math.inf
    return Energy(value, rate, dissipated, speed, error + 4 * _EPS * abs(total), method)


def _plain(value: float, dissipation: float, error: float, method: str) -> Energy:
    """Of F and D."""
    logarithm = math.log(dissipation) if dissipation > 0 else -math.inf
    return Energy(value, dissipation, logarithm, math.sqrt(dissipation), error + 4 * _EPS * abs(value), method)


def _log_sum(logs: Array) -> float:
    """log sum e^{l}."""
    largest = float(logs.max())
    return largest + math.log(float(np.add.reduce(np.exp(logs - largest))))
