"""Hardmax attention, the limit of softmax where |A| grows without bound: each token looks at one other."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from vlasov.attention.query_key_value import QueryKeyValue
from vlasov.attention.regularity import Regularity, norm
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.linearised import Linearised
from vlasov.measures import Gaussian, How, Measure, Particles
from vlasov.patience import Patience
from vlasov.tilting import Field, Head, Request

_PRODUCTS = 2**20  # <Ax, y> that are held at a time
_ROUNDING = 4 * float(np.finfo(float).eps)


class Hardmax(QueryKeyValue, kind="hardmax"):
    """Gamma_mu(x) = V y*,   y* = argmax <Ax, y> over the tokens y of mu.

    Of several maximisers y* is the mean, by their weights: those whose <Ax, y> is the largest up to rounding. Tokens
    without weight are not seen. Velocities jump where the maximiser changes, so that there is no flow: the solver
    "layers" alone takes it. All pairs are looked at, some at a time.

    Parameters
    ----------
    Q, K
        Queries and keys, shape (k, d); or
    A
        their product A = K^T Q, shape (d, d).
    V
        Values, shape (d, d); the identity if not given.

    Notes
    -----
    Each may be constant, a ``Piecewise``, or a function of t.

    References
    ----------
    Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322.

    Examples
    --------
    A token follows the one that it likes best, however little it likes it better. At the origin all are equal:

    >>> attention, tokens = vl.Hardmax(A=[[1.0]]), vl.Particles([-1.0, 0.5, 2.0])
    >>> attention.velocity(tokens, [[-0.1], [0.0], [0.1]])
    array([[-1. ],
           [ 0.5],
           [ 2. ]])
    """

    def heads_at(self, t: float = 0.0) -> tuple[Head, ...] | None:
        """None: no tilt is strong enough."""

    def evaluate(self, measure: Measure, x: Array, t: float, request: Request, **how: Unpack[How]) -> Field:
        if not isinstance(measure, Particles):
            raise InputError(f"is a {measure.kind} where hardmax needs tokens; sample it first", "measure")
        V, about, workspace = self.values(t), how.get("about"), how.get("workspace")
        seen = measure.weights > 0
        found = _maximisers(x @ self.product(t).T, measure.points[seen], measure.weights[seen],
                            Patience(told=True) if workspace is None else workspace.patience)  # fmt: skip
        values = np.matmul(found if about is None else found - about, V.T, out=how.get("out"))
        size = float(np.abs(measure.points[seen]).max(initial=0.0))
        return Field(values, "all-pairs", _ROUNDING * self.dimension * float(np.linalg.norm(V)) * size)

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0) -> Array:
        """Zero, wherever there is one maximiser."""
        return np.zeros((len(measure.at(x)), *self.shape))

    def linearised(
        self, measure: Measure, t: float = 0.0, request: Request = Request(), **how: Unpack[How]
    ) -> Linearised:
        """None: velocities jump."""
        raise InputError("is hardmax, whose velocities jump and have no derivative; take Softmax, A large", "attention")

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array] | None:
        """None: a Gaussian has no farthest token."""

    @property
    def bounded(self) -> bool:
        """True: y* is in the convex hull of the tokens."""
        return True

    @property
    def equivariant(self) -> bool:
        """True: argmax <Ax, y + c> = argmax <Ax, y> + c."""
        return True

    @property
    def continuous(self) -> bool:
        """False."""
        return False

    def drift(self, t: float = 0.0) -> Array | None:
        return self.values(t)

    def regularity(self, radius: float, t: float = 0.0) -> Regularity:
        """|V| R, and infinite constants: velocities jump."""
        return Regularity(norm(self.values(t)) * radius, np.inf, np.inf)


def _maximisers(queries: Array, points: Array, weights: Array, patience: Patience) -> Array:
    """The mean of those points whose products with a query are the largest, query by query, (m, d).

    Which these are does not depend on the size of queries and points: products are those of numbers about one.
    """
    given, points = points, points / (float(np.abs(points).max(initial=0.0)) or 1.0)
    sizes = np.abs(queries).max(axis=1, keepdims=True, initial=0.0)
    queries = queries / np.where(sizes > 0, sizes, 1.0)
    result, many = np.empty((len(queries), points.shape[1])), max(1, _PRODUCTS // max(1, len(points)))
    far, d = np.sqrt(np.einsum("nk,nk->n", points, points).max(initial=0.0)), points.shape[1]
    rounding = _ROUNDING * d * far * np.sqrt(np.einsum("mk,mk->m", queries, queries))
    for start in range(0, len(queries), many):
        rows = slice(start, min(start + many, len(queries)))
        products = queries[rows] @ points.T
        best = products.argmax(axis=1)
        close = products >= (products[np.arange(len(best)), best] - rounding[rows])[:, None]
        several = np.flatnonzero(np.count_nonzero(close, axis=1) > 1)
        result[rows] = given[best]
        if several.size:
            shares = np.where(close[several], weights, 0.0)
            result[start + several] = (shares / shares.sum(axis=1, keepdims=True)) @ given
        patience.tick("queries", rows.stop)
    return result
