"""Turns what users give into arrays, or says in one sentence why it cannot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlasov.errors import InputError, short as short

Array = NDArray[np.float64]
_FEW = 1000  # entries that are looked at one by one
_ROUNDING = 1e-12  # weights whose sum is this close to one are normalised
_NO_NUMBERS = {"b": "booleans", "c": "complex numbers", "m": "times", "M": "dates"}  # by NumPy's kinds
_LARGEST = 2**63 - 1  # that NumPy counts to
SEEDS = 2**128 - 1  # as large as ``secrets.randbits(128)``


def array(value: ArrayLike, field: str, *, shape: tuple[int | None, ...] | None = None) -> Array:
    """A finite float64 array of the given shape (None: any length along that axis)."""
    plain = isinstance(value, np.ndarray) and value.dtype == np.float64 and not np.ma.isMaskedArray(value)
    result = np.array(value) if plain else _converted(value, field)
    if shape is not None and not _fits(result.shape, shape):
        raise InputError(f"has shape {result.shape} where {_spell(shape)} is needed", field)
    if not finite(result):
        where = np.argwhere(~np.isfinite(result))[0]
        raise InputError(
            f"entry {where.tolist()} is {result[tuple(where)]}; every entry must be a finite number", field
        )
    return result


def _converted(value: Any, field: str) -> Array:
    """Real numbers as float64. NumPy would take True, complex numbers, dates, texts and what a mask hides for some."""
    try:
        several = isinstance(value, list | tuple)
        if np.ma.is_masked(value) or (several and any(map(np.ma.is_masked, value))):
            raise InputError("has masked entries; fill them, or leave them out", field)
        given, kinds = np.asarray(value), set[str]()
        if given.dtype.kind == "O" or (several and given.dtype.kind in "iuf"):  # where True would pass for 1.0
            kinds |= {_kind(entry) for entry in np.asarray(value, dtype=object).flat}
        else:
            kinds.add(given.dtype.kind)
        for kind in sorted(kinds & set(_NO_NUMBERS)):
            raise InputError(f"holds {_NO_NUMBERS[kind]} where real numbers are needed", field)
        if kinds <= set("iuf"):
            return np.array(given, dtype=np.float64)
    except InputError:
        raise
    except OverflowError:
        raise InputError("holds an integer beyond 1.8e308, the largest number there is", field) from None
    except Exception:  # what arrays of users' own raise, and lists of unequal length or nested without end
        pass
    raise InputError(f"{short(value)} is not an array of numbers; give nested lists of equal length", field)


def _kind(entry: Any) -> str:
    """NumPy's letter for what a single object is; "O" for none of those."""
    kind = {bool: "b", float: "f", int: "i", complex: "c"}.get(type(entry)) or np.asarray(entry).dtype.kind
    return "f" if kind == "O" and hasattr(entry, "__float__") else kind  # fractions, large integers


def finite(value: Array) -> bool:
    """Whether all entries are finite: of many if their sum is, and only if it is not, by a look at each."""
    if value.size <= _FEW:
        return bool(np.logical_and.reduce(np.isfinite(value), axis=None))
    with np.errstate(all="ignore"):
        return bool(np.isfinite(np.add.reduce(value, axis=None)) or np.isfinite(value).all())


def matrix(value: ArrayLike, field: str) -> Array:
    """A finite matrix; a number is taken for a 1 x 1 matrix."""
    result = array(value, field)
    result = array(result.reshape(1, 1) if result.ndim == 0 else result, field, shape=(None, None))
    if result.size == 0:
        raise InputError(f"has shape {result.shape}; give at least one number", field)
    return result


def vector(value: ArrayLike, field: str, *, length: int | None = None) -> Array:
    """A finite vector; a number is taken for a vector of length 1."""
    result = array(value, field)
    result = array(result.reshape(1) if result.ndim == 0 else result, field, shape=(length,))
    if result.size == 0 and length is None:
        raise InputError("is empty; give at least one number", field)
    return result


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
    with suppress(TypeError):  # arrays without axes say that they have members, and have none
        if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
            return tuple(value)
    raise InputError(f"is {short(value)} where a list is needed", field)


def number(value: Any, field: str, *, above: float = -math.inf, below: float = math.inf) -> float:
    """A finite number strictly between two bounds."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(f"{short(value)} is not a number", field)
    try:
        result = float(value)
    except OverflowError:  # an integer
        result = math.inf if value > 0 else -math.inf
    if not (math.isfinite(result) and above < result < below):
        limits = [f"> {above:g}"] * (above > -math.inf) + [f"< {below:g}"] * (below < math.inf)
        raise InputError(f"is {result:g} but must be a finite number {' and '.join(limits)}".rstrip(), field)
    return result


def integer(value: Any, field: str, *, least: int, most: int = _LARGEST) -> int:
    """A whole number from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{short(value)} is not a whole number", field)
    if value < least:
        raise InputError(f"is {short(int(value))} but must be at least {least}", field)
    if value > most:
        raise InputError(
            f"is {short(int(value))} but must be at most {most if most < 10_000 else format(most, '.0e')}", field
        )
    return int(value)


def flag(value: Any, field: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool):
        raise InputError(f"is {short(value)} where True or False is needed", field)
    return bool(value)


def text(value: Any, field: str) -> str:
    """A text that a file can hold."""
    if not isinstance(value, str):
        raise InputError(f"is {short(value)} where a text is needed", field)
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InputError(f"is {short(value)}, with a character that no file can hold; leave it out", field)
    return value


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
    with np.errstate(over="ignore"):
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
