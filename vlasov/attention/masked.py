"""Causal attention: a token at s sees those with places up to s, as in the decoders of language models.

    Gamma_mu(s, x) = Gamma_{mu(. | tau <= s)}(x),   s' = 0

Tilted means and sums with kernels are sums over prefixes (``tilting.prefixes``, ``summing.prefixes``), linear attention
has running moments; any other attention is evaluated on one prefix after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from vlasov.attention.base import Attention
from vlasov.attention.multi_head import MultiHead
from vlasov.attention.regularity import Regularity
from vlasov.attention.unnormalised import Linear, Summed
from vlasov.checks import Array, short
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.linearised import Linearised
from vlasov.linearised.base import tokens_of
from vlasov.measures import Gaussian, How, Measure, Memory, Particles
from vlasov.measures.base import told_by
from vlasov.measures.order import in_place
from vlasov.patience import Patience
from vlasov.schedule import Parameter
from vlasov.tilting import Field, Head, Request
from vlasov.tilting.results import joined

_MOST_WORK = 5e8  # tokens that are looked at, prefix by prefix
_REMEMBERED = 64  # prefixes, from whose last evaluation the next begins
_PIECE = 4096  # tokens whose second moments are held at a time


@dataclass(frozen=True, eq=False)
class Masked(Attention, kind="masked"):
    """Gamma_mu(s, x) = Gamma'_{mu(. | tau <= s)}(x): attention to tokens with places up to one's own, which stay.

    Particles have places (``Particles(points, weights, s=...)``), and so has a ``Sequence``; any other measure stands
    for its product with Uniform[0, 1], which stays a product and moves as without a mask. Prefixes are probability
    measures: also attentions that are not normalised average over what is seen.

    Parameters
    ----------
    attention
        What is masked, of any kind.

    References
    ----------
    Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 2.

    Examples
    --------
    With A = 0 each token is drawn to the mean of those up to it:

    >>> tokens = vl.Particles([1.0, 3.0, 8.0], s=[0.2, 0.5, 0.9])
    >>> vl.Masked(vl.Softmax(A=[[0.0]])).velocity(tokens, tokens.points).round(12)
    array([[1.],
           [2.],
           [4.]])
    """

    attention: Attention

    def __post_init__(self) -> None:
        if not isinstance(self.attention, Attention):
            raise InputError(
                f"is {short(self.attention)} where an attention, such as vl.Softmax(...), is needed", "attention"
            )
        if self.attention.causal:
            raise InputError("is masked already, or has heads that are; give what is inside", "attention")

    def evaluate(self, measure: Measure, x: Array, t: float, request: Request, **how: Unpack[How]) -> Field:
        places, inner = measure.seen_by(x, how.get("s")), self.attention
        if places is None:
            return inner.evaluate(measure, x, t, request, **how)
        heads = inner.heads_at(t)
        if heads is not None:
            return measure.attend_prefixes(x, places, heads, request, **how)  # type: ignore[attr-defined]
        if isinstance(inner, MultiHead):  # each kind as it likes
            placed: How = {**how, "s": places}
            return self._head_by_head.evaluate(measure, x, t, request, **placed)
        if isinstance(inner, Summed):
            return inner.evaluate_prefixes(measure, x, places, t, request, **how)
        if isinstance(inner, Linear) and isinstance(measure, Particles):
            return _linear(inner, measure, x, places, t, how.get("out"))

        memory, new = how.get("memory") or Memory(), list[Memory]()
        remembered = len(set(places.tolist())) <= _REMEMBERED

        def on_prefix(prefix: Measure, points: Array, place: float) -> tuple[Array, str, float]:
            own = memory.kept.pop((id(self), place), Memory())
            own.told = {}
            new.append(own)
            if remembered:
                memory.kept[id(self), place] = own
            field = inner.evaluate(prefix, points, t, request, workspace=how.get("workspace"), memory=own)
            return field.values, field.method, field.error_bound

        patience = (how.get("workspace") or Workspace()).patience
        values, methods, bound = _prefix_by_prefix(measure, x, places, inner.shape[:1], on_prefix, patience)
        memory.told = told_by([memory, *new])
        about = how.get("about")
        if about is not None and inner.equivariant:
            values -= inner.values(t) @ about
        return Field(in_place(values, None, how.get("out")), methods, bound)

    def linearised(
        self, measure: Measure, t: float = 0.0, request: Request = Request(), **how: Unpack[How]
    ) -> Linearised:
        """At tokens in their order: each row of J sees the tokens with s_j <= s_i."""
        tokens, inner = tokens_of(measure, self.dimension), self.attention
        tokens.seen_by(tokens.points, None)  # refuses tokens without places
        factors = inner.factors_at(t)
        if factors is not None:
            from vlasov.linearised.heads import tilted_means

            return tilted_means(tokens, factors, request, how.get("workspace"), causal=True)
        if isinstance(inner, MultiHead):
            return self._head_by_head.linearised(tokens, t, request, **how)
        if isinstance(inner, Linear | Summed):
            return inner.linearised_prefixes(tokens, t, **how)
        from vlasov.linearised.causal import PrefixByPrefix

        return PrefixByPrefix(tokens, lambda prefix: inner.linearised(prefix, t, request), inner.shape[0])

    @cached_property
    def _head_by_head(self) -> MultiHead:
        """The same with masks inside, made once: what heads remember is theirs."""
        assert isinstance(self.attention, MultiHead)
        return replace(self.attention, heads=tuple(Masked(head) for head in self.attention.heads))

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0, s: ArrayLike | None = None) -> Array:
        points, inner = measure.at(x), self.attention
        places = measure.seen_by(points, s)
        if places is None:
            return inner.jacobian(measure, points, t)
        slopes = _prefix_by_prefix(
            measure, points, places, inner.shape, lambda prefix, rows, _: (inner.jacobian(prefix, rows, t), "", 0.0)
        )
        return slopes[0]

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array] | None:
        return self.attention.affine(gaussian, t)

    def heads_at(self, t: float = 0.0) -> tuple[Head, ...] | None:
        """None: what a token sees depends on its place."""

    @property
    def causal(self) -> bool:
        return True

    @property
    def masked(self) -> bool:
        return True

    @property
    def unmasked(self) -> Attention:
        return self.attention

    # Facts and parameters are those of what is masked

    @property
    def bounded(self) -> bool:
        return self.attention.bounded

    @property
    def equivariant(self) -> bool:
        return self.attention.equivariant

    @property
    def continuous(self) -> bool:
        return self.attention.continuous

    def tears_tails(self, covariance: Array, t: float = 0.0) -> bool:
        return self.attention.tears_tails(covariance, t)

    def drift(self, t: float = 0.0) -> Array | None:
        return self.attention.drift(t)

    def regularity(self, radius: float, t: float = 0.0) -> Regularity:
        """For the conditional distance d_2: what a prefix of measures is apart, 1/s int_0^s W_1, is at most 2 d_2."""
        velocity, slope, rate = self.attention.regularity(radius, t)
        return Regularity(velocity, slope, slope + 2 * max(rate - slope, 0.0))

    def values(self, t: float = 0.0) -> Array:
        return self.attention.values(t)

    def tilts(self, t: float = 0.0) -> tuple[Array, ...]:
        return self.attention.tilts(t)

    @property
    def shape(self) -> tuple[int, int]:
        return self.attention.shape

    @property
    def parameters(self) -> dict[str, Parameter]:
        return {f"attention.{name}": parameter for name, parameter in self.attention.parameters.items()}


def _linear(inner: Linear, tokens: Particles, x: Array, places: Array, t: float, out: Array | None) -> Field:
    """V M_s A x with the second moment M_s of what is seen from s: running sums over the tokens, piece by piece."""
    order, (n, d), eps = tokens.order, tokens.points.shape, float(np.finfo(float).eps)
    ranks, seen = order.of(places)
    y, w = order.sort(tokens.points), order.sort(tokens.weights)
    queries = (x if ranks is None else x[ranks]) @ inner.product(t).T
    moved, running, mass = np.empty((len(x), d)), np.zeros((d, d)), 0.0
    for start in range(0, n, _PIECE):
        piece = slice(start, min(start + _PIECE, n))
        first, last = np.searchsorted(seen, (piece.start, piece.stop), side="right")
        seconds = running + np.cumsum(np.einsum("n,nk,nl->nkl", w[piece], y[piece], y[piece]), axis=0)
        masses, rows = mass + np.cumsum(w[piece]), seen[first:last] - start - 1
        mean = seconds[rows] / masses[rows, None, None]
        moved[first:last] = np.einsum("mkl,ml->mk", mean, queries[first:last])
        running, mass = seconds[-1], float(masses[-1])
    values, matrix = moved @ inner.values(t).T, _norm(inner.values(t)) * _norm(inner.product(t))
    terms = min(n, _PIECE) + n / _PIECE + 2 * d + 8
    far = float(np.einsum("nk,nk->n", y, y).max(initial=0.0)) * float(np.sqrt((x * x).sum(axis=1).max(initial=0.0)))
    return Field(in_place(values, ranks, out), "moments", 2 * eps * terms * float(matrix) * far)


def _norm(matrix: Array) -> float:
    """Frobenius', of which no square is too small for a number."""
    largest = float(np.abs(matrix).max())
    return largest * float(np.linalg.norm(matrix / largest)) if largest > 0 else 0.0


def _prefix_by_prefix(
    measure: Measure,
    x: Array,
    places: Array,
    shape: tuple[int, ...],
    function: Callable[[Measure, Array, float], tuple[Array, str, float]],
    patience: Patience | None = None,
) -> tuple[Array, str, float]:
    """A function of each prefix and the points that see it, (m, *shape), with methods and the largest bound."""
    distinct, which = np.unique(places, return_inverse=True)
    n = len(measure) if isinstance(measure, Particles) else 1
    if len(distinct) * n / 2 > _MOST_WORK:
        reason = f"is evaluated on {len(distinct):,} prefixes of up to {n:,} tokens one by one, which takes too long"
        raise InputError(f"{reason}; lower n, or give tokens in groups of equal s", "attention")
    result, methods, bound = np.empty((len(x), *shape)), set[str](), 0.0
    for count, group in enumerate(reversed(range(len(distinct))), start=1):  # the longest first: the rest is faster
        rows = np.flatnonzero(which == group)
        place = float(distinct[group])
        values, method, error = function(measure.prefix(place), x[rows], place)  # type: ignore[attr-defined]
        result[rows], bound = values, max(bound, error)
        methods.add(method)
        if patience is not None:
            patience.tick(f"of {len(distinct):,} prefixes", count)
    return result, joined(methods), bound
