"""Moments to order four of a mixture on the line, under every attention: cells beside Gauss nodes in plain NumPy.

``benchmarks/moments.py`` has the same in the plane.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit, roots_hermitenorm

import vlasov as vl

A, V, B, P, HORIZON = 0.6, -0.7, -0.4, 0.3, 0.4
MIXTURE = vl.Mixture([vl.Gaussian(-0.9, 0.03), vl.Gaussian(1.1, 0.04)], [0.6, 0.4])
L2 = vl.L2(A / (2 * np.sqrt(P)), np.sqrt(P), V)
EVERY = {  # with V z_i = V sum_j k_ij y_j
    "softmax": vl.Softmax(A=A, V=V),
    "l2": L2,
    "sinkhorn": vl.Sinkhorn(A=A, V=V),
    "sigmoid": vl.Sigmoid(A=A, V=V, bias=0.3),
    "exponential": vl.Exponential(A=A, V=V),
    "relu": vl.ReLU(A=A, V=V),
    "linear": vl.Linear(A=A, V=V),
    "mixed": vl.MultiHead([vl.Softmax(A=B, V=V), L2, vl.Sinkhorn(A=A, V=V)], [np.eye(1)] * 3),
}


def kernel(kind, x, w):
    """k_ij w_j of nodes x (n,)."""
    z = A * np.multiply.outer(x, x)
    if kind in ("sigmoid", "exponential", "relu", "linear"):
        functions = {"sigmoid": lambda z: expit(z + 0.3), "exponential": np.exp, "relu": lambda z: np.maximum(z, 0)}
        return functions.get(kind, lambda z: z)(z) * w
    if kind == "mixed":
        return kernel("reversed", x, w) + kernel("l2", x, w) + kernel("sinkhorn", x, w)
    pairs = np.exp(z * B / A if kind == "reversed" else z) * w * np.exp(-P * x * x if kind == "l2" else 0.0)
    factors, sums = np.ones(len(x)), np.zeros(len(x))
    while kind == "sinkhorn" and np.abs(sums - 1).max() > 1e-11:
        rows = 1 / (pairs @ factors)
        sums = factors * ((w * rows) @ pairs) / w
        factors /= sums
    return pairs * factors / (pairs @ factors)[:, None]


def by_nodes(kind):
    z, w = roots_hermitenorm(24)
    w = w / w.sum()
    pairs = list(zip(MIXTURE.weights, MIXTURE.components, strict=True))
    start = np.concatenate([part.mean[0] + np.sqrt(part.covariance[0, 0]) * z for _, part in pairs])
    w = np.concatenate([share * w for share, _ in pairs])
    found = solve_ivp(
        lambda t, x: V * kernel(kind, x, w) @ x, (0, HORIZON), start, rtol=1e-9, atol=1e-11, method="DOP853"
    )
    x = found.y[:, -1]
    mean = w @ x
    return np.array([mean, *(w @ (x - mean) ** k for k in (2, 3, 4))])


def moments(density):
    """Of averages over cells, of which the smoothing by a cell is taken back."""
    z, f = density.centers[0], density.values / density.values.sum()
    middle, h = f @ z, np.diff(z).mean()
    second, third, fourth = (f @ (z - middle) ** k for k in (2, 3, 4))
    without = second - h**2 / 12
    scale = density.matrix[0, 0]
    mean = density.origin[0] + scale * middle
    return np.array([mean, *(scale**k * m for k, m in ((2, without), (3, third))),
                     scale**4 * (fourth - without * h**2 / 2 - h**4 / 80)])  # fmt: skip


@pytest.mark.parametrize("kind", EVERY)
def test_moments_to_order_four(kind):
    run = vl.solve(
        vl.Problem(EVERY[kind], MIXTURE, HORIZON), "finite-volume", frame="moving", cells=256, times=[HORIZON]
    )
    true = by_nodes(kind)
    errors = np.abs(moments(vl.measure(run)) - true) / true[1] ** np.array([0.5, 1, 1.5, 2])
    assert errors.max() < 1e-5
    assert errors[:2].max() / 3 <= run.attrs["error_estimate"] + 1e-9
