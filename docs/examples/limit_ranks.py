r"""
Ranks of limiting covariances
=============================

How many eigenvalues of a Gaussian's covariance do not vanish in the end, for random parameters. A is
:math:`-Q^\top Q/\sqrt d` with Q of shape :math:`(\lfloor d/2 \rfloor, d)`, for which a theorem bounds the rank by
:math:`\lceil d/2 \rceil` where V = I; or symmetric, invertible and indefinite. For random V the same number is the
largest that was observed, and no bound.

.. code-block:: bash

    python docs/examples/limit_ranks.py limit-ranks.png

Source: Castin, Ablin, Carrillo, Peyré (2025), arXiv:2501.18322, section 4 and the histograms of ranks.
"""

# %%
# Random attentions, initial covariances, and the rank that the theorem bounds or that was observed.

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.style import END, TOKEN, new_figure, styled

Array = NDArray[np.float64]
ROWS = {
    "identity": "$A = -Q^T Q/\\sqrt{d}$, $V = I$",
    "positive": "$A = -Q^T Q/\\sqrt{d}$, $V = G^T G$",
    "indefinite": "$A$ indefinite, $V$ random",
}
FLOOR = 1e-13  # of the largest eigenvalue: rounding


def draw_problems(row: str, d: int, count: int) -> tuple[list[vl.Softmax], Array, int]:
    """Attentions, covariances (count, d, d), and the largest rank."""
    rng = np.random.default_rng([0, d, list(ROWS).index(row)])
    attentions = []
    for _ in range(count):
        Q, G = rng.normal(size=(d // 2, d)), rng.normal(size=(d, d))
        A, V = -Q.T @ Q / np.sqrt(d), np.eye(d) if row == "identity" else G.T @ G
        if row == "indefinite":
            signs = np.array([1.0, -1.0, *np.sign(rng.normal(size=d - 2))])
            axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
            A = (axes * signs * (np.abs(rng.normal(size=d)) + 0.1)) @ axes.T / np.sqrt(d)
            A, V = (A + A.T) / 2, G
        attentions.append(vl.Softmax(A=A, V=V))
    factors = rng.normal(size=(count, d, d))
    return attentions, factors @ factors.swapaxes(1, 2), d - d // 2


# %%
# An eigenvalue that vanishes falls like a power of t or faster: its slope over the last two decades of time tells it
# from one that stays. A rank above the largest known is followed to t = 1e9, or is not counted.


def limit_ranks(attentions: list[vl.Softmax], initial: Array, largest: int, latest: float = 1e4) -> NDArray[np.int_]:
    """The rank of each limit; -1 where slopes are not clear at ``latest``, -2 where none was reached."""
    ranks = np.full(len(initial), -1)
    for horizon in 10.0 ** np.arange(3, 10):
        chosen = np.flatnonzero((ranks > largest) | ((ranks == -1) & (horizon <= latest)))
        if chosen.size:
            some, times = [attentions[i] for i in chosen], horizon * np.array([0.01, 0.1, 1.0])
            run = vl.covariances(some, initial[chosen], horizon, times=times, max_steps=200_000, check=False)
            done = run["status"].values == "completed"
            ranks[chosen] = np.where(done, -1, -2)
            values = np.linalg.eigvalsh(run["covariance"].values[done])
            values = np.maximum(values, FLOOR * values[..., -1:])
            slopes = np.diff(np.log10(values), axis=1)
            falls = (slopes < -0.4).all(axis=1) & (slopes[:, 1] < slopes[:, 0] + 0.02)
            falls |= values[:, -1] <= FLOOR * values[:, -1, -1:]
            stays = (np.abs(slopes) < 0.1).all(axis=1) & ~falls
            ranks[chosen[done]] = np.where((falls | stays).all(axis=1), stays.sum(axis=1), -1)
    return ranks


# %%
# Histograms of the limits that are clear. No limit has a rank above the line.


@styled
def draw(dimensions: tuple[int, ...] = (3, 4, 5), count: int = 60) -> Figure:
    """A row for each law of A and V, a column for each d."""
    figure = new_figure(2.2 * len(dimensions), 5.4)
    axes = figure.subplots(len(ROWS), len(dimensions), squeeze=False, sharey=True)
    for row, line in zip(ROWS, axes, strict=True):
        for d, ax in zip(dimensions, line, strict=True):
            attentions, initial, largest = draw_problems(row, d, count)
            latest = 1e3 if row == "indefinite" else 1e4  # these grow large on their way, and take many steps
            ranks = limit_ranks(attentions, initial, largest, latest)
            limits = ranks[ranks >= 0]
            if (limits > largest).any():
                raise ValueError(f"{row}, d = {d}: a limit has a rank above {largest}")
            print(f"{row}, d = {d}: {len(limits)} limits of {count}, ranks {np.unique(limits)}")
            ax.bar(np.arange(d + 1), np.bincount(limits, minlength=d + 1) / len(limits), color=TOKEN)
            ax.axvline(largest + 0.5, color=END, linestyle="--", linewidth=1.0)
            label = "bound" if row == "identity" else "observed"
            ax.text(largest + 0.6, 0.95, f"{label} {largest}", color=END, fontsize=7, va="top")
            ax.set(xlim=(-0.6, d + 0.6), ylim=(0, 1.02), title=f"$d = {d}$" if row == "identity" else "")
        line[0].set_ylabel(f"{ROWS[row]}\nshare of limits", fontsize=7)
    axes[-1, len(dimensions) // 2].set_xlabel("rank of the limit")
    return figure


if __name__ == "__main__":
    figures.save(draw(), sys.argv[1])
