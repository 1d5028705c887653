"""Mean and covariance of many Gaussians at once, by kernels that integrate sixteen of them side by side.

``batch``: the public function. ``heads``: what kernels need of attentions. ``kernels``: their loops. ``code``: the code
of a step, made by ``vlasov.compiled.lanes`` from the equations in ``formulas``; ``layout``: where a step keeps what.
"""

from vlasov.solvers.covariances.batch import covariances

__all__ = ["covariances"]
