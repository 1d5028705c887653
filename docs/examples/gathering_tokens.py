r"""
Tokens gather in clusters, and at the vertices of a polytope
============================================================

Post-norm attention keeps tokens on a sphere, where they gather in clusters (first row). Without LayerNorm and with
V = I, tokens rescaled by :math:`e^{-t}` tend to the vertices of a polytope; who leads is seen by whom (second row).

.. code-block:: bash

    python docs/examples/gathering_tokens.py gathering-tokens.png

Sources: Geshkovski et al. (2024), arXiv:2312.10794; Geshkovski et al. (2023), arXiv:2305.05465.
"""

# %%
# Two named cases. The clusters of each, their masses and the polytope of their limits are in ``found``.

from __future__ import annotations

import sys

from matplotlib.figure import Figure

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.style import new_figure, styled


@styled
def draw(cases: tuple[str, ...] = ("sphere-clusters", "leaders-polytope")) -> Figure:
    """Where tokens are in the end, and the number of clusters over time."""
    figure = new_figure(7.0, 3.4 * len(cases))
    axes = figure.subplots(len(cases), 2, squeeze=False)
    for row, name in enumerate(cases):
        run = vl.solve(name, "particles")
        found = vl.clusters(run)
        print(f"{name}: {found.sizes['cluster']} clusters, {int(found['vertex'].sum())} of them vertices")
        figures.clusters(run, found=found, axes=axes[row])
    return figure


if __name__ == "__main__":
    figures.save(draw(), sys.argv[1])
