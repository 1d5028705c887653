"""What a problem asks to be cited: its equation, its attention, and what stands around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from vlasov.attention import Attention
from vlasov.problem import Problem


class Reason(NamedTuple):
    """A key of ``references.bib``, and in a few words why it is cited."""

    key: str
    why: str


EQUATION = Reason("castin2025", "the Transformer PDE, its limit of many tokens and its estimates")

#: By the kind of attention.
ATTENTION = {
    "softmax": (Reason("vaswani2017", "softmax attention"),),
    "l2": (Reason("kim2021", "L2 attention"),),
    "sinkhorn": (
        Reason("sander2022", "Sinkhorn attention"),
        Reason("cuturi2013", "Sinkhorn's iteration, which normalises rows and columns in turn"),
        Reason("walker2011", "Anderson steps, by which its potentials are found"),
    ),
    "linear": (Reason("katharopoulos2020", "linear attention"),),
    "sigmoid": (Reason("ramapuram2024", "sigmoid attention"),),
    "exponential": (Reason("castin2025", "attention without normalisation"),),
    "relu": (Reason("castin2025", "attention without normalisation"),),
    "hardmax": (Reason("geshkovski2023", "hardmax, the limit of large parameters"),),
    "multi-head": (Reason("vaswani2017", "several heads"),),
    "masked": (
        Reason("vaswani2017", "the causal mask"),
        Reason("castin2024", "masked attention on [0, 1] x R^d"),
    ),
}
_NORM = (Reason("ba2016", "LayerNorm"), Reason("zhang2019", "its form here, RMSNorm"))
_CIRCLE = Reason("bruno2025", "how even tokens on the circle break into clusters that last")
_PLACEMENT = {
    "post": Reason("geshkovski2024", "post-norm as a flow on the sphere"),
    "pre": Reason("xiong2020", "pre-norm"),
}


def of_problem(problem: Problem) -> list[Reason]:
    """Reasons in the order of the problem's parts."""
    found = [reason for kind in kinds(problem.attention) for reason in ATTENTION.get(kind, ())]
    if problem.layer_norm is not None:
        found += [*_NORM, _PLACEMENT[problem.layer_norm.placement]]
    if problem.post_norm is not None and problem.dimension == 2:
        found.append(_CIRCLE)
    if problem.mlp is not None:
        found.append(Reason("vaswani2017", "the MLP of each token"))
    return found


def kinds(attention: Attention) -> Iterator[str]:
    """The attention's kind, and those of what it is made of."""
    yield attention.kind
    inner: Any = attention
    if attention.kind == "masked":
        yield from kinds(inner.attention)
    elif attention.kind == "multi-head":
        for head in inner.heads:
            yield from kinds(head)
