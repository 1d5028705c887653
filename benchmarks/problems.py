"""Self-attention problems for races: every process makes the same data from the same few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
_CHUNK = 2**20  # sources at a time in extended precision


@dataclass(frozen=True)
class Problem:
    """n points that attend to each other: Gamma(x_i) = V sum_j w_j y_j e^{<A x_i, y_j>} / sum_j w_j e^{<A x_i, y_j>}.

    Attributes
    ----------
    cloud
        "ball": uniform in the ball of radius 2; "box": uniform in [-1, 1]^d; "normal": standard normal.
    strength
        "box": S_k = Q_k R_k for each axis, with Q_k, R_k the half widths of the boxes of A x and of x.
        "ball": the norm of A. "normal": the norm of A times d, so that exponents stay of size 1.
    """

    d: int
    n: int
    cloud: str
    strength: float
    seed: int = 1

    def points(self) -> Array:
        """Points (n, d)."""
        rng = np.random.default_rng(self.seed)
        if self.cloud == "box":
            return rng.uniform(-1.0, 1.0, (self.n, self.d))
        points = rng.standard_normal((self.n, self.d))
        if self.cloud == "ball":
            radii = 2.0 * rng.random((self.n, 1)) ** (1 / self.d)
            points *= radii / np.linalg.norm(points, axis=1, keepdims=True)
        return points

    def weights(self) -> Array:
        """Equal weights (n,)."""
        return np.full(self.n, 1 / self.n)

    @property
    def A(self) -> Array:
        """Not symmetric unless d = 1."""
        if self.cloud == "box":  # absolute values in each row add up to one
            shift = np.roll(np.eye(self.d), 1, axis=1)
            shift[-1] *= -1
            return self.strength * (0.75 * np.eye(self.d) + 0.25 * shift) if self.d > 1 else np.array([[self.strength]])
        return self.strength * self._rotation() / (self.d if self.cloud == "normal" else 1)

    @property
    def V(self) -> Array:
        """A rotation, so that the norm is one."""
        return self._rotation()

    def _rotation(self) -> Array:
        rotation = np.eye(self.d)
        for k in range(0, self.d - 1, 2):
            rotation[k : k + 2, k : k + 2] = [[0.8, -0.6], [0.6, 0.8]]
        return rotation


def radius(points: Array) -> float:
    """Radius of the cloud about the middle of its box: errors are relative to it."""
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    return float(np.sqrt(((points - middle) ** 2).sum(axis=1).max()))


def reference(problem: Problem, targets: int) -> tuple[Array, float]:
    """Velocities at the first targets in extended precision, shape (targets, d), and the cloud's radius."""
    points = problem.points()
    queries = points[:targets].astype(np.longdouble) @ problem.A.astype(np.longdouble).T
    means = np.empty((targets, problem.d), np.longdouble)
    for i, query in enumerate(queries):
        shift = (points @ query.astype(float)).max()
        total, first = np.longdouble(0), np.zeros(problem.d, np.longdouble)
        for start in range(0, problem.n, _CHUNK):
            part = points[start : start + _CHUNK].astype(np.longdouble)
            weights = np.exp(part @ query - shift)
            total += weights.sum()
            first += weights @ part
        means[i] = first / total
    return (means @ problem.V.astype(np.longdouble).T), radius(points)
