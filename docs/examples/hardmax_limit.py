r"""
How fast softmax approaches hardmax
===================================

On the circle, for growing beta: :math:`W_p(t)` between tokens under softmax with :math:`\beta A` and the same tokens
under hardmax, for a density that is smooth and for one that jumps.

This program takes 15 s of one processor, so that it did not run when this manual was built. The picture is of 20
November 2026.

.. image:: /images/hardmax-limit.png
    :alt: Distances between softmax and hardmax against beta, for a smooth and a jumping density
    :align: center

.. code-block:: bash

    python docs/examples/hardmax_limit.py hardmax-limit.png

Where a density is positive all over the circle, hardmax moves each token by itself, :math:`x' = P_x A x / |A x|`. The
theory bounds :math:`W` by :math:`C(t) \sqrt{\log \beta / \beta}`. Smooth densities are faster, :math:`1 / \beta`. A
jump is felt by tokens that look at it from within :math:`\beta^{-1/2}`, with a velocity of that size. Tokens that pass
by feel it for a short time; where they stay, as here, :math:`W_\infty \sim \beta^{-1/2}` and
:math:`W_2 \sim \beta^{-3/4}`: the bound is sharp up to its logarithm.

Alcalde, Bungert, Riedl, Roith (2026), *Quantifying Concentration Phenomena of Mean-Field Transformers in the
Low-Temperature Regime*.
"""

# sphinx_gallery_thumbnail_path = "images/hardmax-limit.png"

# %%
# Tokens stand at equidistant angles, and their weights are the density.

from __future__ import annotations

import sys

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

import vlasov as vl
from vlasov.checks import Array
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.style import PALE, PALETTE, new_figure, styled

A = np.array([[1.0, 0.0], [0.0, 0.4]])
BETAS = np.logspace(3, 12, 10, base=2.0)
ORDERS = {"W_1": 1.0, "W_2": 2.0, "W_inf": np.inf}


def tokens(density: str, n: int) -> vl.Particles:
    """A density on the circle at equidistant angles."""
    angles = 2 * np.pi * (np.arange(n) + 0.5) / n
    smooth = 1 + 0.5 * np.cos(angles - 0.7)
    jumping = np.where(angles < np.pi, 1.5, 0.5)  # at the angles 0 and pi, where hardmax rests
    weights = smooth if density == "smooth" else jumping
    return vl.Particles(np.stack([np.cos(angles), np.sin(angles)], axis=1), weights)


# %%
# Hardmax moves each angle by an equation of its own, which SciPy integrates. On a circle close tokens keep their order,
# which is optimal transport: distances are sums over tokens.


def hardmax(points: Array, times: Array) -> Array:
    """Tokens (times, n, 2) moved by x' = P_x A x / |A x|, as angles."""

    def turning(_: float, angles: Array) -> Array:
        x = np.stack([np.cos(angles), np.sin(angles)])
        target = A @ x / np.linalg.norm(A @ x, axis=0)
        return x[0] * target[1] - x[1] * target[0]

    start = np.arctan2(points[:, 1], points[:, 0])
    found = solve_ivp(turning, (0.0, times[-1]), start, t_eval=times, method="DOP853", rtol=1e-10, atol=1e-12).y.T
    return np.stack([np.cos(found), np.sin(found)], axis=2)


def apart(run: xr.Dataset) -> xr.DataArray:
    """W_p of tokens to the same tokens moved by hardmax: on a circle close ones keep their order, which is optimal."""
    times, weights = run["time"].values, run["weight"].values
    gaps = np.linalg.norm(run["position"].values - hardmax(run["position"].values[0], times), axis=2)
    means = [gaps.max(axis=1) if np.isinf(p) else (gaps**p @ weights) ** (1 / p) for p in ORDERS.values()]
    return xr.DataArray(np.array(means), {"order": list(ORDERS), "time": times}, ("order", "time"))


# %%
# One sweep over beta for each density: ``vl.sweep`` keeps the distances, and nothing else of the runs.


def study(density: str, n: int = 8192) -> xr.Dataset:
    """The distances of one density, for all beta."""
    problem = vl.Problem(vl.Softmax(A=A), tokens(density, n), 1.0, layer_norm=vl.LayerNorm([0.5**0.5] * 2))
    return vl.sweep(
        problem, {"attention.beta": BETAS}, solver="particles", save=apart, times=[0.0, 0.25, 0.5, 1.0], progress=True
    )


# %%
# Slopes in logarithms, and the picture.


def slope(x: Array, y: Array) -> float:
    """In logarithms, of the last half."""
    last = max(2, x.size // 2)
    return float(np.polyfit(np.log(x[-last:]), np.log(y[-last:]), 1)[0])


@styled
def draw(studies: dict[str, xr.Dataset]) -> Figure:
    """W_p at the end against beta; and in time."""
    figure = new_figure(7.0, 2.9)
    axes = figure.subplots(1, 3)
    bound: Array = np.sqrt(np.log(BETAS) / BETAS)
    for ax, (density, found) in zip(axes, studies.items(), strict=False):
        for name, colour in zip(ORDERS, PALETTE, strict=False):
            distances = found["apart"].sel(order=name, time=1.0).values
            fitted, against = slope(BETAS, distances), slope(bound, distances)
            print(f"{density}, {name}: beta^{fitted:.3f}, sqrt(log beta / beta)^{against:.3f}")
            label = f"$W_{{{name[2:].replace('inf', chr(92) + 'infty')}}}$: {fitted:.2f}".replace("-", "−")
            ax.loglog(BETAS, distances, "o-", color=colour, label=label)
        scale = float(found["apart"].sel(order="W_inf", time=1.0)[0]) * 1.5 / bound[0]
        ax.loglog(BETAS, scale * bound, "--", color=PALE, label=r"$\sqrt{\log\beta\,/\beta}$")
        ax.set_title(f"{density} density, $t$ = 1")
        ax.set_xlabel(r"$\beta$")
        ax.legend(loc="lower left")
    axes[0].set_ylabel("distance to hardmax")
    for k, beta in enumerate(BETAS[1::2]):
        line = studies["jumping"]["apart"].sel({"order": "W_inf", "attention.beta": beta})
        axes[2].plot(line["time"], line, "o-", color=PALETTE[k], label=rf"$\beta$ = {beta:g}")
    axes[2].set_title(r"jumping density, $W_\infty(t)$")
    axes[2].set_xlabel("$t$")
    axes[2].legend(loc="upper left")
    return figure


if __name__ == "__main__":
    figures.save(draw({density: study(density) for density in ("smooth", "jumping")}), sys.argv[1])
