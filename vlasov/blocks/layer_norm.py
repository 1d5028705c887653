"""LayerNorm: tokens on an ellipsoid, or an attention that sees them there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.codec import Described
from vlasov.errors import InputError, choose
from vlasov.schedule import Parameter, ParameterLike, at, parameter

PLACEMENTS = ("post", "pre")
_WORTH_THREADS = 100_000  # numbers
_LEAST = 1e-150  # entry of beta whose square is a number


class AtOrigin(InputError):
    """A token where LayerNorm is not defined."""


@dataclass(frozen=True, eq=False)
class LayerNorm(Described):
    """LN(x) = beta sqrt(d) x / |x|, token by token, with beta in R^d acting on each coordinate.

    "post", after each layer: tokens stay on the ellipsoid {D u, |u| = 1}, D = diag(beta) sqrt(d), where they begin at
    LN(x_0), or at x_0 if all of them are there already, and move by

        u' = (I - u u^T) D^{-1} (Gamma(x) + g(x)),   x = D u

    "pre", before each layer: x' = Gamma_{LN#mu}(LN x) + g(LN x). g is the MLP, if there is one.

    In discrete depth (solver "layers") post-norm is x <- LN(x + h Gamma(x)), whose limit for h -> 0 is this flow where
    all entries of beta are equal and positive. Otherwise LN moves tokens of its own ellipsoid, and there is no limit.

    Parameters
    ----------
    beta
        A vector without zeros, shape (d,); ones if not given. It may depend on time.
    placement
        "post" or "pre".

    References
    ----------
    Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 2.

    Examples
    --------
    Whatever the token was, it has the length sqrt(d), here 2:

    >>> vl.LayerNorm().of(np.array([[1.0, 2.0, 2.0, 4.0]])).round(12)
    array([[0.4, 0.8, 0.8, 1.6]])
    """

    beta: Parameter | None = None
    placement: Literal["post", "pre"] = "post"

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, beta: ParameterLike | None = None, placement: Literal["post", "pre"] = "post") -> None: ...

    def __post_init__(self) -> None:
        choose(self.placement, PLACEMENTS, "placement")
        if self.beta is not None:
            read = _of_ellipsoid if self.placement == "post" else _without_zeros
            self._set(beta=parameter(self.beta, "beta", read=read, owner="layer_norm."))

    @property
    def post(self) -> bool:
        """Whether tokens themselves are kept on the ellipsoid."""
        return self.placement == "post"

    @property
    def moves(self) -> bool:
        """Whether the ellipsoid depends on time."""
        return self.beta is not None and not isinstance(self.beta, np.ndarray)

    def check(self, dimension: int) -> None:
        """Refuse another d than that of beta."""
        if self.beta is not None and at(self.beta, 0.0).shape != (dimension,):
            found = at(self.beta, 0.0).shape
            raise InputError(f"has shape {found} where {(dimension,)} is needed, as the tokens have d", "beta")

    def scale(self, dimension: int, t: float = 0.0) -> Array:
        """The diagonal of D = diag(beta) sqrt(d), shape (d,)."""
        beta = np.ones(dimension) if self.beta is None else at(self.beta, t)
        return np.sqrt(dimension) * beta

    def of(self, x: Array, t: float = 0.0, *, field: str = "x") -> Array:
        """LN(x) at points (n, d); the origin has none, and is refused.

        Parameters
        ----------
        x
            Points, shape (n, d).
        t
            Time, where beta depends on it.
        field
            What x is called where it is refused.

        Examples
        --------
        >>> vl.LayerNorm(beta=[1.0, 2.0]).of(np.array([[0.5, 0.5]])).round(12)
        array([[1., 2.]])
        """
        result, defined = directions(x, self.scale(x.shape[1], t))
        if not defined:
            refuse_origin(x, field)
        return result


def directions(x: Array, scale: Array, out: Array | None = None) -> tuple[Array, bool]:
    """scale x / |x| at points (n, d), into ``out``, which may be x; and whether all have one: the origin gets NaN."""
    from vlasov.blocks.kernels import normalise
    from vlasov.compiled.threads import in_threads
    from vlasov.compiled.views import plain

    threads = threads_for(x)
    result, undefined = np.empty(x.shape) if out is None else out, np.empty(threads, dtype=np.bool_)
    in_threads(threads, normalise, plain(x), plain(scale), result, undefined)
    return result, not undefined.any()


def threads_for(x: Array) -> int:
    """How many threads what is done to each token is worth."""
    from numba import get_num_threads

    return get_num_threads() if x.size > _WORTH_THREADS else 1


def refuse_origin(x: Array, field: str) -> None:
    """Name the token at the origin, if there is one."""
    at_origin = np.flatnonzero(~x.any(axis=1))
    if at_origin.size:
        sentence = f"token {at_origin[0]} is at the origin, where LayerNorm is 0 / 0; move it, or leave it out"
        raise AtOrigin(sentence, field)
    raise InputError("is not finite; LayerNorm needs numbers", field)


def _of_ellipsoid(value: ArrayLike, field: str) -> Array:
    """Beta under post-norm, where its squares are needed."""
    beta = _without_zeros(value, field)
    for entry in np.flatnonzero((np.abs(beta) < _LEAST) | (np.abs(beta) > 1 / _LEAST)):
        sentence = f"entry {entry} is {beta[entry]:g}, whose square is no number; choose other units of x"
        raise InputError(sentence, field)
    return beta


def _without_zeros(value: ArrayLike, field: str) -> Array:
    beta = checks.vector(value, field)
    if not beta.all():
        entry = int(np.flatnonzero(beta == 0)[0])
        raise InputError(f"entry {entry} is zero, which flattens the ellipsoid; every entry must be another", field)
    return beta
