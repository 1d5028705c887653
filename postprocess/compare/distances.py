"""How far two states of solutions are apart: distances, moments to order 4, densities in L1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Density, Gaussian, Measure, Particles
from vlasov.postprocess.moments import moments, nodes
from vlasov.postprocess.transport.atoms import posed
from vlasov.postprocess.transport.conditional import match
from vlasov.postprocess.transport.methods import Distance, image_in
from vlasov.postprocess.wasserstein import distance, in_order

ORDERS = (1, 2, 3, 4)  # of moments
_FEW_TOKENS = 100_000  # pairs that are transported in milliseconds


def between(mu: Measure, nu: Measure, orders: Sequence[float]) -> list[Distance]:
    """Return W_p of every order by ``distance``; NaN where d > 3 and a measure is no cloud.

    Tokens with the same places in a sequence have the conditional distance, others that of the laws of x.
    """
    if not match(mu, nu):
        mu, nu = (Particles(m.points, m.weights) if isinstance(m, Particles) else m for m in (mu, nu))
        found = in_order({p: _distance(mu, nu, p) for p in orders})
        return [found[p] for p in orders]
    return [distance(mu, nu, p) for p in orders]


def floor(mu: Measure, nu: Measure, orders: Sequence[float]) -> list[float]:
    """Return (int min_i |x_i - y|^p dnu(y))^{1/p} of tokens beside a density: W_p is no less, whatever their weights.

    Less what sub-cells of the density hide; NaN for other pairs.
    """
    cloud, density = (mu, nu) if isinstance(mu, Particles) else (nu, mu)
    if not isinstance(cloud, Particles) or isinstance(density, Particles) or cloud.dimension > 3:
        return [math.nan for _ in orders]
    return [posed(cloud, density, p).floor() for p in orders]


def is_cheap(mu: Measure, nu: Measure) -> bool:
    """Whether distances of the measures take milliseconds: on a line, between Gaussians, and between few tokens."""
    if mu.dimension == 1 or (isinstance(mu, Gaussian) and isinstance(nu, Gaussian)):
        return True
    return isinstance(mu, Particles) and isinstance(nu, Particles) and len(mu) * len(nu) <= _FEW_TOKENS


def _distance(mu: Measure, nu: Measure, p: float) -> Distance:
    with suppress(InputError):  # no grid holds a density with d > 3
        return distance(mu, nu, p)
    return Distance(math.nan, math.nan, "")


def moment_errors(mu: Measure, nu: Measure) -> Array:
    """Largest error of the moments of each order, about the mean of mu and in its standard deviations.

    Relative to the largest moment of the order, or to that of a standard normal variable where it is larger.
    """
    center, scale = mu.mean, np.sqrt(np.maximum(np.diag(mu.covariance), 1e-300))
    errors, pair = [], [measure if isinstance(measure, Gaussian) else nodes(measure) for measure in (mu, nu)]
    for order in ORDERS:
        one, other = (moments(measure, order, center=center, scale=scale) for measure in pair)
        errors.append(np.abs(one - other).max() / max(1.0, np.abs(one).max()))
    return np.array(errors)


def density_error(mu: Measure, nu: Measure) -> float:
    """int |rho_mu - rho_nu|, on the cells of the first of the two that has some; NaN for tokens."""
    grid, other = (mu, nu) if isinstance(mu, Density) else (nu, mu)
    if not isinstance(grid, Density):
        return math.nan
    values = _on_cells(grid, other)
    return math.nan if values is None else float((np.abs(grid.values / grid.mass - values) * grid.volumes).sum())


def _on_cells(grid: Density, other: Measure) -> Array | None:
    """The density of another measure on the cells of a grid, in the coordinates of its frame."""
    if isinstance(other, Density):
        mesh = np.stack(np.meshgrid(*grid.centers, indexing="ij"), axis=-1).reshape(-1, grid.dimension)
        values = other.density(grid.origin + mesh @ grid.matrix.T) * abs(np.linalg.det(grid.matrix))
        return values.reshape(grid.values.shape) / other.mass
    image = image_in(grid, other)
    return None if image is None or isinstance(image, Particles) else image.on_grid(grid.edges).values
