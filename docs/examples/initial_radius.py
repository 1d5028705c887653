r"""
How much the width of the tokens at first matters
=================================================

Tokens that are uniform on a ball of radius :math:`R_0` about c, and how the state at time T depends on :math:`R_0`:

.. math:: |d\mu(T) / dR_0| \, / \, |d\mu(0) / dR_0|

in the norm of :math:`L^2`, token by token: the same tokens, scaled; beside it what the theory grants.

.. code-block:: bash

    python docs/examples/initial_radius.py initial-radius.png

For A = I and :math:`R_0 \to \infty` attention is hardmax, :math:`|x(T)| = |x(0)| + (e^T - 1) R_0`, and the quotient
:math:`\sqrt{1 + 8 c / 3 + 2 c^2}` with :math:`c = e^T - 1`. The theory bounds it by :math:`e^{\int L}`, L the rate of
stability of :math:`W_p`: ``vl.estimates.stability_exponent``.
"""

# %%
# Two runs for each radius, a ten-thousandth to the left and to the right of it, give the derivative.

from __future__ import annotations

import sys

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.style import PALE, PALETTE, new_figure, styled

MATRICES = {
    "$A = I$": [[1.0, 0.0], [0.0, 1.0]],
    "$A = -I$": [[-1.0, 0.0], [0.0, -1.0]],
    "$A$ a rotation": [[0.0, -1.0], [1.0, 0.0]],
}
RADII = np.linspace(0.1, 4.0, 40)
HORIZON = 1.0
_STEP = 1e-4  # of R_0, of a difference quotient


def study() -> xr.Dataset:
    """Final states for two neighbours of each R_0."""
    problem = vl.Problem(vl.Softmax(A=np.eye(2)), vl.Ball(1.0, [0.0, 0.0]), HORIZON)
    near = np.sort(np.concatenate([RADII - _STEP, RADII + _STEP]))
    return vl.sweep(
        problem, {"attention.A": list(MATRICES.values()), "initial.radius": near}, solver="particles",
        save=["position", "weight", "covariance"], times=[0.0, HORIZON],
        options={"n": 400, "sampling": "quadrature", "tolerance": 1e-10}, progress=True,
    )  # fmt: skip


# %%
# The difference quotient of positions, in the norm of the tokens' weights.


def growth(found: xr.Dataset) -> xr.DataArray:
    """|d x(T) / d R_0| / |d x(0) / d R_0| of the tokens' positions."""
    weight = found["weight"].isel({"initial.radius": slice(None, None, 2)}).drop_vars("initial.radius")
    pair = [found["position"].isel({"initial.radius": slice(k, None, 2)}).drop_vars("initial.radius") for k in (0, 1)]
    squares = (((pair[1] - pair[0]) ** 2).sum("component") * weight).sum("particle")
    quotient: xr.DataArray = (squares.sel(time=HORIZON) / squares.sel(time=0.0)) ** 0.5
    return quotient.assign_coords({"initial.radius": RADII})


# %%
# The final width, the growth of a change of the radius, and its logarithm beside that of the bound.


@styled
def draw(found: xr.Dataset) -> Figure:
    """Growth against R_0; the final width; the exponent beside that of the bound."""
    figure = new_figure(7.0, 2.7)
    left, middle, right = figure.subplots(1, 3)
    grown = growth(found)
    for k, name in enumerate(MATRICES):
        line = grown.isel({"attention.A": k})
        here = found.isel({"attention.A": k}).sel(time=HORIZON)
        width = np.sqrt(np.trace(here["covariance"].values, axis1=-2, axis2=-1))
        left.plot(here["initial.radius"], width, color=PALETTE[k], label=name)
        middle.plot(RADII, line, color=PALETTE[k], label=name)
        right.plot(RADII, np.abs(np.log(line)), color=PALETTE[k])
        print(f"{name}: growth", ", ".join(f"{float(line[i]):.4f} at R_0 = {RADII[i]:.1f}" for i in (0, 9, 19, 39)))
    attention = vl.Softmax(A=np.eye(2))
    bound = [vl.estimates.stability_exponent(attention, radius, HORIZON) for radius in RADII]
    print("exponent of the bound:", ", ".join(f"{bound[i]:.3g} at R_0 = {RADII[i]:.1f}" for i in (0, 9, 19, 39)))
    right.plot(RADII, bound, color=PALE, linestyle="--", label=r"$\int L$, a priori")
    c = np.exp(HORIZON) - 1
    limit = np.sqrt(1 + 8 * c / 3 + 2 * c**2)
    print(f"hardmax: {limit:.4f}")
    middle.axhline(limit, color=PALE, linestyle=":", label="hardmax, $A = I$")
    right.set_yscale("log")
    right.set_ylim(1e-3, 1e6)
    titles = ("standard deviation at $T$ = 1", "growth of a change of $R_0$", "its logarithm, absolute")
    for ax, title, place in zip(
        (left, middle, right), titles, ("upper left", "center right", "upper right"), strict=True
    ):
        ax.set_title(title)
        ax.set_xlabel("$R_0$")
        ax.legend(loc=place)
    middle.set_ylim(0.0, 5.0)
    return figure


if __name__ == "__main__":
    figures.save(draw(study()), sys.argv[1])
