"""All heads' queries, keys and values of directions at once: one product of matrices, which is what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.linearised.factors import Factors

Three = tuple[Array, Array, Array]  # queries, keys, values


class _Place(NamedTuple):
    """Columns of the product that are a head's queries, keys and values; None: the directions themselves."""

    queries: slice | None
    keys: slice | None
    values: slice | None


class Maps:
    """The matrices Q, K, V of heads in one, and their outputs."""

    def __init__(self, factors: Sequence[Factors]) -> None:
        parts, self._places, self._outputs = list[Array](), list[_Place](), [f.output for f in factors]
        total = 0
        for f in factors:
            place: list[slice | None] = []
            for matrix in (f.query, f.key, f.value):
                place.append(None if matrix is None else slice(total, total + len(matrix)))
                if matrix is not None:
                    parts.append(matrix)
                    total += len(matrix)
            self._places.append(_Place(*place))
        self._matrix = np.concatenate(parts)
        first = factors[0]
        self.rows = next(len(m) for m in (first.output, first.value, first.query.T) if m is not None)
        given = [w for w in self._outputs if w is not None]
        self._output = np.concatenate(given, axis=1) if len(given) == len(factors) else None

    def of(self, h: Array) -> list[Three]:
        """Q h, K h and V h for each head."""
        moved = h @ self._matrix.T
        every = ([h if part is None else moved[:, part] for part in place] for place in self._places)
        return [(queries, keys, values) for queries, keys, values in every]

    def back(self, parts: Sequence[Three], shape: tuple[int, int]) -> Array:
        """sum of Q^T q + K^T k + V^T v over the heads."""
        moved, result = np.empty((shape[0], len(self._matrix))), np.zeros(shape)
        for place, three in zip(self._places, parts, strict=True):
            for columns, part in zip(place, three, strict=True):
                if columns is None:
                    result += part
                else:
                    moved[:, columns] = part
        result += moved @ self._matrix
        return result

    def out(self, sums: Sequence[Array]) -> Array:
        """sum of W S over the heads."""
        if self._output is not None:
            return np.concatenate(sums, axis=1) @ self._output.T
        result = np.zeros((len(sums[0]), self.rows))
        for w, each in zip(self._outputs, sums, strict=True):
            result += each if w is None else each @ w.T
        return result

    def before_out(self, p: Array) -> list[Array]:
        """W^T p for each head."""
        if self._output is None:
            return [p if w is None else p @ w for w in self._outputs]
        moved = p @ self._output
        ends = np.cumsum([w.shape[1] for w in self._outputs if w is not None])
        return np.split(moved, ends[:-1], axis=1)
