"""Histograms of the rank of limiting covariances, of random A, V and Sigma_0, beside what is proved or observed of it.

For V = I a theorem bounds the rank; that d - d // 2 is the largest for other V was observed, and is no bound. A larger
rank is counted if it is still there at times much later than the horizon.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vlasov.attention import Softmax
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.gaussian import largest_limit_rank
from vlasov.postprocess.drawing.style import END, TOKEN, entitle, new_figure, styled
from vlasov.postprocess.papers.limits import CONVERGED, FATES, confirm_larger, outcomes

ROWS = {
    "identity": "$A = -Q^T Q/\\sqrt{d}$, $V = I$",
    "positive": "$A = -Q^T Q/\\sqrt{d}$, $V = G^T G$",
    "indefinite": "$A$ indefinite, invertible, $V$ random",
}
SOURCE = {"identity": "bound", "positive": "observed", "indefinite": "observed"}  # what the largest rank is
_MOST_DRAWS = 30  # batches, until there are as many limits as are asked for
_MARGIN, _LEAST, _RAREST = 1.2, 48, 0.1  # more than are missing, by the share of limits among the last ones


def drawn(row: str, d: int, count: int, rng: np.random.Generator) -> tuple[list[Softmax], Array, Array]:
    """Attentions, initial covariances, and the largest rank: the theorem's for V = I, else what was observed."""
    attentions, largest = [], []
    for _ in range(count):
        if row == "indefinite":
            signs = np.sign(rng.normal(size=d))
            signs[:2] = 1.0, -1.0
            axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
            A = (axes * signs * np.abs(rng.normal(size=d) + 0.1)) @ axes.T / np.sqrt(d)
            A, V = (A + A.T) / 2, rng.normal(size=(d, d))
        else:
            Q, G = rng.normal(size=(d // 2, d)), rng.normal(size=(d, d))
            A, V = -Q.T @ Q / np.sqrt(d), np.eye(d) if row == "identity" else G.T @ G
        attentions.append(Softmax(A=A, V=V))
        largest.append(largest_limit_rank(A) if row == "identity" else d - d // 2)
    factors = rng.normal(size=(count, d, d))
    return attentions, factors @ factors.transpose(0, 2, 1), np.array(largest)


def limits(row: str, d: int, count: int, horizon: float, seed: int) -> dict[str, Any]:
    """Ranks of so many limits, the largest that is proved or observed, and what became of all others."""
    rng = np.random.default_rng([seed, d, list(ROWS).index(row)])
    ranks: list[Array] = []
    largest: list[Array] = []
    fates = np.zeros(len(FATES), dtype=int)
    missing, share = count, 1.0
    for _ in range(_MOST_DRAWS):
        attentions, initial, most = drawn(row, d, max(int(_MARGIN * missing / share), _LEAST), rng)
        easy = row != "indefinite"  # others grow large, and take steps too many for late times
        found = outcomes(attentions, initial, horizon, later=2 * easy, confirmed=easy)
        confirm_larger(found, most, attentions, initial, horizon, later=2 * easy)
        clear = (found.fate == CONVERGED) & (found.rank >= 0)
        fates += np.bincount(found.fate, minlength=len(FATES))
        ranks.append(found.rank[clear])
        largest.append(most[clear])
        missing, share = count - sum(map(len, ranks)), max(clear.mean(), _RAREST)
        if missing <= 0:
            break
    else:
        raise InputError(f"finds fewer than {count} limits in d = {d}; ask for fewer", f"rows.{row}")
    rank, top = (np.concatenate(parts)[:count] for parts in (ranks, largest))
    return {"rank": rank, "largest": top, "fates": dict(zip(FATES, fates.tolist(), strict=True))}


@styled
def figure(given: dict[str, Any]) -> tuple[Figure, dict[str, Any]]:
    """The histograms, and their numbers."""
    rows, dimensions = list(given["rows"]), given["dimensions"]
    picture = new_figure(2.2 * len(dimensions), 1.8 * len(rows))
    entitle(picture, given["title"])
    facts: dict[str, Any] = {}
    axes = picture.subplots(len(rows), len(dimensions), squeeze=False, sharey=True)
    for row, line in zip(rows, axes, strict=True):
        count = given["rows"][row]
        for d, ax in zip(dimensions, line, strict=True):
            found = limits(row, d, count, given["horizon"], given["seed"])
            counts, most = np.bincount(found["rank"], minlength=d + 1), int(found["largest"].max())
            ax.bar(np.arange(d + 1), counts / count, width=0.8, color=TOKEN)
            ax.axvline(most + 0.5, color=END, linestyle="--", linewidth=1.0)
            ax.text(most + 0.6, 0.95, f"{SOURCE[row]} {most}", color=END, fontsize=7, va="top")
            ax.set(xlim=(-0.6, d + 0.6), ylim=(0, 1.02))
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.set_title(f"$d = {d}$" if row == rows[0] else "", loc="left")
            if ax is line[0]:
                ax.set_ylabel(f"{ROWS[row]}\nshare of limits", fontsize=7)
            facts[f"{row}, d = {d}"] = {
                "ranks": {str(k): int(n) for k, n in enumerate(counts)},
                SOURCE[row]: most,
                "above it": int((found["rank"] > found["largest"]).sum()),
                "above floor(d/2)": int((found["rank"] > d // 2).sum()),
                "of all drawn": found["fates"],
            }
        line[1 if len(line) > 2 else 0].set_xlabel("rank of the limit" if row == rows[-1] else "")
    return picture, facts
