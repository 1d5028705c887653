"""What a linearisation keeps in memory: the arrays that it can reach, each counted once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vlasov.compiled.workspace import Workspace
from vlasov.measures import Measure

_SHARED = (Workspace, Measure)  # which live on without it


def held(root: object) -> int:
    """Bytes of all arrays behind an object's attributes; a view counts as the array that it keeps alive."""
    seen, waiting, total = set[int](), [root], 0
    while waiting:
        one: Any = waiting.pop()
        if id(one) in seen or isinstance(one, (str, bytes, int, float, type, *_SHARED)):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            if isinstance(one.base, np.ndarray):
                waiting.append(one.base)
            else:
                total += one.nbytes
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, (list, tuple, set)):
            waiting += one
        elif not callable(one):
            waiting.append(getattr(one, "__dict__", {}))
            waiting += [getattr(one, name, None) for name in getattr(type(one), "__slots__", ())]
    return total
