r"""
Clusters merge in plateaus
==========================

How many clusters do tokens on the circle form? They merge, one by one, and for large :math:`\beta` they wait long
before each merger: the number of clusters in the plane of t and :math:`\beta` has plateaus.

This program takes 18 s of one processor, so that it did not run when this manual was built. The picture is of 20
November 2026.

.. image:: /images/plateaus.png
    :alt: The number of clusters in the plane of t and beta
    :align: center

.. code-block:: bash

    python docs/examples/plateaus.py plateaus.png

.. math::

    x_i' = P_{x_i} \frac{\sum_j e^{\beta \langle x_i, x_j \rangle} x_j}{\sum_j e^{\beta \langle x_i, x_j \rangle}},
    \qquad A = \beta I,\ V = I,\ \text{post-norm}

Geshkovski, Letrouit, Polyanskiy, Rigollet (2023), *A mathematical perspective on Transformers*, arXiv:2312.10794.
"""

# sphinx_gallery_thumbnail_path = "images/plateaus.png"

# %%
# The same tokens for all beta. ``vl.clusters`` joins tokens by single linkage, and counts at each output time.

from __future__ import annotations

import sys

import numpy as np
import xarray as xr
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.style import new_figure, styled, time_colours

BETAS = np.geomspace(1.0, 128.0, 29)
TIMES = np.concatenate([[0.0], np.geomspace(0.3, 1000.0, 80)])
REACH = 0.03  # of the circle's radius: steps that join tokens


def count(run: xr.Dataset) -> xr.DataArray:
    """Clusters at each output time."""
    return vl.clusters(run, tolerance=REACH)["count"]


def study(n: int = 128) -> xr.Dataset:
    """The same tokens for all beta, spread over the circle with small irregularities."""
    angles = 2 * np.pi * (np.arange(n) + np.random.default_rng(2).uniform(0.0, 1.0, n)) / n
    cloud = vl.Particles(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    problem = vl.Problem(vl.Softmax(A=np.eye(2)), cloud, TIMES[-1], layer_norm=vl.LayerNorm([0.5**0.5] * 2))
    return vl.sweep(
        problem, {"attention.beta": BETAS}, solver="particles", options={"tolerance": 1e-10}, save=count, times=TIMES,
        progress=True,
    )  # fmt: skip


# %%
# The picture, and for some beta in words since when each number of clusters holds.


@styled
def draw(found: xr.Dataset) -> Figure:
    """The number of clusters in the plane of t and beta."""
    figure = new_figure(4.6, 3.2)
    ax = figure.subplots()
    counts = found["count"].isel(time=slice(1, None)).values
    bins = np.array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 7.5, 10.5, 15.5, 31.5, 128.5])
    mesh = ax.pcolormesh(
        TIMES[1:], BETAS, counts, cmap=time_colours(), norm=BoundaryNorm(bins, 256), shading="nearest", rasterized=True
    )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.grid(False)
    ax.set_xlabel("$t$")
    ax.set_ylabel(r"$\beta$")
    bar = figure.colorbar(mesh, ax=ax, label="clusters", ticks=[1, 2, 3, 4, 5, 6.5, 9, 13, 23, 80])
    bar.ax.minorticks_off()
    bar.ax.set_yticklabels(["1", "2", "3", "4", "5", "6–7", "8–10", "11–15", "16–31", "32–128"])
    ax.set_title("Clusters of 128 tokens on the circle")
    return figure


def told(found: xr.Dataset) -> None:
    """For some beta the number of clusters and since when, as long as it holds for a third of a decade."""
    for beta in BETAS[::4]:
        counts = found["count"].sel({"attention.beta": beta}).values
        starts = np.flatnonzero(np.diff(counts, prepend=-1))
        ends = [*starts[1:], TIMES.size - 1]
        long = [
            f"{counts[a]:g} ({TIMES[a]:.3g}..{TIMES[b]:.3g})"
            for a, b in zip(starts, ends, strict=True)
            if a and (TIMES[b] > 2 * TIMES[a] or b == TIMES.size - 1)
        ]
        print(f"beta = {beta:.4g}: {', '.join(long)}")


if __name__ == "__main__":
    result = study()
    told(result)
    figures.save(draw(result), sys.argv[1])
