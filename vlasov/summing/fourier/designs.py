"""How wide steps may be: the errors of interpolation of the whole sum, for the steps that plans choose from.

A wave e^{i w xi y} passes four stencils: from y to fine and from there to coarse nodes, and back to xi, where its
derivative is read. Along one axis, in units of the radius R of the sources,

    slope    sup |sum_k a_k / w_k Re e^{i w_k z} (approximate - exact derivative in xi)| / R
    value    sup |sum_k a_k Im e^{i w_k z} (approximate - exact value)|

over sources |y| <= R, targets |xi| <= Q, phases z, and sizes S = Q R >= ``LEAST_SIZE`` (stencils overhang the boxes the
more the smaller S is). The other axes are a phase and, approximated too, an error of the value each:

    error of S along axis l <= R_l (slope + (d - 1) value) sum_j w_j

The numbers were found on dense samples, as ``tests/vlasov/summing/test_fourier_internals.py`` does on fewer.
"""

from __future__ import annotations

from typing import NamedTuple


LEAST_SIZE = 4.0
_SAMPLED = 1.1  # samples may miss the supremum


class Design(NamedTuple):
    """Order and step of the stencils at points, step between coarse nodes (0: there are none), and the errors."""

    order: int
    kappa: float
    coarse: float
    slope: float
    value: float

    def error(self, d: int) -> float:
        """Of S, relative to |R| and the sum of the weights."""
        return _SAMPLED * (self.slope + (d - 1) * self.value)


DESIGNS = (
    Design(8, 0.75, 0.0, 1.69e-4, 6.69e-5),
    Design(8, 0.6881, 0.0, 6.75e-5, 3.38e-5),
    Design(8, 0.6313, 0.0, 3.89e-5, 1.81e-5),
    Design(8, 0.5791, 0.0, 1.70e-5, 9.18e-6),
    Design(8, 0.5313, 0.0, 1.11e-5, 6.15e-6),
    Design(8, 0.4874, 0.0, 5.72e-6, 2.96e-6),
    Design(8, 0.4472, 0.0, 2.87e-6, 1.59e-6),
    Design(8, 0.4103, 0.0, 1.60e-6, 8.64e-7),
    Design(8, 0.3764, 0.4633, 9.13e-7, 4.68e-7),
    Design(8, 0.3453, 0.4633, 5.36e-7, 2.53e-7),
    Design(8, 0.3168, 0.4251, 2.77e-7, 1.32e-7),
    Design(8, 0.2906, 0.4251, 1.57e-7, 6.85e-8),
    Design(8, 0.2667, 0.39, 8.89e-8, 3.41e-8),
    Design(8, 0.2446, 0.39, 5.09e-8, 1.85e-8),
    Design(8, 0.2244, 0.39, 2.66e-8, 9.98e-9),
    Design(8, 0.2059, 0.3578, 1.48e-8, 4.82e-9),
    Design(8, 0.1889, 0.3578, 7.96e-9, 2.81e-9),
    Design(8, 0.1733, 0.3282, 4.27e-9, 1.33e-9),
    Design(8, 0.159, 0.3282, 2.45e-9, 7.54e-10),
    Design(8, 0.1459, 0.3282, 1.39e-9, 4.00e-10),
    Design(8, 0.1338, 0.3011, 7.22e-10, 1.94e-10),
    Design(8, 0.1228, 0.3011, 4.21e-10, 1.29e-10),
    Design(8, 0.1126, 0.2763, 2.18e-10, 5.09e-11),
    Design(8, 0.1033, 0.2534, 1.19e-10, 2.46e-11),
    Design(8, 0.0948, 0.2534, 6.58e-11, 1.41e-11),
    Design(8, 0.087, 0.2534, 3.84e-11, 1.04e-11),
    Design(8, 0.0798, 0.2325, 2.00e-11, 3.63e-12),
    Design(8, 0.0732, 0.2325, 1.16e-11, 2.88e-12),
    Design(8, 0.0672, 0.2133, 6.06e-12, 1.02e-12),
    Design(8, 0.0616, 0.2133, 3.54e-12, 8.25e-13),
    Design(8, 0.0565, 0.1957, 1.84e-12, 2.77e-13),
    Design(8, 0.0519, 0.1795, 1.04e-12, 1.08e-13),
    Design(8, 0.0476, 0.1795, 5.61e-13, 7.63e-14),
    Design(12, 0.344, 0.0, 1.08e-8, 4.45e-9),
    Design(12, 0.3156, 0.0, 3.82e-9, 1.61e-9),
    Design(12, 0.2896, 0.0, 1.58e-9, 5.52e-10),
    Design(12, 0.2657, 0.0, 6.06e-10, 2.41e-10),
    Design(12, 0.2437, 0.0, 2.43e-10, 9.27e-11),
    Design(12, 0.2236, 0.0, 8.91e-11, 3.62e-11),
    Design(12, 0.2051, 0.2534, 3.67e-11, 1.95e-11),
    Design(12, 0.1882, 0.2325, 1.46e-11, 5.40e-12),
    Design(12, 0.1727, 0.2133, 5.78e-12, 2.20e-12),
    Design(12, 0.1584, 0.1957, 2.21e-12, 8.29e-13),
    Design(12, 0.1453, 0.1795, 8.43e-13, 3.10e-13),
    Design(12, 0.1333, 0.1647, 4.05e-13, 1.09e-13),
    Design(12, 0.1223, 0.0, 2.24e-13, 3.51e-14),
    Design(12, 0.1122, 0.0, 1.35e-13, 1.28e-14),
    Design(12, 0.103, 0.0, 1.69e-13, 5.15e-15),)
