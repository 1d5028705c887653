"""LayerNorm cures blow-up: exponential, linear and ReLU attention on the same tokens, with and without, in one picture.

python docs/cured_blow_up.py docs/images/cured-blow-up.png
"""

import sys

import numpy as np
import xarray as xr

import vlasov as vl
from vlasov.attention import Attention
from vlasov.postprocess import figures


def runs(horizon: float = 4.0, n: int = 40) -> list[xr.Dataset]:
    """Each attention without LayerNorm, with pre-norm and with post-norm."""
    tokens = vl.Particles(np.random.default_rng(4).normal([0.3, 0.1], 0.6, size=(n, 2)))
    attentions: list[Attention] = [vl.Exponential(A=np.eye(2)), vl.Linear(A=np.eye(2)), vl.ReLU(A=np.eye(2))]
    placements = [None, vl.LayerNorm(placement="pre"), vl.LayerNorm(placement="post")]
    times = np.linspace(0.0, horizon, 201)
    return [
        vl.solve(vl.Problem(attention, tokens, horizon, layer_norm=norm), "particles", times=times)
        for attention in attentions
        for norm in placements
    ]


if __name__ == "__main__":
    figures.save(figures.plot(runs(), "radius"), sys.argv[1])
