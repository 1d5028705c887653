"""Parameters in time: a constant array, piecewise constant on layers, or any function of t."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.codec import Described
from vlasov.errors import InputError, LateInputError, short

Reader = Callable[[ArrayLike, str], Array]  # of what a user gives: a matrix, or a vector


@dataclass(frozen=True, eq=False)
class Piecewise(Described, kind="piecewise"):
    """p(t) = values[i] for edges[i] <= t < edges[i+1]; the first and the last value extend to all other times.

    Parameters
    ----------
    values
        k arrays of one shape, matrices or vectors: the parameter on each layer.
    edges
        k + 1 increasing times.

    Examples
    --------
    Two layers, of which the second turns values by a right angle. Solvers do not step across the jump:

    >>> V = vl.Piecewise([np.eye(2), [[0.0, -1.0], [1.0, 0.0]]], edges=[0.0, 0.5, 1.0])
    >>> V(0.5)
    array([[ 0., -1.],
           [ 1.,  0.]])
    >>> vl.Softmax(A=np.eye(2), V=V).breakpoints
    array([0.5])
    """

    values: tuple[Array, ...]
    edges: Array

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, values: Sequence[ArrayLike], edges: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        layers = tuple(_layer(value, f"values[{i}]") for i, value in enumerate(checks.items(self.values, "values")))
        if not layers:
            raise InputError("is empty; give the parameter on at least one layer", "values")
        for i, layer in enumerate(layers):
            if layer.shape != layers[0].shape:
                raise InputError(f"has shape {layer.shape} where the first layer has {layers[0].shape}", f"values[{i}]")
        edges = checks.vector(self.edges, "edges", length=len(layers) + 1)
        if (np.diff(edges) <= 0).any():
            raise InputError(f"are {edges.tolist()}; they must increase", "edges")
        self._set(values=layers, edges=edges)

    def __call__(self, t: float) -> Array:
        layer = int(np.searchsorted(self.edges[1:-1], t, side="right"))
        return self.values[layer]


@dataclass(frozen=True)
class Function:
    """A user's function of time, whose values keep their shape and stay finite."""

    function: Callable[[float], ArrayLike]
    shape: tuple[int, ...]
    field: str
    read: Reader = checks.matrix
    owner: str = ""  # of a problem's part, "mlp." say, where the problem cannot say so any more

    def __call__(self, t: float) -> Array:
        field = self.owner + self.field
        try:
            result = _value(self.function, t, field, self.read)
        except InputError as mistake:
            raise LateInputError(mistake.sentence, mistake.field) from mistake.__cause__
        if result.shape != self.shape:
            raise LateInputError(f"has shape {result.shape} but had {self.shape} at t = 0", f"{field}({t:.12g})")
        return result


def _layer(value: ArrayLike, field: str) -> Array:
    """A matrix, or a vector."""
    result = checks.array(value, field)
    return checks.vector(result, field) if result.ndim == 1 else checks.matrix(result, field)


def _value(function: Callable[[float], ArrayLike], t: float, field: str, read: Reader) -> Array:
    """What a user's function returns at time t, or a mistake that names parameter and time."""
    field, what = f"{field}({t:.12g})", "a matrix" if read is checks.matrix else "a vector"
    try:
        value = function(t)
    except Exception as error:
        raise InputError(f"raises {short(error)}; it must return {what} at every time of the run", field) from error
    if value is None:
        raise InputError(f"is None where {what} is needed; return one at every time", field)
    return read(value, field)


Parameter = Array | Piecewise | Function
ParameterLike = ArrayLike | Piecewise | Callable[[float], ArrayLike]


def parameter(value: ParameterLike, field: str, *, read: Reader = checks.matrix, owner: str = "") -> Parameter:
    """A checked parameter, a matrix if it is not to be read as a vector; constants become read-only.

    Mistakes that show during a run name the ``owner`` too: "mlp." or "layer_norm.".
    """
    if isinstance(value, Piecewise):
        for i, layer in enumerate(value.values):
            read(layer, f"{field}.values[{i}]")
        return value
    if isinstance(value, Function):
        return value
    if callable(value):
        return Function(value, _value(value, 0.0, field, read).shape, field, read, owner)
    return read(value, field)


def at(value: Parameter, t: float) -> Array:
    """The parameter's value at time t, a matrix or a vector."""
    return value if isinstance(value, np.ndarray) else value(t)


def breakpoints(values: Sequence[Parameter | None]) -> Array:
    """The times at which any of the parameters jumps: a solver must not step across them."""
    edges = [value.edges[1:-1] for value in values if isinstance(value, Piecewise)]
    return np.unique(np.concatenate(edges)) if edges else np.empty(0)
