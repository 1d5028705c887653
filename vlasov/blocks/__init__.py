"""What stands around attention in a Transformer: LayerNorm and the MLP, and the block that all of it makes.

``layer_norm``: tokens on an ellipsoid, or seen there. ``mlp``: what each token adds by itself. ``block``: the velocity
law of the whole, which answers what an attention answers, composed here for every flow (one after the other, as
sub-layers, they stand in ``solvers/transformer.py``). ``normalised``: measures that LayerNorm has put onto the
ellipsoid. ``kernels``: their loops. Called by ``vlasov.problem``; solvers go through ``problem.block`` and
``problem.start``.
"""

from vlasov.blocks.block import Block
from vlasov.blocks.layer_norm import AtOrigin, LayerNorm
from vlasov.blocks.mlp import MLP
from vlasov.blocks.normalised import Normalised, normalised

__all__ = ["MLP", "AtOrigin", "Block", "LayerNorm", "Normalised", "normalised"]
