"""The derivative of X -> Gamma_X(X) by the tokens X, as products J h and J^T p: J is never formed.

``base``: what a linearised attention answers, what all of ours check, and sums of several. ``factors``: heads as
products want them, with low ranks kept; ``maps``: those of all heads in one matrix. ``heads``: tilted means and sums
with kernels, by ``linear_cost`` where it serves, else by all pairs: ``few_dimensions`` (its loops: ``kernels``) or
products of matrices (``all_pairs``). ``moments``: linear attention. ``scaling``: Sinkhorn's. ``causal``: one prefix
after the other. ``rounding``: bounds. Attentions make these; ``vlasov.blocks`` composes them, ``vlasov.flow`` asks.
"""

from vlasov.linearised.base import Linearised
from vlasov.linearised.factors import Factors

__all__ = ["Factors", "Linearised"]
