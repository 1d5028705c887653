r"""
Where covariances of the plane end
==================================

Gaussians stay Gaussian under softmax, L2, Sinkhorn and multi-head attention, and their covariances move in the cone

.. math::

    \Sigma = \begin{pmatrix} a & c \\ c & b \end{pmatrix} \mapsto (a - b,\ 2c,\ a + b).

- A is negative definite: every covariance tends to zero, the tip of the cone.
- :math:`A = -q q^\top`, V = I: limits lie on one line, :math:`\lambda u u^\top` with u orthogonal to q.
- Two heads, of which only the first has a query: it moves the first coordinate alone, and limits fill a plane.
- The symmetric part of A is indefinite: limits :math:`\lambda u u^\top` with :math:`\langle A u, u \rangle = 0` lie on
  two lines.

Others have no limit. Divided by their traces they move in the disc:

- V = I and A is positive definite: softmax blows up in finite time; L2 and Sinkhorn diverge, as their velocities grow
  no faster than x. Nearly all covariances end on the circle: their directions have rank one, and depend on the start.
- The symmetric part of A is indefinite and V is not symmetric: what becomes of a covariance depends on its start.

.. code-block:: bash

    python docs/examples/covariance_limits.py covariance-limits.png

Source: Castin, Ablin, Carrillo, Peyré (2025), arXiv:2501.18322, section 4.
"""

# %%
# The parameters of the paper's figures: Q, K, V, horizon, and which attentions are drawn.

from __future__ import annotations

import sys

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

import vlasov as vl
from vlasov.attention import Attention
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.style import END, INK, PALE, PALETTE, TOKEN, new_figure, styled

Array = NDArray[np.float64]
SQUARE = np.array([[0.45805494822409054, 0.30834960696491165], [0.23148704503556228, 0.2774245517561259]])
ROW = np.array([[0.4063236466758838, 0.913729223649989]])
Q = np.array([[0.6764132657544725, 1.5210991859339182], [-0.5118762450490144, 1.150194635377595]])
K = np.array([[-0.5907168066359194, -0.7687652516461853], [-0.33500916605030867, 0.09299944353450965]])
FIGURES = {
    "zero": (
        SQUARE,
        -SQUARE,
        [[2.6693776, -0.6915302], [-0.6915302, 2.6874461]],
        1e4,
        "softmax l2 multi-head sinkhorn",
    ),
    "a line": (ROW, -ROW, np.eye(2), 1e4, "softmax l2"),
    "a plane": (ROW, -ROW, np.eye(2), 1e4, "multi-head"),
    "two lines": (Q, K, [[-0.34889445, 0.98370333], [0.58092283, 0.07028444]], 1e3, "softmax l2"),
    "blow-up": (
        np.array([[-0.09678415830991538, 0.42220166048145347], [-0.22546156340099752, -0.6379430932117882]]),
        np.array([[-0.016286303695742424, 1.0442167783791647], [-1.0848803286340662, -2.2059248271588077]]),
        *(np.eye(2), 1e4, "softmax multi-head l2 sinkhorn"),
    ),
    "mixed": (Q, K, [[1.83175301, -0.37688784], [0.34811234, -0.11628156]], 1e3, "softmax l2 multi-head"),
}
LOOK = {
    "completed": (TOKEN, "converges"),
    "blow-up": (END, "blows up"),
    "diverging": (PALETTE[2], "diverges"),
    "stopped": (PALE, "not decided"),
}


def attention_of(name: str, variant: str) -> Attention:
    """Softmax and L2 with K^T Q / sqrt(2), Sinkhorn with K^T Q, a head for each row of Q."""
    Q, K, V = (np.array(part) for part in FIGURES[name][:3])
    if variant == "sinkhorn":
        return vl.Sinkhorn(Q, K, V)
    if variant == "multi-head":
        heads = [vl.Softmax(Q[[h]], K[[h]], V[[h]]) for h in range(len(Q))]
        return vl.MultiHead(heads, [np.eye(2)[:, [h]] for h in range(len(Q))])
    return (vl.Softmax if variant == "softmax" else vl.L2)(2**-0.25 * Q, 2**-0.25 * K, V)


def starts(count: int, limit: float) -> Array:
    """Covariances of trace one: the points (u, w, 1) of a grid inside the cone."""
    u, w = (axis.ravel() for axis in np.meshgrid(*[np.linspace(-limit, limit, count)] * 2))
    u, w = u[u * u + w * w < 1], w[u * u + w * w < 1]
    return np.moveaxis(np.array([[1 + u, w], [w, 1 - u]]) / 2, -1, 0)


# %%
# Trajectories end at different times: the first look finds these, the second has outputs at times of their own.


def solve(name: str, variant: str, count: int = 8, limit: float = 0.5) -> xr.Dataset:
    """Many covariances at once, each to the horizon or its end."""
    attention, initial, horizon = attention_of(name, variant), starts(count, limit), FIGURES[name][3]
    first = vl.covariances(attention, initial, horizon, times=[], most_growth=1e13, check=False)
    ends, status = first["end_time"].values[:, None], first["status"].values[:, None]
    times = np.append(0.0, np.geomspace(1e-2, horizon, 59)) * np.ones_like(ends)
    times = np.where(status == "blow-up", ends * (1 - np.geomspace(1.0, 1e-8, 60)), times)
    times = np.where(status == "diverging", ends * np.linspace(0.0, 1.0, 60), times)
    found = vl.covariances(attention, initial, times[:, -1], times=times, most_growth=1e14, check=False)
    return found.assign(status=first["status"], end_time=first["end_time"])


def isotropic(name: str) -> Array:
    """Unit vectors u with <A u, u> = 0, shape (k, 2): none, one or two."""
    values, vectors = np.linalg.eigh(sum((M := np.array(FIGURES[name][1]).T @ FIGURES[name][0], M.T)))
    small, large = np.sqrt(np.abs(values)) if values[0] * values[1] <= 1e-12 else (0.0, 0.0)
    lines = np.array([vectors @ (large, sign * small) for sign in (1, -1)[: 1 + (min(small, large) > 1e-6)]])
    return lines / np.linalg.norm(lines, axis=1)[:, None] if large or small else lines[:0]


# %%
# A panel for each attention: limits lie where the theory has them, in black.


@styled
def draw(count: int = 7) -> Figure:
    """Paths in the cone where all have limits, else in the disc."""
    figure = new_figure(9.6, 10.0)
    panels = [(name, variant) for name in FIGURES for variant in FIGURES[name][4].split()]
    for k, (name, variant) in enumerate(panels):
        disc = name in ("blow-up", "mixed")
        found = solve(name, variant, *((2 * count, 1.0) if disc or name == "two lines" else (count, 0.5)))
        ax = figure.add_subplot(4, 4, k + 1, **({} if disc else {"projection": "3d"}))
        status = found["status"].values
        print(f"{name}, {variant}:", ", ".join(f"{(status == s).sum()} {LOOK[s][1]}" for s in LOOK if s in status))
        for fate in np.unique(status):
            before = len(ax.lines)
            paths = found["covariance"].values[status == fate]
            figures.cone([path[np.isfinite(path[:, 0, 0])] for path in paths], trace_one=disc, ax=ax)
            for line in ax.lines[before:]:
                line.set(color=LOOK[fate][0], linewidth=0.5, markersize=1.5)
        if disc:
            ax.set_ylabel("")
        else:
            for u in [*isotropic(name), *([(0.0, 1.0)] if name == "a plane" else [])]:
                top = ax.get_zlim()[1] * np.array([u[0] ** 2 - u[1] ** 2, 2 * u[0] * u[1], 1.0])
                ax.plot(*np.stack([0 * top, top], axis=1), color=INK, linewidth=1.2)
        ax.set_title(f"{name}: {variant}")
    handles = [Line2D([], [], color=colour, label=label) for colour, label in LOOK.values()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


if __name__ == "__main__":
    figures.save(draw(), sys.argv[1])
