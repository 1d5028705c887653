"""Attention: a measure makes a velocity field, Gamma_mu(x). Each kind is a few lines.

``base``: what every attention answers (its heads, its velocity, three facts). ``heads``: velocities that are sums of
tilted means, which all normalised attentions are. ``normalised``: Softmax, L2. ``sinkhorn``: Sinkhorn.
``unnormalised``: Linear, Sigmoid, Exponential, ReLU. ``hardmax``: Hardmax, for discrete layers. ``multi_head``: several
of any kind. ``masked``: any kind, in a sequence. ``regularity``: constants of the theory's estimates. Called by
``vlasov.problem`` and ``vlasov.flow``; solvers go through the flow.

References: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322; Vaswani et al. (2017), arXiv:1706.03762.
"""

from vlasov.attention.base import Attention
from vlasov.attention.hardmax import Hardmax
from vlasov.attention.masked import Masked
from vlasov.attention.multi_head import MultiHead
from vlasov.attention.normalised import L2, Softmax
from vlasov.attention.sinkhorn import Sinkhorn
from vlasov.attention.unnormalised import Exponential, Linear, ReLU, Sigmoid

__all__ = [
    "L2",
    "Attention",
    "Exponential",
    "Hardmax",
    "Linear",
    "Masked",
    "MultiHead",
    "ReLU",
    "Sigmoid",
    "Sinkhorn",
    "Softmax",
]
