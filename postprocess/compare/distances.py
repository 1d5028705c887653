"""How far two states of solutions are apart: distances, each in about a second, moments to order 4, densities in L1.

|m - m'| <= W_p <= W_2 tells orders below 2 where it leaves next to nothing open, and W_p <= W_q for p < q bounds each
order by all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Density, Gaussian, Measure, Particles
from vlasov.postprocess.moments import moments
from vlasov.postprocess.transport.conditional import match
from vlasov.postprocess.transport.methods import Distance, image_in
from vlasov.postprocess.wasserstein import distance, in_order, quickly

ORDERS = (1, 2, 3, 4)  # of moments
_MANY = 400  # tokens beside a density, beyond which lattices replace them: atoms take half a minute
_FEW_TOKENS = 100_000  # pairs that are transported in milliseconds
_FEW_PAIRS = 3_000_000  # of tokens that are transported exactly: half a second
_NODES = (200, 400, 800)  # of a lattice, a tenth of a second each
_DENSE = (500, 1000, 2000)  # of lattices for two densities
_CLOSE = 1e-6  # of W_2 or of the deviation: what it may leave open of orders below 2


def between(mu: Measure, nu: Measure, orders: Sequence[float]) -> list[Distance]:
    """W_p of every order; NaN where d > 3 and no grid holds what is no cloud.

    Of tokens with the same places in a sequence the conditional distance, else that of the laws of x.
    """
    if match(mu, nu):
        return [distance(mu, nu, p) for p in orders]
    mu, nu = (Particles(one.points, one.weights) if isinstance(one, Particles) else one for one in (mu, nu))
    found: dict[float, Distance] = {}
    shift = float(np.linalg.norm(mu.mean - nu.mean))
    spread = math.sqrt(float(np.trace(mu.covariance)))
    approximate = mu.dimension > 1 and not all(isinstance(one, Particles) for one in (mu, nu))
    for p in sorted(orders, key=lambda p: (p < 2, p)):
        two = found.get(2.0) if p < 2 and approximate else None
        if two is not None and (room := two.value + two.error - shift) <= _CLOSE * max(two.value, spread):
            found[p] = Distance(shift, max(room, 0.0), two.method)
        else:
            found[p] = _in_a_second(mu, nu, p)
    found = in_order(found)
    return [found[p] for p in orders]


def is_cheap(mu: Measure, nu: Measure) -> bool:
    """Whether distances of the measures take milliseconds: on a line, between Gaussians, and between few tokens."""
    if mu.dimension == 1 or (isinstance(mu, Gaussian) and isinstance(nu, Gaussian)):
        return True
    return isinstance(mu, Particles) and isinstance(nu, Particles) and len(mu) * len(nu) <= _FEW_TOKENS


def _in_a_second(mu: Measure, nu: Measure, p: float) -> Distance:
    """W_p by ``distance`` where that is fast, else on coarser lattices; the method is theirs to choose."""
    counts = [len(measure) for measure in (mu, nu) if isinstance(measure, Particles)]
    if len(counts) < 2 and mu.dimension > 3:
        with suppress(InputError):
            return distance(mu, nu, p)
        return Distance(math.nan, math.nan, "")
    few = math.prod(counts) <= _FEW_PAIRS if len(counts) == 2 else 0 < sum(counts) <= _MANY
    if few or mu.dimension == 1 or mu.dimension > 3:
        return distance(mu, nu, p)
    return quickly(mu, nu, p, _NODES if counts else _DENSE)


def moment_errors(mu: Measure, nu: Measure) -> Array:
    """Largest error of the moments of each order, about the mean of mu and in its standard deviations.

    Relative to the largest moment of the order, or to that of a standard normal variable where it is larger.
    """
    center, scale = mu.mean, np.sqrt(np.maximum(np.diag(mu.covariance), 1e-300))
    errors = []
    for order in ORDERS:
        one, other = (moments(measure, order, center=center, scale=scale) for measure in (mu, nu))
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
