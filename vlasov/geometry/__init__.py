"""Points as geometry: which of them hang together (``linkage``), and the polytope that they span (``polytope``).

Called by ``vlasov.postprocess.clusters`` and by the facts of cases.
"""

from vlasov.geometry.linkage import linked
from vlasov.geometry.polytope import Polytope, polytope

__all__ = ["Polytope", "linked", "polytope"]
