"""What several tests of the finite-volume solver need."""

import numpy as np

import vlasov as vl

A = np.array([[0.7, 0.5], [-0.4, 0.4]])  # neither symmetric nor normal
V = np.array([[0.7, -0.6], [0.8, 0.5]])
SOFTMAX = vl.Softmax(A=A, V=V)
CLOUDS = vl.Mixture(
    [vl.Gaussian([-0.9, -0.3], [[0.08, 0.02], [0.02, 0.05]]), vl.Gaussian([0.9, 0.2], [[0.1, 0.02], [0.02, 0.15]])],
    [0.4, 0.6],
)


def run(problem, **options):
    return vl.solve(problem, "finite-volume", **{"times": [problem.horizon]} | options)


def volume(result):
    """Of a cell in the frame."""
    return float(np.prod([np.diff(result[axis].values)[0] for axis in result["density"].dims[1:]]))
