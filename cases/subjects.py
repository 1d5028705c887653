"""Subjects of cases: the groups of ``vlasov list`` and of the gallery."""

from __future__ import annotations

from vlasov.cases.load import Case

#: Every subject with a sentence about it, in the order of lists.
SUBJECTS = {
    "Gaussians": "A Gaussian stays one: mean and covariance obey equations of their own.",
    "Densities": "Mixtures, balls, boxes and rings, whose density is followed on a grid or by nodes.",
    "Tokens": "A few tokens, or some dozens: what they gather to.",
    "Masked": "Causal attention: a token sees those before it.",
    "Blocks": "LayerNorm, an MLP, layers: what stands around attention in a Transformer.",
    "Variants": "Other attention than softmax, and several heads.",
}


def subject(case: Case) -> str:
    """Return the subject of a case, by its problem and its solvers."""
    problem = case.problem
    if problem.layer_norm is not None or problem.mlp is not None or "layers" in case.solvers:
        return "Blocks"
    if problem.attention.kind == "masked":
        return "Masked"
    if problem.attention.kind != "softmax":
        return "Variants"
    return {"gaussian": "Gaussians", "particles": "Tokens"}.get(problem.initial.kind, "Densities")
