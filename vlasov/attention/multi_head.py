"""Several attentions on the same tokens, each behind an output matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.attention import regularity
from vlasov.attention.base import Attention
from vlasov.attention.heads import behind
from vlasov.attention.regularity import Regularity
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.linearised import Factors, Linearised
from vlasov.linearised.base import Total, tokens_of
from vlasov.measures import Gaussian, How, Measure
from vlasov.schedule import Parameter, ParameterLike, at, parameter
from vlasov.tilting import Field, Head, Request, add_up

_DEEPEST = 8  # each level doubles the cost of an evaluation


@dataclass(frozen=True, eq=False)
class MultiHead(Attention, kind="multi-head"):
    """Gamma_mu(x) = sum_h W_h Gamma^(h)_mu(x).

    Parameters
    ----------
    heads
        Attentions on the same d. Their values V_h may have fewer rows than columns, shape (k, d).
    outputs
        W_h, one matrix (d, k) for each head; identities if not given.

    Examples
    --------
    Tokens at -1 and 1 move a token at x by tanh x under A = 1, and by -tanh x under A = -1. Their difference:

    >>> heads = vl.Softmax(A=[[1.0]]), vl.Softmax(A=[[-1.0]])
    >>> attention = vl.MultiHead(heads, outputs=([[1.0]], [[-1.0]]))
    >>> tokens = vl.Particles([-1.0, 1.0])
    >>> print(attention.velocity(tokens, [[1.0]]).round(6), (2 * np.tanh(1.0)).round(6))
    [[1.523188]] 1.523188
    """

    heads: tuple[Attention, ...]
    outputs: tuple[Parameter, ...] | None = None

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, heads: Sequence[Attention], outputs: Sequence[ParameterLike] | None = None) -> None: ...

    def __post_init__(self) -> None:
        heads = checks.items(self.heads, "heads")
        if not heads:
            raise InputError("is empty; give at least one attention", "heads")
        for i, head in enumerate(heads):
            if not isinstance(head, Attention):
                raise InputError(
                    f"is {checks.short(head)} where an attention, such as vl.Softmax(...), is needed", f"heads[{i}]"
                )
            if head.dimension != heads[0].dimension:
                raise InputError(
                    f"acts on d = {head.dimension} but heads[0] on d = {heads[0].dimension}", f"heads[{i}]"
                )
            rows = head.shape[0]
            if self.outputs is None and rows != head.dimension:
                raise InputError(
                    f"is missing, but V of heads[{i}] has {rows} rows; give one matrix per head", "outputs"
                )
        if _depth(heads) > _DEEPEST:
            raise InputError(f"are nested more than {_DEEPEST} deep; put them into one list", "heads")
        self._set(heads=heads)
        if self.outputs is None:
            return
        outputs = checks.items(self.outputs, "outputs")
        if len(outputs) != len(heads):
            raise InputError(f"has {len(outputs)} matrices for {len(heads)} heads; give one for each", "outputs")
        self._set(outputs=tuple(parameter(w, f"outputs[{h}]") for h, w in enumerate(outputs)))
        for h, (w, head) in enumerate(zip(self.outputs, heads, strict=True)):
            needed = (heads[0].dimension, head.shape[0])
            if at(w, 0.0).shape != needed:
                raise InputError(f"has shape {at(w, 0.0).shape} where {needed} is needed", f"outputs[{h}]")

    @property
    def parameters(self) -> dict[str, Parameter]:
        of_heads = {f"heads[{h}].{name}": p for h, head in enumerate(self.heads) for name, p in head.parameters.items()}
        return of_heads | {f"outputs[{h}]": w for h, w in enumerate(self.outputs or ())}

    @property
    def shape(self) -> tuple[int, int]:
        rows = self.heads[0].shape[0] if self.outputs is None else at(self.outputs[0], 0.0).shape[0]
        return rows, self.heads[0].dimension

    @property
    def causal(self) -> bool:
        return any(head.causal for head in self.heads)

    @property
    def masked(self) -> bool:
        return all(head.masked for head in self.heads)

    @property
    def unmasked(self) -> MultiHead:
        return MultiHead([head.unmasked for head in self.heads], self.outputs) if self.causal else self

    @property
    def bounded(self) -> bool:
        return all(head.bounded for head in self.heads)

    @property
    def equivariant(self) -> bool:
        return all(head.equivariant for head in self.heads)

    @property
    def continuous(self) -> bool:
        return all(head.continuous for head in self.heads)

    def tears_tails(self, covariance: Array, t: float = 0.0) -> bool:
        return any(head.tears_tails(covariance, t) for head in self.heads)

    def drift(self, t: float = 0.0) -> Array | None:
        return None if any(head.drift(t) is None for head in self.heads) else self.values(t)

    def values(self, t: float = 0.0) -> Array:
        return reduce(np.add, (w @ head.values(t) for w, head in self._parts(t)))

    def tilts(self, t: float = 0.0) -> tuple[Array, ...]:
        return tuple(chain.from_iterable(head.tilts(t) for head in self.heads))

    def heads_at(self, t: float = 0.0) -> tuple[Head, ...] | None:
        return None if self._others(t) else self._means(t)

    def evaluate(self, measure: Measure, x: Array, t: float, request: Request, **how: Unpack[How]) -> Field:
        means, others = self._means(t), self._others(t)
        memory, s = how.pop("memory", None), how.pop("s", None)
        if not others:
            return measure.attend(x, means, request, **how)
        each: How = {"workspace": how.get("workspace"), "about": how.get("about") if self.equivariant else None}
        fields, known = [measure.attend(x, means, request, **each)] if means else [], How(**each, memory=memory, s=s)
        for w, head in others:
            field = head.evaluate(measure, x, t, request, **known)
            fields.append(Field(field.values @ w.T, field.method, float(np.linalg.norm(w, 2)) * field.error_bound))
        return add_up(fields, how.get("out"))

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0, s: ArrayLike | None = None) -> Array:
        def slope(head: Attention) -> Array:
            return head.jacobian(measure, x, t, **({"s": s} if head.causal else {}))

        return reduce(np.add, (w @ slope(head) for w, head in self._parts(t)))

    def linearised(
        self, measure: Measure, t: float = 0.0, request: Request = Request(), **how: Unpack[How]
    ) -> Linearised:
        tokens, means = tokens_of(measure, self.dimension), self._factors(t)
        others = [(w, head) for w, head in self._parts(t) if head.factors_at(t) is None]
        parts: list[tuple[Array | None, Linearised]] = []
        if means:
            from vlasov.linearised.heads import tilted_means

            parts.append((None, tilted_means(tokens, means, request, how.get("workspace"))))
        parts += [(w, head.linearised(tokens, t, request, **how)) for w, head in others]
        return parts[0][1] if len(parts) == len(means[:1]) else Total(tokens.points.shape, self.shape[0], parts)

    def factors_at(self, t: float = 0.0) -> tuple[Factors, ...] | None:
        return None if any(head.factors_at(t) is None for head in self.heads) else self._factors(t)

    def _factors(self, t: float) -> tuple[Factors, ...]:
        """Of those heads that are sums of tilted means."""
        parts = self._parts(t) if self.outputs is not None else [(None, head) for head in self.heads]
        each = ((w, head.factors_at(t) or ()) for w, head in parts)
        return tuple(f if w is None else f.behind(w) for w, factors in each for f in factors)

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array] | None:
        found = [(w, head.affine(gaussian, t)) for w, head in self._parts(t)]
        parts = [(w @ part[0], w @ part[1]) for w, part in found if part is not None]
        if len(parts) < len(found):
            return None
        return reduce(np.add, (b for b, _ in parts)), reduce(np.add, (slope for _, slope in parts))

    def regularity(self, radius: float, t: float = 0.0) -> Regularity:
        others = [head.regularity(radius, t).behind(regularity.norm(w)) for w, head in self._others(t)]
        return regularity.add_up([*others, *(regularity.of_head(head, radius) for head in self._means(t))])

    def _parts(self, t: float) -> list[tuple[Array, Attention]]:
        """W_h and the attention behind it."""
        if self.outputs is None:
            return [(np.eye(self.dimension), head) for head in self.heads]
        return [(at(w, t), head) for w, head in zip(self.outputs, self.heads, strict=True)]

    def _means(self, t: float) -> tuple[Head, ...]:
        """All heads of those attentions that are sums of tilted means."""
        return tuple(chain.from_iterable(behind(w, head.heads_at(t) or ()) for w, head in self._parts(t)))

    def _others(self, t: float) -> list[tuple[Array, Attention]]:
        return [(w, head) for w, head in self._parts(t) if head.heads_at(t) is None]


def _depth(heads: Sequence[Attention]) -> int:
    """How deep heads are nested; each knows that of its own are not too deep."""
    return 1 + max((_depth(head.heads) for head in heads if isinstance(head, MultiHead)), default=0)
