"""What repeated evaluations share: scratch memory that grows to the largest size asked for, and who waits for them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

from vlasov.patience import Patience


class Workspace:
    """Named buffers, whose contents are undefined when they are handed out; and the ``patience`` of who waits.

    Parameters
    ----------
    patience
        Of who waits; nobody's if not given.

    Examples
    --------
    >>> workspace = vl.tilting.Workspace()
    >>> np.shares_memory(workspace.array("scores", 100), workspace.array("scores", (5, 4)))
    True
    """

    def __init__(self, patience: Patience | None = None) -> None:
        self.patience = Patience(told=True) if patience is None else patience  # nobody waits
        self._buffers: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> np.ndarray:
        """A C-contiguous array of the given shape; the same memory for the same name as long as it is large enough."""
        size = math.prod(shape) if isinstance(shape, tuple) else shape
        held = self._buffers.get(name)
        if held is None or held.size < size or held.dtype != np.dtype(dtype):
            held = self._buffers[name] = np.empty(size, dtype=dtype)
        return held[:size].reshape(shape)
