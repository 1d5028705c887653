r"""
LayerNorm cures blow-up
=======================

Attention without a denominator sends tokens to infinity in finite time. LayerNorm, before the attention or after each
layer, cures that. Here are exponential, linear and ReLU attention on the same forty tokens, each without LayerNorm,
with pre-norm and with post-norm: nine runs in one picture.

.. code-block:: bash

    python docs/examples/cured_blow_up.py cured-blow-up.png
"""

# %%
# Each attention has A = V = I. A run that blows up ends there, and its Dataset says when.

from __future__ import annotations

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


# %%
# The radius of the largest token. Without LayerNorm each curve ends at its blow-up; with pre-norm tokens leave at a
# bounded speed; with post-norm they stay on a circle.

if __name__ == "__main__":
    figures.save(figures.plot(*runs(), kind="radius"), sys.argv[1])
