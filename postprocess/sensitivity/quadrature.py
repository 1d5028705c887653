"""Integrals in time of rates that have kinks, by Gauss nodes in each step, and how wrong they may be.

    |..x....x....x..|..x....x....x..|      x: nodes,   |: ends of steps

The largest of several smooth eigenvalues has kinks where they cross. Between the last node of a step and the first of
the next no node feels one, but then the polynomials through the nodes on either side do not meet at the step's end; at
the first and the last time the rate itself is known. A kink anywhere in a step of length h, with polynomials of
order 2 on both sides of it, makes the rule err by less than h / 8 times what is missing at both ends of the step. Where
there are several in one step, these may cancel; how far the rule is from its middle node alone is told beside them.
"""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array

_KINK = 0.2  # |x| on [-1, 1] by three nodes errs by 0.16 of how far the middle node is from them
_MISSING = 0.125  # of the step, times how far polynomials are apart at its ends


def integrals(lengths: Array, rates: Array) -> Array:
    """Of rates (steps, nodes), over each step: (steps,)."""
    weights = np.polynomial.legendre.leggauss(rates.shape[1])[1]
    return np.asarray(lengths * (rates @ weights) / 2)


def errors(lengths: Array, rates: Array, first: float, last: float) -> Array:
    """Of these integrals, where parameters are smooth over all steps; with the rates at the first and the last time."""
    nodes, weights = np.polynomial.legendre.leggauss(rates.shape[1])
    middle = rates[:, [len(nodes) // 2]]
    within = _KINK * np.abs(lengths * ((rates - middle) @ weights) / 2)
    early, late = (rates @ _at(nodes, end) for end in (-1.0, 1.0))
    apart = np.abs(np.append(early, last) - np.append(first, late))  # at all ends of steps
    return np.asarray(within + _MISSING * lengths * (apart[:-1] + apart[1:]))


def _at(nodes: Array, x: float) -> Array:
    """The value at x of the polynomial through the nodes: its weights (nodes,)."""
    return np.array([np.prod([(x - other) / (one - other) for other in nodes if other != one]) for one in nodes])
