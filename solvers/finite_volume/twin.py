"""The velocity of a mixture of Gaussians and its slope at a few points, all parts at once: what frames of parts follow.

    Gamma(x) = sum_h V_h m_h(A_h x),   D Gamma(x) = sum_h V_h C_h(A_h x) A_h

with the mean and the covariance of e^{<A x, y> - <y, P y>} mu: a mixture of Gaussians, with weights w_c Z_c.
"""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array
from vlasov.flow import Flow
from vlasov.measures import Gaussian, Mixture
from vlasov.tilting import Request


def linearised(flow: Flow, weights: Array, means: Array, covariances: Array, t: float) -> tuple[Array, Array]:
    """Gamma and D Gamma at the means of the Gaussians, shapes (n, d) and (n, d, d)."""
    heads = flow.attention.heads_at(t)
    if heads is None:
        gaussians = [Gaussian.trusted(mean=m, covariance=c) for m, c in zip(means, covariances, strict=True)]
        twin = Mixture.trusted(components=gaussians, weights=weights)
        return flow.attention.evaluate(twin, means, t, Request()).values, flow.jacobian(twin, means, t)
    velocity, slope = np.zeros_like(means), np.zeros_like(covariances)
    for head in heads:
        logs, inner, spread = _reweighted(np.log(weights), means, covariances, head.P)
        mean, covariance = _tilted(logs, inner, spread, means @ head.A.T)
        velocity += mean @ head.V.T
        slope += head.V @ covariance @ head.A
    return velocity, slope


def _reweighted(logs: Array, means: Array, covariances: Array, quadratic: Array | None) -> tuple[Array, Array, Array]:
    """Log Z, mean G alpha and covariance G Sigma of e^{-<y, P y>} N(alpha, Sigma), G = (I + 2 Sigma P)^{-1}."""
    if quadratic is None:
        return logs, means, covariances
    inverse = np.eye(means.shape[1]) + 2 * covariances @ quadratic
    inner = np.asarray(np.linalg.solve(inverse, means[:, :, None]), dtype=np.float64)[:, :, 0]
    spread = np.asarray(np.linalg.solve(inverse, covariances), dtype=np.float64)
    exponents = np.einsum("nk,kl,nl->n", means, quadratic, inner)
    return logs - np.linalg.slogdet(inverse)[1] / 2 - exponents, inner, (spread + spread.swapaxes(1, 2)) / 2


def _tilted(logs: Array, means: Array, covariances: Array, xi: Array) -> tuple[Array, Array]:
    """Mean and covariance of sum_c e^{log_c} N(alpha_c, Sigma_c), tilted by e^{<xi, .>} at each xi."""
    steps = np.einsum("ckl,nl->nck", covariances, xi)
    exponents = logs + xi @ means.T + np.einsum("nck,nk->nc", steps, xi) / 2
    shares = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    places = means + steps
    mean = np.einsum("nc,nck->nk", shares, places)
    away = places - mean[:, None]
    within = np.tensordot(shares, covariances, axes=1)
    return mean, within + (shares[:, :, None] * away).swapaxes(1, 2) @ away
