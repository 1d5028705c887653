"""Turns what users give into arrays, or says in one sentence why it cannot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlasov.errors import InputError

Array = NDArray[np.float64]
_FEW = 1000  # entries that are looked at one by one
_ROUNDING = 1e-12  # weights whose sum is this close to one are normalised


def array(value: ArrayLike, field: str, *, shape: tuple[int | None, ...] | None = None) -> Array:
    """A finite float64 array of the given shape (None: any length along that axis)."""
    try:
        result = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{short(value)} is not an array of numbers; give nested lists of equal length", field
        ) from None
    if shape is not None and not _fits(result.shape, shape):
        raise InputError(f"has shape {result.shape} where {_spell(shape)} is needed", field)
    if not finite(result):
        where = np.argwhere(~np.isfinite(result))[0]
        raise InputError(
            f"entry {where.tolist()} is {result[tuple(where)]}; every entry must be a finite number", field
        )
    return result


def finite(value: Array) -> bool:
    """Whether all entries are finite: of many if their sum is, and only if it is not, by a look at each."""
    if value.size <= _FEW:
        return bool(np.logical_and.reduce(np.isfinite(value), axis=None))
    with np.errstate(all="ignore"):
        return bool(np.isfinite(np.add.reduce(value, axis=None)) or np.isfinite(value).all())


def matrix(value: ArrayLike, field: str) -> Array:
    """A finite matrix; a number is taken for a 1 x 1 matrix."""
    result = array(value, field)
    return array(result.reshape(1, 1) if result.ndim == 0 else result, field, shape=(None, None))


def vector(value: ArrayLike, field: str, *, length: int | None = None) -> Array:
    """A finite vector; a number is taken for a vector of length 1."""
    result = array(value, field)
    return array(result.reshape(1) if result.ndim == 0 else result, field, shape=(length,))


def places(value: ArrayLike, field: str, *, dimension: int) -> Array:
    """Points as rows (m, d), not copied where they are that already: for evaluation, not for keeping."""
    if (
        isinstance(value, np.ndarray)
        and value.dtype == np.float64
        and value.shape[1:] == (dimension,)
        and finite(value)
    ):
        return value
    return points(value, field, dimension=dimension)


def points(value: ArrayLike, field: str, *, dimension: int | None = None) -> Array:
    """Points as rows (n, d); a flat list is taken for points on the line."""
    result = array(value, field)
    return array(result[:, None] if result.ndim == 1 else result, field, shape=(None, dimension))


def items(value: Any, field: str) -> tuple[Any, ...]:
    """The members of a list, or of any other sequence."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"is {short(value)} where a list is needed", field)
    return tuple(value)


def number(value: Any, field: str, *, above: float = -math.inf, below: float = math.inf) -> float:
    """A finite number strictly between two bounds."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(f"{short(value)} is not a number", field)
    if not (math.isfinite(value) and above < value < below):
        limits = [f"> {above:g}"] * (above > -math.inf) + [f"< {below:g}"] * (below < math.inf)
        raise InputError(f"is {value:g} but must be a finite number {' and '.join(limits)}".rstrip(), field)
    return float(value)


def integer(value: Any, field: str, *, least: int) -> int:
    """A whole number, at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{short(value)} is not a whole number", field)
    if value < least:
        raise InputError(f"is {value} but must be at least {least}", field)
    return int(value)


def weights(value: ArrayLike | None, field: str, *, count: int) -> Array:
    """Non-negative weights, normalised to sum to one; None: all equal."""
    if value is None:
        return np.full(count, 1.0 / count)
    result = vector(value, field, length=count)
    if (result < 0).any():
        worst = int(np.argmin(result))
        raise InputError(f"entry {worst} is {result[worst]:g}; weights must not be negative", field)
    largest = result.max(initial=0.0)
    if largest == 0:
        raise InputError("are all zero; at least one must be positive", field)
    # Normalising twice would change last bits: a measure read from a file would not equal the one written.
    if abs(result.sum() - 1) <= _ROUNDING:
        return result
    # Dividing by the largest first keeps the sum finite whatever the weights' scale.
    scaled = result / largest
    return scaled / scaled.sum()


def covariance(value: ArrayLike, field: str, *, dimension: int | None = None) -> Array:
    """A symmetric positive semi-definite matrix."""
    result = matrix(value, field)
    if result.shape[0] != result.shape[1] or (dimension is not None and result.shape[0] != dimension):
        side = "d" if dimension is None else dimension
        raise InputError(f"has shape {result.shape} where ({side}, {side}) is needed", field)
    scale = np.abs(result).max(initial=0.0)
    skew = np.abs(result - result.T)
    if skew.max(initial=0.0) > 1e-12 * scale:
        i, j = np.unravel_index(int(np.argmax(skew)), skew.shape)
        raise InputError(
            f"is not symmetric: entry [{i}, {j}] is {result[i, j]:g} and [{j}, {i}] is {result[j, i]:g}",
            field,
        )
    result = result / 2 + result.T / 2
    least = np.linalg.eigvalsh(result)[0]
    if least < -1e-12 * scale:
        raise InputError(f"has the negative eigenvalue {least:g}; a covariance must be positive semi-definite", field)
    return result


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(w is None or s == w for s, w in zip(shape, wanted, strict=True))


def _spell(shape: tuple[int | None, ...]) -> str:
    names = iter("nmkl")
    inner = ", ".join(next(names) if side is None else str(side) for side in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def short(value: Any) -> str:
    """What a value looks like, on one line of at most 60 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
