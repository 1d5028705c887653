r"""
Collective modes, and torn tokens
=================================

A small change :math:`h(0)` of the tokens becomes :math:`h(t)`. How large can :math:`|h(t)| / |h(0)|` be? At first the
change that grows most moves the whole cloud: a collective mode. Later it may sit on a single token beside a
separatrix, which is torn away from its neighbours. This program follows every case that starts from a density, to
twice its horizon or t = 20, and says when the one gives way to the other.

This program takes more than ten minutes, so that it did not run when this manual was built. Picture and table are of
20 November 2026; the picture is of an earlier version, which also drew, dashed, the growth of one token in the given
field, and the growth of the limit until the end.

.. image:: /images/growth-of-changes.png
    :alt: The growth of small changes against time, a panel for each case with a density
    :align: center

In two cases a token takes over: mixture-2d and sinkhorn-mixture, whose two clouds have a separatrix between them, from
t = 1.25 on. From then on the growth of nodes is theirs, and the limit is not known. Samples of 512 tokens see the same
time; how much their growth is depends on how near a token stands to the separatrix. In gaussian-blow-up,
mlp-affine-gaussian and multi-head-mixed, too, few nodes or tokens carry the growth in the end, and the Gaussian becomes
so wide before that the limit is not known. Under a mask few tokens carry it nearly from the beginning. In all
other cases with a known limit the growth is collective as long as it is known.

.. csv-table:: Until when growth is collective
    :header: case, of, until t, growth, carried

    ball-3d, limit, 2, 3.629, collective
    box-2d, limit, 1.75, 21.91, collective
    deep-layers, limit, 2, 7.837, collective
    gaussian-blow-up, 512 tokens, 3, 617.5, few tokens from t = 0.75 on
    gaussian-collapse, limit, 20, 2.102e+08, collective
    gaussian-line, 512 tokens, 20, 5.356e+08, collective
    gaussian-two-lines, 512 tokens, 20, 1.255e+05, few tokens from t = 2.5 on
    gradient-flow-sinkhorn, 512 tokens, 2, 10, few tokens from t = 0.25 on
    gradient-flow-softmax, limit, 1.2, 3.639, collective
    interval-1d, limit, 2, 28.63, collective
    l2-growth, 512 tokens, 4, 125.7, collective
    linear-ring, limit, 4.5, 278.6, collective
    masked-product, 512 tokens, 2, 17.38, few tokens from t = 0.5 on
    masked-two-topics, 512 tokens, 2, 158.2, few tokens from t = 0.25 on
    mixture-2d, limit, 1, 3.701, few nodes from t = 1.25 on
    mlp-affine-gaussian, limit, 0.75, 2.92, few nodes from t = 1 on
    multi-head-mixed, limit, 0.25, 1.808, few nodes from t = 1.25 on
    multi-head-plane, 512 tokens, 20, 7.944e+08, collective
    relu-blow-up, limit, 2, 5.196, collective
    relu-layer-norm, 512 tokens, 8, 1, nothing grows
    ring-2d, limit, 2, 4.533, collective
    sigmoid-ring, limit, 4, 8.915, collective
    sinkhorn-collapse, 512 tokens, 6, 403.4, collective
    sinkhorn-mixture, limit, 1, 2.958, few nodes from t = 1.25 on
    text-like, 512 tokens, 2, 24.35, few tokens from t = 0.25 on

Where the table says *limit*, Gauss nodes stand for it; elsewhere the growth of so many tokens is told, as the limit is
not known: under a mask and in many dimensions there are no such nodes, and for wide Gaussians J has no bound in
:math:`L^2(\mu)`, so that more nodes find more without end. Times at which the growth may be off by more than a tenth
are left out, and so are those in the limit at which fewer than eight nodes carry it, and what follows a blow-up.

.. code-block:: bash

    python docs/examples/growth_of_changes.py growth-of-changes.png
    python docs/examples/growth_of_changes.py growth-of-changes.png mixture-2d ring-2d

Numbers of a case are kept in the folder ``growth-of-changes``, beside the picture: what is there is not computed again.
"""

# sphinx_gallery_thumbnail_path = "images/growth-of-changes.png"

# %%
# In the limit of many tokens, changes are functions in :math:`L^2(\mu)`. Their derivative along the flow is a
# multiplication, which is what single tokens suffer in the given field, and a compact rest, which is collective.
# Where fewer than eight tokens, or nodes that stand for :math:`\mu`, carry the growth, it belongs to few tokens.

from __future__ import annotations

import math
import multiprocessing
import sys
import warnings
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.style import PALE, PALETTE, TOKEN, new_figure, styled
from vlasov.postprocess.sensitivity import FEW

TIMES, TOKENS, LONGER, LATEST = 9, (64, 512), 2.0, 20.0
LIMIT = "limit"
SURE, NOTABLY = 0.1, 1e-6  # relative: errors, differences
COLOURS = {f"{n} tokens": colour for n, colour in zip(TOKENS, PALETTE[2:], strict=False)}
SECONDS = 600  # of one processor, for one case


def with_density() -> list[str]:
    """Cases that start from a density, not from tokens."""
    return [name for name in vl.case_names() if not isinstance(vl.load_case(name).problem.initial, vl.Particles)]


def study(name: str, tokens: tuple[int, ...] = TOKENS, points: int = TIMES) -> xr.Dataset:
    """Growth of one case by time: in the limit, where Gauss nodes stand for it, and for samples of n tokens."""
    problem = vl.load_case(name).problem
    problem = problem.until(min(LONGER * problem.horizon, LATEST))
    times = np.linspace(0.0, problem.horizon, points)
    rows = {}
    limit = vl.sensitivity(problem, times=times, rates=False)
    if limit.attrs["of"] == LIMIT:
        rows[LIMIT] = limit
    for n in tokens:
        sampling = "random" if problem.attention.causal else "sobol"
        rows[f"{n} tokens"] = vl.sensitivity(problem, times=times, n=n, sampling=sampling, rates=False, check=False)
    kept = ["growth", "growth_error", "carriers"]
    joined = xr.concat([found[kept] for found in rows.values()], "row", join="outer")
    return joined.assign_coords(row=list(rows)).assign_attrs(case=name)


# %%
# One row of the table: until when growth is collective, and how large it is in the end. What may be off by more than a
# tenth does not count, and where the limit is not known the largest sample speaks.


def sure(row: xr.Dataset) -> xr.Dataset:
    """A row at the times at which its growth is known."""
    value = row["growth"].values
    known = np.isfinite(value)
    if str(row["row"].values) == LIMIT:
        known &= row["growth_error"].values <= SURE * value
    return row.isel(time=np.flatnonzero(known))


def best(found: xr.Dataset) -> xr.Dataset:
    """The limit if it is known beyond the first time, else the largest sample."""
    limit = found.isel(row=0)
    is_known = str(limit["row"].values) == LIMIT and sure(limit).sizes["time"] > 1
    return limit if is_known else found.isel(row=-1)


def torn_from(row: xr.Dataset) -> float:
    """The first time from which on few tokens carry the growth; or infinity."""
    torn = (row["carriers"].values < FEW) & ~(row["growth"].values <= 1 + NOTABLY)
    together = np.flatnonzero(~torn)[-1]  # the last time of a collective mode; at the first time nothing has grown
    return float(row["time"].values[together + 1]) if together + 1 < torn.size else math.inf


def told(found: xr.Dataset) -> str:
    """A line about one case."""
    row = best(found)
    last, since = sure(row).isel(time=-1), torn_from(row)
    who = "nodes" if str(row["row"].values) == LIMIT else "tokens"
    words = f"few {who} from t = {since:.3g} on" if math.isfinite(since) else "collective"
    words = words if float(row["growth"].max()) > 1 + NOTABLY else "nothing grows"
    return (
        f"{found.attrs['case']:24s} {row['row'].values!s:10s}  t <= {float(last['time']):<5.3g} "
        f"growth {float(last['growth']):10.4g}  {words}"
    )


# %%
# Each case has a process of its own, and so many seconds of it: one that takes longer is left out, and told.


def _kept(name: str, path: str) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    warnings.simplefilter("ignore")
    try:
        study(name).to_netcdf(path, engine="h5netcdf")
    except vl.InputError as refused:
        Path(path).with_suffix(".txt").write_text(f"refused: {refused}\n")


def studies(names: list[str], folder: Path) -> dict[str, xr.Dataset]:
    """Each case by itself; what the folder has is taken from there."""
    folder.mkdir(exist_ok=True)
    found = {}
    for name in names:
        path = folder / f"{name}.nc"
        if not path.exists():
            process = multiprocessing.get_context("spawn").Process(target=_kept, args=(name, str(path)))
            process.start()
            process.join()
        if not path.exists():
            why = path.with_suffix(".txt")
            said = why.read_text().strip() if why.exists() else f"not done in {SECONDS} s"
            print(f"{name:24s} {said}", flush=True)
            continue
        found[name] = xr.load_dataset(path, engine="h5netcdf")
        print(told(found[name]), flush=True)
    return found


# %%
# The picture: a panel for each case. Circles mark samples whose growth few tokens carry; a vertical line is where few
# tokens take over for good.


def panel(ax: Axes, found: xr.Dataset) -> None:
    """One case."""
    for name in found["row"].values:
        row = sure(found.sel(row=name))
        at, value = row["time"].values, row["growth"].values
        if name == LIMIT:
            ax.plot(at, value, color=TOKEN, linewidth=2)
            continue
        few = row["carriers"].values < FEW
        colour = COLOURS[str(name)]
        ax.plot(at, value, ":", color=colour)
        ax.plot(at[few], value[few], "o", markersize=4, markerfacecolor="none", color=colour)
    end, since = float(found["time"].values[-1]), torn_from(best(found))
    if math.isfinite(since):
        ax.axvline(since, color=PALE)
    ax.set_xlim(0.0, end)
    ax.set_title(found.attrs["case"])
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 0.9), max(high, 2.0))


@styled
def draw(found: dict[str, xr.Dataset]) -> Figure:
    """All panels."""
    columns = min(4, len(found))
    rows = -(-len(found) // columns)
    figure = new_figure(2.4 * columns, 1.9 * rows + 0.4)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, one in zip(axes, found.values(), strict=False):
        panel(ax, one)
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    lines = [
        *axes[0].plot([], [], color=TOKEN, linewidth=2, label="limit"),
        *(line for name, colour in COLOURS.items() for line in axes[0].plot([], [], ":", color=colour, label=name)),
    ]
    figure.legend(handles=lines, loc="outside upper center", ncols=len(lines))
    figure.supxlabel("time $t$; circles: few tokens carry it", fontsize="medium")
    figure.supylabel("$|h(t)| / |h(0)|$", fontsize="medium")
    return figure


if __name__ == "__main__":
    target = Path(sys.argv[1])
    figures.save(draw(studies(sys.argv[2:] or with_density(), target.with_suffix(""))), target)
