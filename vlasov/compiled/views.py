"""Arrays as compiled loops want them: all of one type, because every combination of types is compiled anew."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlasov.checks import Array

_FEW = 1024  # numbers that are copied sooner than looked at


class _Memory:
    """The memory of an array under other flags; keeps the array alive."""

    def __init__(self, array: Array, interface: dict[str, Any]) -> None:
        self.array, self.__array_interface__ = array, interface


def plain(array: Array) -> Array:
    """The same numbers C-contiguous and, to Numba, not read-only; a copy only where they are not contiguous.

    For loops that do not write: what is returned may share its memory with an array that must not be written.
    """
    flags = array.flags
    if flags.c_contiguous and flags.writeable:
        return array
    if array.size <= _FEW or not flags.c_contiguous:
        return array.copy()
    interface = dict(array.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    return np.asarray(_Memory(array, interface))
