"""The derivative of X -> Gamma_X(X) by the tokens, as products J h and J^T p without J.

``base``: what a linearised attention answers, sums of several, and what is refused. ``factors``: heads in the form that
products want, with low ranks kept. ``heads``: tilted means, which ask ``linear_cost`` first and else ``all_pairs``.
"""

from vlasov.linearised.base import Linearised
from vlasov.linearised.factors import Factors

__all__ = ["Factors", "Linearised"]
