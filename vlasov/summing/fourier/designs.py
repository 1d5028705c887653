"""How wide steps may be: the errors of interpolation of the whole sum, for the steps that plans choose from.

A wave e^{i w xi y} passes four stencils: from y to fine and from there to coarse nodes, and back to xi, where its
derivative is read. Along one axis, in units of the radius R of the sources,

    slope    sup |sum_k a_k / w_k Re e^{i w_k z} (approximate - exact derivative in xi)| / R
    value    sup |sum_k a_k Im e^{i w_k z} (approximate - exact value)|

over sources |y| <= R, targets |xi| <= Q, phases z, and sizes S = Q R >= ``LEAST_SIZE`` (stencils overhang the boxes the
more the smaller S is). The other axes are a phase and, approximated too, an error of the value each:

    error of S along axis l <= R_l (slope + (d - 1) value) sum_j w_j

The numbers were found on dense samples, as ``tests/vlasov/summing/test_fourier_internals.py`` does on fewer, and are
not proved: more samples, some hundred for each of eight designs, found up to 1.28 times as much for the value and 1.14
times for the slope. Designs promise 1.5 times what stands here.
"""

from __future__ import annotations

from typing import NamedTuple

LEAST_SIZE = 4.0
_SAMPLED = 1.5  # samples may miss the supremum


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
    Design(8, 0.4103, 0.4753, 1.61e-6, 8.64e-7),
    Design(8, 0.3764, 0.4484, 9.18e-7, 4.66e-7),
    Design(8, 0.3453, 0.4484, 5.42e-7, 2.51e-7),
    Design(8, 0.3168, 0.4484, 2.76e-7, 1.29e-7),
    Design(8, 0.2906, 0.423, 1.60e-7, 6.74e-8),
    Design(8, 0.2667, 0.399, 8.90e-8, 3.39e-8),
    Design(8, 0.2446, 0.399, 5.15e-8, 1.81e-8),
    Design(8, 0.2244, 0.399, 2.63e-8, 9.57e-9),
    Design(8, 0.2059, 0.3764, 1.47e-8, 4.56e-9),
    Design(8, 0.1889, 0.3764, 7.89e-9, 2.48e-9),
    Design(8, 0.1733, 0.3551, 4.35e-9, 1.29e-9),
    Design(8, 0.159, 0.3551, 2.45e-9, 6.82e-10),
    Design(8, 0.1459, 0.335, 1.34e-9, 2.96e-10),
    Design(8, 0.1338, 0.335, 7.19e-10, 1.83e-10),
    Design(8, 0.1228, 0.335, 4.06e-10, 1.12e-10),
    Design(8, 0.1126, 0.3161, 2.16e-10, 5.28e-11),
    Design(8, 0.1033, 0.3161, 1.23e-10, 3.77e-11),
    Design(8, 0.0948, 0.2982, 6.89e-11, 1.61e-11),
    Design(8, 0.087, 0.2813, 3.64e-11, 7.34e-12),
    Design(8, 0.0798, 0.2813, 2.07e-11, 5.68e-12),
    Design(8, 0.0732, 0.2654, 1.10e-11, 2.66e-12),
    Design(8, 0.0672, 0.2654, 6.76e-12, 2.22e-12),
    Design(8, 0.0616, 0.2504, 3.55e-12, 8.25e-13),
    Design(8, 0.0565, 0.2362, 1.95e-12, 3.84e-13),
    Design(8, 0.0519, 0.2228, 1.05e-12, 1.42e-13),
    Design(8, 0.0476, 0.2228, 6.58e-13, 1.26e-13),
    Design(12, 0.344, 0.0, 1.08e-8, 4.45e-9),
    Design(12, 0.3156, 0.0, 3.82e-9, 1.61e-9),
    Design(12, 0.2896, 0.335, 1.49e-9, 5.67e-10),
    Design(12, 0.2657, 0.335, 5.77e-10, 2.56e-10),
    Design(12, 0.2437, 0.3161, 2.33e-10, 1.08e-10),
    Design(12, 0.2236, 0.2982, 8.61e-11, 3.99e-11),
    Design(12, 0.2051, 0.2813, 3.53e-11, 1.62e-11),
    Design(12, 0.1882, 0.2654, 1.42e-11, 5.48e-12),
    Design(12, 0.1727, 0.2504, 5.47e-12, 2.39e-12),
    Design(12, 0.1584, 0.2362, 2.26e-12, 8.77e-13),
    Design(12, 0.1453, 0.2228, 8.91e-13, 3.33e-13),
    Design(12, 0.1333, 0.2102, 3.91e-13, 1.18e-13),
    Design(12, 0.1223, 0.0, 2.24e-13, 3.51e-14),
    Design(12, 0.1122, 0.0, 1.35e-13, 1.28e-14),
    Design(12, 0.103, 0.0, 1.69e-13, 5.15e-15),
)
