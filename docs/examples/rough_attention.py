r"""
How rough attention is on n tokens
==================================

:math:`|D_X f|`, the local Lipschitz constant of :math:`f(X)_i = \Gamma_X(x_i)`, against the number n of tokens.
Adversarial tokens make attention as rough as :math:`\sqrt n`. For random ones, Gaussian with
:math:`|\Sigma^{1/2} A \Sigma^{1/2}|^2 = 3/2`, we conjecture :math:`n^{1/4}`, up to logarithms that are felt at these n.
In tight clusters more tokens make hardly a difference. No value lies above a bound. Tokens of real text are not in this
figure: the :math:`n^{1/4}` that the paper reports for them is not settled.

.. code-block:: bash

    python docs/examples/rough_attention.py rough-attention.png

Source: Castin, Ablin, Peyré (2024), How Smooth Is Attention?, arXiv:2312.14820, the figures of Lipschitz constants.
"""

# %%
# A study of the local Lipschitz constant for three laws of tokens, with every bound.

from __future__ import annotations

import sys

import numpy as np
import xarray as xr

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.panels import draw

DATA = ("random", "adversarial", "clustered")


def study(n: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024), replicas: int = 16) -> xr.Dataset:
    """|D_X f| by law of tokens, n and replica."""
    problem = vl.Problem(vl.Softmax(A=np.diag([1.5**0.5, -(1.5**0.5)])), vl.Gaussian([0.0, 0.0], np.eye(2)), 1.0)
    return vl.lipschitz_study(problem, n=n, data=DATA, replicas=replicas, radius=3.0)


if __name__ == "__main__":
    found = study()
    for law in DATA:
        here = found.sel(data=law)
        print(f"{law}: |D_X f| ~ n^{float(here['slope']):.2f}")
    figures.save(draw(found), sys.argv[1])
