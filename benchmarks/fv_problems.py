"""Problems whose solutions are known, and errors of finite-volume runs against them; ``run`` solves one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from problems import Array

_ORDER = 4  # of the moments that are compared
_ROUNDING = 1e-14  # mass of tails that rounding moves: 1e-16 that is half a unit away makes W2 = 5e-9


@dataclass(frozen=True)
class Run:
    """A solution, its initial state on the grid, its last moments, and what else its Dataset says about it."""

    state: Any
    initial: Any
    covariance: Array
    mean: Array
    attributes: dict[str, Any]

    @property
    def balance(self) -> float:
        """|mass + outflow - 1|."""
        return float(abs(self.state.mass + self.attributes["outflow"] - 1.0))

    @property
    def evaluations(self) -> int:
        """Of the velocity."""
        return int(self.attributes["velocity_evaluations"])

    @property
    def steps(self) -> int:
        """Of the scheme."""
        return int(self.attributes["steps"])

    @property
    def seconds(self) -> float:
        """Wall time, compilation included if the run was the first of its kind."""
        return float(self.attributes["wall_seconds"])


def run(problem: Any, **options: Any) -> Run:
    """Solve to the horizon."""
    import vlasov as vl

    result = vl.solve(problem, "finite-volume", times=[0.0, problem.horizon], **options)
    last = result.isel(time=-1)
    return Run(
        vl.measure(result), vl.measure(result, 0), last["covariance"].values, last["mean"].values, dict(result.attrs)
    )


def rotating(horizon: float = 2.0) -> Any:
    """A Gaussian in the plane that rotates and shears: A and V are not symmetric."""
    import vlasov as vl

    v = 0.5 * np.array([[0.0, 1.0], [-1.0, 0.2]])
    initial = vl.Gaussian([0.3, 0.0], [[0.8, 0.2], [0.2, 0.5]])
    return vl.Problem(vl.Softmax(A=[[0.6, 0.5], [-0.7, 0.3]], V=v), initial, horizon)


def line(horizon: float = 1.0) -> Any:
    """A Gaussian on the line."""
    import vlasov as vl

    return vl.Problem(vl.Softmax(A=[[0.4]], V=[[0.7]]), vl.Gaussian([0.3], [[0.5]]), horizon)


def space() -> Any:
    """A Gaussian in space; A and V are not symmetric."""
    import vlasov as vl

    a = [[0.5, 0.3, 0.0], [-0.4, 0.3, 0.2], [0.1, -0.3, 0.4]]
    v = [[0.1, 0.5, -0.2], [-0.5, 0.2, 0.3], [0.2, -0.3, 0.1]]
    covariance = [[0.8, 0.2, 0.1], [0.2, 0.6, 0.0], [0.1, 0.0, 0.7]]
    return vl.Problem(vl.Softmax(A=a, V=v), vl.Gaussian([0.2, 0.0, -0.1], covariance), 1.0)


def isotropic(strength: float, sign: float, horizon: float, covariance: Any) -> Any:
    """A = strength I, V = sign I: Sigma(t) = (Sigma_0^{-1} - 2 sign strength t)^{-1}, and the mean stays at 0."""
    import vlasov as vl

    attention = vl.Softmax(A=strength * np.eye(2), V=sign * np.eye(2))
    return vl.Problem(attention, vl.Gaussian([0.0, 0.0], covariance), horizon)


def isotropic_error(found: Run, problem: Any, strength: float, sign: float) -> tuple[float, float]:
    """Relative error of Sigma in the spectral norm; |Sigma| / |Sigma_0|."""
    start = problem.initial.covariance
    exact = np.linalg.inv(np.linalg.inv(start) - 2 * sign * strength * problem.horizon * np.eye(2))
    size = np.linalg.norm(exact, 2)
    error = np.linalg.norm(found.state.covariance - exact, 2) / size
    return float(error), float(size / np.linalg.norm(start, 2))


def _gaussian(problem: Any) -> Any:
    import vlasov as vl

    moments = vl.solve(problem, "gaussian", tolerance=1e-13, times=[problem.horizon])
    return vl.Gaussian(moments["mean"].values[-1], moments["covariance"].values[-1])


def gaussian_error(found: Run, problem: Any) -> float:
    """L1 distance to the exact cell averages of the Gaussian that solves the moments' ODE, which it does exactly."""
    state = found.state
    exact = _gaussian(problem).image(np.linalg.inv(state.matrix), -np.linalg.solve(state.matrix, state.origin))
    return float((np.abs(state.values - exact.on_grid(state.edges).values) * state.volumes).sum())


def gaussian_wasserstein(found: Run, problem: Any, tails: float = _ROUNDING) -> float:
    """W2 on the line between the grid's density and the exact Gaussian, with G the exact distribution function.

        W2^2 = int |x - G^{-1}(F(x))|^2 f(x) dx

    F is exact at the edges; the integral over x is a sum over them, which for smooth densities is spectrally accurate.
    A mass of ``tails`` is left out on either side.
    """
    from scipy.special import ndtri

    exact, state = _gaussian(problem), found.state
    mean, deviation = float(exact.mean[0]), math.sqrt(float(exact.covariance[0, 0]))
    edges, masses = state.edges[0], state.values * state.volumes / state.mass
    lower, upper = np.cumsum(masses)[:-1], np.cumsum(masses[::-1])[::-1][1:]
    inside = (lower > tails) & (upper > tails)
    lower, upper, x = lower[inside], upper[inside], edges[1:-1][inside]
    there = mean + deviation * np.where(lower < 0.5, ndtri(np.minimum(lower, 0.5)), -ndtri(np.minimum(upper, 0.5)))
    weights = ((masses[:-1] + masses[1:]) / 2)[inside]
    return float(np.sqrt(weights @ (x - there) ** 2))


def grid_moments(density: Any) -> Array:
    """E (1, x)^{(4)}: the tensor of all moments up to order 4, from cell averages of a smooth density.

    An average is a value of the density smoothed by a cell. The sum over cells of q_k, E q_k(z + U) = z^k for U uniform
    in a cell (Sheppard's corrections), takes the smoothing back; products of such sums over axes are moments of z, and
    x = origin + matrix z moves the tensor.
    """
    masses = density.values * density.volumes / density.mass
    powers = []
    for centers, widths in zip(density.centers, density.widths, strict=True):
        z, h2 = centers, float(widths[0]) ** 2
        powers.append(np.array([z**0, z, z**2 - h2 / 12, z**3 - z * h2 / 4, z**4 - z**2 * h2 / 2 + 7 * h2**2 / 240]))
    table = reduce(lambda sums, q: np.tensordot(sums, q, axes=(0, 1)), powers, masses)
    d = density.dimension
    local = np.empty((d + 1,) * _ORDER)
    for index in np.ndindex(local.shape):
        local[index] = table[tuple(index.count(k + 1) for k in range(d))]
    frame = np.block([[np.ones((1, 1)), np.zeros((1, d))], [density.origin[:, None], density.matrix]])
    return _moved(local, frame)


def _moved(tensor: Array, matrix: Array) -> Array:
    """The tensor with a matrix applied along every axis."""
    for axis in range(tensor.ndim):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)
    return tensor


def cloud_moments(points: Array, weights: Array) -> Array:
    """The same of weighted points."""
    homogeneous = np.hstack([np.ones((len(points), 1)), points])
    pairs = np.einsum("ni,nj->nij", homogeneous, homogeneous).reshape(len(points), -1)
    size = homogeneous.shape[1]
    return ((weights[:, None] * pairs).T @ pairs).reshape((size,) * _ORDER)


def moment_error(moments: Array, points: Array, weights: Array, exact: Array | None = None) -> float:
    """Largest |E x^a - exact| / E|x^a| up to order 4: odd moments that vanish by symmetry count, too.

    The points are the exact solution; if ``exact`` is given, they only set the scale.
    """
    scale = cloud_moments(np.abs(points), weights)
    return float((np.abs(moments - (cloud_moments(points, weights) if exact is None else exact)) / scale).max())


def ring_points(problem: Any, nodes: int = 64) -> tuple[Array, Array, Array]:
    """Quadrature of the exact solution of linear attention, x = F x_0; and F."""
    start = problem.initial.quadrature(nodes)
    f = _linear_flow(problem, (start.points.T * start.weights) @ start.points)
    return start.points @ f.T, start.weights, f


def ring_moments(found: Run, f: Array) -> Array:
    """Moments of the initial cell averages, mapped by the exact F: the initial grid's own error does not count."""
    flow = np.eye(3)
    flow[1:, 1:] = f
    return _moved(grid_moments(found.initial), flow)


def ring_covariance_error(found: Run, points: Array, weights: Array) -> float:
    """Of the Dataset's mean and covariance, relative to the ring's size."""
    center = weights @ points
    exact = (points - center).T @ (weights[:, None] * (points - center))
    size = float(np.trace(exact))
    return max(
        float(np.abs(found.mean - center).max()) / math.sqrt(size), float(np.abs(found.covariance - exact).max()) / size
    )


def _linear_flow(problem: Any, second: Array) -> Array:
    """F with F' = V M A F, M = F M_0 F^T, to rounding."""
    from scipy.integrate import solve_ivp

    attention = problem.attention

    def rhs(t: float, y: Array) -> Array:
        f = y.reshape(2, 2)
        return np.asarray(attention.values(t) @ f @ second @ f.T @ attention.product(t) @ f).ravel()

    end = solve_ivp(rhs, (0, problem.horizon), np.eye(2).ravel(), method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    return np.asarray(end.reshape(2, 2))


def ring_error(found: Run, problem: Any, f: Array, fine: int = 16) -> float:
    """L1 distance to cell averages of the exact density, from ``fine`` x ``fine`` midpoints in each cell."""
    state = found.state
    x, y = (
        (axis[:-1, None] + (axis[1:] - axis[:-1])[:, None] * (np.arange(fine) + 0.5) / fine).ravel()
        for axis in state.edges
    )
    back = np.linalg.inv(f)
    scale = abs(np.linalg.det(state.matrix)) * abs(np.linalg.det(back))
    rows = []
    for row in x.reshape(-1, fine):
        z = np.stack(np.meshgrid(row, y, indexing="ij"), axis=-1).reshape(-1, 2)
        values = problem.initial.density((state.origin + z @ state.matrix.T) @ back.T)
        rows.append(scale * values.reshape(fine, -1, fine).mean(axis=(0, 2)))
    return float((np.abs(state.values - np.array(rows)) * state.volumes).sum())


def square() -> Any:
    """A square whose corners become clusters."""
    import vlasov as vl

    return vl.Problem(vl.Softmax(A=np.eye(2), V=np.eye(2)), vl.Box([-1.0, -1.0], [1.0, 1.0]), 5.0)


def square_clusters(groups: int, nodes: int = 600) -> tuple[Array, Array, float, float]:
    """The exact solution on one axis: |x| and masses of groups of particles, standard deviation, error of grouping.

    With A = V = I the two coordinates of a product measure move by themselves: the square's solution is the product of
    two solutions on the line.
    """
    import vlasov as vl

    problem = vl.Problem(vl.Softmax(A=[[1.0]], V=[[1.0]]), vl.Box([-1.0], [1.0]), square().horizon)
    result = vl.solve(problem, "particles", n=nodes, sampling="quadrature", tolerance=1e-11, times=[problem.horizon])
    cloud = vl.measure(result)
    x, weights = np.abs(cloud.points[:, 0]), cloud.weights
    order = np.argsort(x)
    x, weights = x[order], weights[order]
    which = np.minimum((groups * (np.cumsum(weights) - weights / 2)).astype(int), groups - 1)
    masses = np.bincount(which, weights, groups)
    centres = np.bincount(which, weights * x, groups) / masses
    within = float(weights @ (x - centres[which]) ** 2)
    return centres, masses, math.sqrt(float(weights @ x**2)), math.sqrt(within)


def square_wasserstein(found: Run, groups: int = 40) -> tuple[float, float]:
    """W2 / sd of cells as Diracs at their centres to the exact solution; and how far off it may be.

    Both are symmetric under x_k -> -x_k: folded to one quadrant, their distance stays the same.
    """
    import ot

    centres, masses, deviation, error = square_clusters(groups)
    there = np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1).reshape(-1, 2)
    goal = np.outer(masses, masses).ravel()
    state = found.state
    z = np.stack(np.meshgrid(*state.centers, indexing="ij"), axis=-1).reshape(-1, 2)
    here = np.abs(state.origin + z @ state.matrix.T)
    weights = (state.values * state.volumes).ravel() / state.mass
    places, which = np.unique(here.round(9), axis=0, return_inverse=True)
    folded = np.bincount(which.ravel(), weights)
    kept = folded > 1e-9
    places, folded = places[kept], folded[kept] / folded[kept].sum()
    cost = np.ascontiguousarray(((places[:, None, :] - there[None, :, :]) ** 2).sum(axis=2))
    squared = ot.emd2(folded, goal / goal.sum(), cost, numItermax=10_000_000)
    sd = math.sqrt(2) * deviation
    return math.sqrt(float(squared)) / sd, math.sqrt(2) * error / sd
