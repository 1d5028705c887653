"""How the growth of small changes behaves with t and n: first a collective mode, then one torn token; where it changes.

For every case with a density and attention that is not masked: growth in the limit (its nodes, and what one token
suffers), and of samples of n tokens. Prints until when the growth in the limit is collective: from then on the edge is
larger, or few nodes carry what nodes say.

python docs/growth_of_changes.py growth-of-changes.png [CASE ...]
"""

import math
import sys
import warnings

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.sensitivity import FEW

TIMES, TOKENS, LONGER = 9, (64, 512), 2.0
CASES = [
    "ball-3d", "box-2d", "gradient-flow-softmax", "interval-1d", "linear-ring", "mixture-2d", "ring-2d", "sigmoid-ring",
    "deep-layers", "multi-head-mixed",
]  # fmt: skip


def collective_until(found: xr.Dataset) -> float:
    """The last time at which many nodes carry more than one token suffers."""
    torn = (found["edge"] >= found["growth_of_nodes"]) | (found["carriers"] < FEW)
    torn = torn.values & (found["time"].values > 0)
    return float(found["time"].values[torn.argmax()]) if torn.any() else math.inf


def draw(ax: Axes, name: str) -> str:
    """One case; a line about it."""
    problem = vl.load_case(name).problem
    problem = problem.until(LONGER * problem.horizon)
    times = np.linspace(0.0, problem.horizon, TIMES)
    limit = vl.sensitivity(problem, times=times, rates=False)
    at = limit["time"].values
    ax.plot(at, limit["growth"].values, color="C0", lw=2, label="limit")
    ax.plot(at, limit["edge"].values, "--", color="C1", label="of one token")
    for k, n in enumerate(TOKENS):
        sample = vl.sensitivity(problem, times=times, n=n, sampling="sobol", rates=False, check=False)
        few = sample["carriers"].values < FEW
        ax.plot(sample["time"].values, sample["growth"].values, ":", color=f"C{k + 2}", label=f"{n} tokens")
        ax.plot(sample["time"].values[few], sample["growth"].values[few], "o", ms=4, mfc="none", color=f"C{k + 2}")
    until = collective_until(limit)
    if math.isfinite(until):
        ax.axvline(until, color="0.7", lw=1)
    ax.set(title=name, yscale="log")
    last = limit.isel(time=-1)
    words = f"one token from t = {until:.3g} on" if math.isfinite(until) else "collective"
    return (
        f"{name:24s} t <= {float(last['time']):5.3g}  growth {float(last['growth']):10.5g} +- "
        f"{float(last['growth_error']):.1g}  of one token {float(last['edge']):10.5g}  {words}"
    )


def main(target: str, names: list[str]) -> None:
    """All panels, and a line for each case."""
    warnings.simplefilter("ignore")
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(3.0 * columns, 2.4 * rows), layout="constrained")
    for ax, name in zip(figure.subplots(rows, columns, squeeze=False).flat, names, strict=False):
        print(draw(ax, name), flush=True)
    figure.axes[0].legend(fontsize="x-small")
    figure.supxlabel("time $t$; circles: few tokens carry it")
    figure.supylabel("$|h(t)| / |h(0)|$")
    for ax in figure.axes[len(names) :]:
        ax.set_axis_off()
    figures.save(figure, target)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or CASES)
