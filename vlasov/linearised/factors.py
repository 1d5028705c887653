"""Heads in the form that products with derivatives want: queries, keys, values and output, with low ranks kept.

Gamma_mu(x) = W int v(y) e^{<q(x), k(y)> - <k(y), P k(y)>} dmu / int ..,   q = Q x, k = K y, v = V y
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.tilting import Head

BLOCK = 64  # columns of a matrix


class Factors(NamedTuple):
    """One head. None stands for the identity, and of the quadratic form for zero.

    Attributes
    ----------
    query, key
        Q and K, shape (k, d).
    value, output
        V, shape (r, d), and W, shape (o, r).
    quadratic
        P, shape (k, k): keys are reweighted by e^{-<k, P k>}.
    """

    query: Array
    key: Array | None = None
    value: Array | None = None
    output: Array | None = None
    quadratic: Array | None = None

    def behind(self, output: Array) -> Factors:
        """The same behind an output matrix."""
        return self._replace(output=output if self.output is None else output @ self.output)

    @classmethod
    def of_head(cls, head: Head) -> Factors:
        """A head that does not know its Q and K: they are A and the identity."""
        return cls.narrow(head.A, None, head.V, head.P)

    @classmethod
    def narrow(cls, query: Array, key: Array | None, values: Array, quadratic: Array | None) -> Factors:
        """Values that have fewer rows than columns are summed as such; others are what the tokens are, times V."""
        if values.shape[0] < values.shape[1]:
            return cls(query, key, values, None, quadratic)
        return cls(query, key, None, values, quadratic)

    def head(self) -> Head:
        """A, V and P of the same."""
        key = np.eye(self.query.shape[1]) if self.key is None else self.key
        value = np.eye(self.query.shape[1]) if self.value is None else self.value
        output = value if self.output is None else self.output @ value
        return Head(key.T @ self.query, output, None if self.quadratic is None else key.T @ self.quadratic @ key)


def times(x: Array, matrix: Array | None) -> Array:
    """The matrix times every row; None is the identity."""
    return x if matrix is None else x @ matrix.T


def mapped(x: Array, matrix: Array | None) -> Array:
    """``times`` with smaller errors, for what exponents are made of: sums of so many terms, then of these sums."""
    if matrix is None or matrix.shape[1] <= BLOCK:
        return times(x, matrix)
    result = np.zeros((len(x), len(matrix)))
    for start in range(0, matrix.shape[1], BLOCK):
        columns = slice(start, start + BLOCK)
        result += x[:, columns] @ matrix[:, columns].T
    return result


def terms_of(columns: int) -> int:
    """How many rounding errors a number of ``mapped`` has."""
    return min(columns, BLOCK) + -(-columns // BLOCK)


def transposed(x: Array, matrix: Array | None) -> Array:
    """Its transpose times every row."""
    return x if matrix is None else x @ matrix
