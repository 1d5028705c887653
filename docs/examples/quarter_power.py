r"""
How rough Gaussian tokens make attention
========================================

:math:`|D_X f|` of Gaussian tokens grows like a power of n, by :math:`s = |\Sigma^{1/2} A \Sigma^{1/2}|`:

.. math::

    |D_X f| = n^\alpha \text{ up to powers of } \log n, \qquad
    \alpha = \frac{2 s^2 - 1}{2 (2 s^2 + 1)} \text{ for } s^2 > 1/2, \text{ else } 0

is our conjecture; ``vl.estimates.gaussian_exponent`` has the argument, which is no proof. The growth like
:math:`n^{1/4}` that was reported for real text is not explained by it: the code released with that report computes
:math:`\sqrt{|J^\top f(X)|}`, from the output of ``torch.func.jvp`` in place of the derivative. What :math:`|J|` of
trained models does is not settled here; trained weights are needed.

This program takes 38 s of one processor, so that it did not run when this manual was built. The picture is of 20
November 2026.

.. image:: /images/quarter-power.png
    :alt: Roughness of attention against n, and its exponents against s^2
    :align: center

.. code-block:: bash

    python docs/examples/quarter_power.py quarter-power.png
"""

# sphinx_gallery_thumbnail_path = "images/quarter-power.png"

# %%
# Tokens are drawn on the line, A = s: in any d the steepest direction decides.

from __future__ import annotations

import sys

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.style import INK, PALETTE, new_figure, styled
from vlasov.postprocess.lipschitz import FIT
from vlasov.postprocess.studies.slopes import band

SQUARES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 8.0)  # s^2
SIZES = tuple(2**k for k in range(5, 12))


def study(square: float, replicas: int = 100) -> xr.Dataset:
    """Tokens of N(0, 1) with A = s."""
    problem = vl.Problem(vl.Softmax(A=[[square**0.5]]), vl.Gaussian([0.0], [[1.0]]), 1.0)
    return vl.lipschitz_study(problem, n=SIZES, data="random", replicas=replicas, tolerance=1e-3)


# %%
# Growth with n, and its exponent beside the conjectured one: at finite n the logarithms are felt.


@styled
def draw(studies: dict[float, xr.Dataset]) -> Figure:
    """|D_X f| against n, and its exponent against s^2."""
    figure = new_figure(7.0, 3.0)
    left, right = figure.subplots(1, 2)
    for k, (square, found) in enumerate(studies.items()):
        values, colour = band(found["lipschitz"].values[0], FIT), PALETTE[k % len(PALETTE)]
        slope, low, high = (float(found[name][0]) for name in ("slope", "low", "high"))
        label = f"{square:g}: $n^{{{slope:.2f} \\pm {(high - low) / 2:.2f}}}$"
        left.plot(SIZES, values.mean, color=colour, marker="o", label=label)
        left.fill_between(SIZES, values.low, values.high, color=colour, alpha=0.2, linewidth=0)
        right.errorbar(square, slope, [[slope - low], [high - slope]], color=colour, marker="o", capsize=3)
    left.set_xscale("log", base=2)
    left.set_yscale("log")
    left.set_xlabel("$n$")
    left.set_title("$|D_X f|$, by $s^2$")
    low, high = left.get_ylim()
    left.set_ylim(low, high * (high / low) ** 0.75)
    left.legend(loc="upper left", ncols=2, fontsize=7)
    squares = np.geomspace(0.2, 10, 200)
    expected = [vl.estimates.gaussian_exponent(square**0.5) for square in squares]
    right.plot(squares, expected, color=INK, label=r"$n \to \infty$, conjectured")
    right.set_xscale("log")
    right.set_xlabel("$s^2$")
    right.set_title(f"Exponents, $n$ = {SIZES[0]} to {SIZES[-1]}")
    right.legend(loc="upper left")
    return figure


if __name__ == "__main__":
    figures.save(draw({square: study(square) for square in SQUARES}), sys.argv[1])
