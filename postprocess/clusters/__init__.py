"""Clusters: where tokens gather, when, and whom they follow.

What the theory knows of softmax attention whose A and V are constant, for z_i = e^{-tV} x_i and t to infinity:

    d = 1, A V > 0    P(t) converges to a matrix of zeros and ones, up to one row, of low rank
    V = I, A > 0      each z_i converges to zero or to a point of the boundary of a convex polytope

A > 0 means that A + A^T is positive definite. Every finite time is before the limit; ``movement`` says how far.
``tokens`` reads a run, ``sight`` says whom tokens look at, ``show`` has panels and tables.

Reference: Geshkovski, Letrouit, Polyanskiy, Rigollet (2023), arXiv:2305.05465.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.geometry import linked, polytope
from vlasov.kinds import Kind
from vlasov.postprocess.clusters import show
from vlasov.postprocess.clusters.sight import Sight, leader_since, ranks
from vlasov.postprocess.clusters.tokens import Tokens
from vlasov.solvers import problem_of
from vlasov.solvers.dataset import labels

TOLERANCE, MARGIN = 0.05, 0.005
_PLATEAUS = 5
_SETTLED = 0.1  # of the run: clusters that are no older may not last
_TOLD = ("Conventions", "title", "case", "problem", "solver", "options", "status", "blow_up_time", "vlasov_version")

_VARIABLES = {  # by axis
    "cluster": {
        "limit": "mean of the tokens of the cluster at the last time, rescaled where the run is",
        "mass": "share of the mass in the cluster",
        "tokens": "number of tokens in the cluster",
        "spread": "largest distance of a token of the cluster from its limit",
        "vertex": "whether the limit is a vertex of the polytope of all limits",
        "boundary": "whether the limit lies on the boundary of that polytope, vertices included",
        "zero": "whether the limit is zero",
        "depth": "distance of the limit to the boundary of that polytope",
        "leaders": "number of leaders in the cluster",
        "gain": "how much <A z, .> is larger at another limit than at the limit z itself, relative to |A| |z|_max^2",
    },
    "particle": {
        "member": "cluster of each token, -1 for tokens that carry no mass",
        "leader_since": "time from which the token likes itself best, to the end: it leads; NaN where it does not",
    },
    "time": {
        "count": "number of clusters",
        "attention_rank": "singular values of the matrix of attention above 1e-2 of the largest",
        "boolean_distance": "largest distance of an entry of the matrix of attention to 0 or 1",
    },
    "plateau": {
        "plateau_start": "first output time of a plateau, where the number of clusters does not change",
        "plateau_end": "last output time of the plateau",
        "plateau_count": "number of clusters on the plateau",
    },
    "": {
        "time_to_cluster": "first output time from which tokens are together that are together at the end",
        "reach": "length of the steps that join tokens: the tolerance times the size of the first cloud",
        "movement": "how far any token moved over the last tenth of the run, relative to the size of the first cloud",
        "polytope_dimension": "dimension of the polytope of all limits",
    },
}

CLUSTERS = Kind(
    "clusters",
    'what vl.clusters returned or "vlasov observe" wrote',
    title="Clusters",
    variables={name: words for names in _VARIABLES.values() for name, words in names.items()},
    panels=show.panels,
    tables=show.tables,
    notes=show.notes,
    cites=(
        ("geshkovski2023", "clusters, leaders and polytopes of tokens"),
        ("barber1996", "Qhull, the polytope of the limits"),
    ),
)


def clusters(
    run: xr.Dataset,
    *,
    tolerance: float = TOLERANCE,
    margin: float = MARGIN,
    rank: bool = False,
) -> xr.Dataset:
    """Where the tokens of a run gather: z_i(t), t to the end, in groups that steps <= tolerance |z(0)| hold together.

    A token *leads* if it likes itself best, <A x_i, x_i> >= <A x_i, x_j> for all j, from some output time to the end.
    Tokens of one cluster are joined by a chain of steps that are no longer than ``reach``: tolerance times the largest
    distance from the mean at the first output time. Tokens lighter than 1e-6 of the heaviest belong to no cluster.

    Parameters
    ----------
    run
        A solution by particles; rescaled (``rescaled=True``), if tokens grow: z = e^{-tV} x may have a limit, x has
        none.
    tolerance
        Reach of a cluster / size of the first cloud.
    margin
        How far from the boundary, or from zero, a limit may be that lies there, / size of the first cloud; vertices
        are further from the hull of the others.
    rank
        Find the rank of the matrix of attention over time, of at most 1,000 tokens.

    Returns
    -------
    xarray.Dataset
        Coordinates time, cluster (the heaviest first), component, plateau (the longest five, as they come). By cluster:
        limit, mass, tokens, spread, vertex, boundary, zero, depth (distance to the boundary of the polytope; NaN where
        it has more than six dimensions and is no simplex); where the attention is a sum with one head also leaders and
        gain (0 where hardmax would leave the limit in place). By token: member, leader_since. In time: count,
        attention_rank, boolean_distance. Scalars: time_to_cluster, reach, movement, polytope_dimension. Attribute
        ``doubt``: why these are no limits yet, if so.

    Examples
    --------
    Three tokens on a quarter of the circle attract each other, and end in one place:

    >>> tokens = vl.Particles([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> attention = vl.Softmax(A=np.eye(2))
    >>> problem = vl.Problem(attention, tokens, horizon=20.0, layer_norm=vl.LayerNorm())
    >>> found = vl.clusters(vl.solve(problem, "particles"))
    >>> found.sizes["cluster"], found["tokens"].values.tolist()
    (1, [3])
    """
    tolerance = checks.number(tolerance, "tolerance", above=0.0, below=1.0)
    margin = checks.number(margin, "margin", above=0.0, below=1.0)
    rank, tokens = checks.flag(rank, "rank"), Tokens(run)
    reach = tolerance * tokens.size
    last = linked(tokens.at(-1), reach)
    group = np.argsort(np.argsort(-np.bincount(last, tokens.shares), kind="stable"))[last]  # the heaviest first
    count, since = _history(tokens, last, reach)
    found: dict[str, Any] = {
        **_limits(tokens, group, margin * tokens.size),
        "member": _spread_out(group, tokens, -1),
        "count": count,
        **_plateaus(tokens.times, count),
        "time_to_cluster": tokens.times[since],
        "reach": reach,
        "movement": tokens.moved(),
    }
    found |= _of_sight(tokens, group, found["limit"], rank=rank)
    variables = {
        name: ((axis, "component")[: np.ndim(found[name])], found[name], {"long_name": words, "units": "1"})
        for axis, names in _VARIABLES.items()
        for name, words in names.items()
        if name in found
    }
    coordinates = {
        "time": ("time", tokens.times, {"long_name": "time", "units": "1"}),
        "cluster": ("cluster", np.arange(len(found["mass"])), {"long_name": "cluster, the heaviest first"}),
        "component": labels(run.sizes["component"])["component"],
    }
    attributes = {name: run.attrs[name] for name in _TOLD if name in run.attrs}
    attributes |= {"kind": CLUSTERS.name, "tolerance": tolerance, "margin": margin, "rescaled": int("rescaling" in run)}
    result = xr.Dataset(variables, coordinates, attributes)
    result.attrs["doubt"] = _doubt(result)
    return result


def _limits(tokens: Tokens, group: NDArray[np.intp], margin: float) -> dict[str, Any]:
    """Return the limit of each cluster, its mass, and where it lies in the polytope of all."""
    z, mass = tokens.at(-1), np.bincount(group, tokens.shares)
    limit = np.stack([np.bincount(group, tokens.shares * x) / mass for x in z.T], axis=1)
    spread, hull = np.zeros(mass.size), polytope(limit, margin)
    np.maximum.at(spread, group, np.linalg.norm(z - limit[group], axis=1))
    zero, boundary = np.linalg.norm(limit, axis=1) <= margin, hull.vertex | (hull.depth <= margin)
    return {
        "limit": limit, "mass": mass, "tokens": np.bincount(group), "spread": spread, "vertex": hull.vertex,
        "boundary": boundary, "zero": zero, "depth": hull.depth, "polytope_dimension": hull.dimension,
    }  # fmt: skip


def _history(tokens: Tokens, last: NDArray[np.intp], reach: float) -> tuple[NDArray[np.intp], int]:
    """Return the number of clusters by output time, and the first from which tokens are together as at the end."""
    count, since = np.empty(tokens.times.size, dtype=np.intp), 0
    for instant in range(count.size):
        group = last if instant == count.size - 1 else linked(tokens.at(instant), reach)
        count[instant] = group.max() + 1
        since = since if (group == last).all() else instant + 1
    return count, since


def _plateaus(times: Array, count: NDArray[np.intp]) -> dict[str, Any]:
    """Return the longest stretches of two output times or more over which the number of clusters stays, in order."""
    changes = np.flatnonzero(np.diff(count)) + 1
    starts, ends = np.append(0, changes), np.append(changes, count.size) - 1
    lasting = np.flatnonzero(ends > starts)
    longest = np.sort(lasting[np.argsort(-(times[ends] - times[starts])[lasting], kind="stable")[:_PLATEAUS]])
    starts, ends = starts[longest], ends[longest]
    return {"plateau_start": times[starts], "plateau_end": times[ends], "plateau_count": count[starts]}


def _of_sight(tokens: Tokens, group: NDArray[np.intp], limit: Array, *, rank: bool) -> dict[str, Any]:
    """Return leaders, and what the matrix of attention is like, where one head says whom tokens look at."""
    problem = problem_of(tokens.run) if tokens.run.attrs.get("problem") else None  # None: a parameter is a function
    if problem is None or not Sight.is_known(problem):
        if rank:
            why = "is masked, or no sum with one head" if problem else "has a parameter that is a Python function"
            raise InputError(f"is not known where the attention {why}; leave it out", "rank")
        return {}
    sight = Sight(problem, tokens)
    since = leader_since(sight, tokens)
    found: dict[str, Any] = {
        "leader_since": _spread_out(since, tokens, np.nan),
        "leaders": np.bincount(group[np.isfinite(since)], minlength=len(limit)),
        "gain": _gain(*sight.seen(-1, limit)),
    }
    if rank:
        found["attention_rank"], found["boolean_distance"] = ranks(sight, tokens)
    return found


def _gain(limit: Array, a: Array, p: Array) -> Array:
    """max_k <A z, z_k> - <A z, z> for each limit z, relative to |A| times the largest |z|^2."""
    size = (float(np.abs(a).max()) or 1.0) * (float(np.square(limit).sum(axis=1).max()) or 1.0)
    exponents = limit @ a.T @ limit.T - np.einsum("ni,ij,nj->n", limit, p, limit)
    return np.asarray((exponents.max(axis=1) - exponents.diagonal()) / size)


def _spread_out(values: NDArray[Any], tokens: Tokens, missing: float) -> NDArray[Any]:
    """Values of the tokens that carry mass among those of all tokens."""
    full = np.full(tokens.weights.size, missing, dtype=values.dtype)
    full[tokens.heavy] = values
    return full


def _doubt(found: xr.Dataset) -> str:
    """Why what was found may be no limit, in one line; empty if nothing speaks against it."""
    said, status = [], found.attrs.get("status")
    end = float(found["time"].values[-1])
    if status == "blow-up":
        return f"the run ended in blow-up at t = {found.attrs['blow_up_time']:.6g}, where nothing has a limit"
    if status == "stopped":
        said.append(f"the run stopped at t = {end:.6g}, before its horizon")
    together, start = float(found["time_to_cluster"]), float(found["time"].values[0])
    if together > end - _SETTLED * (end - start):
        said.append(f"tokens are together as at the end only from t = {together:.6g} on")
    movement = float(found["movement"])
    if not movement <= found.attrs["tolerance"]:
        remedy = "go on for longer"
        if not found.attrs["rescaled"] and '"layer_norm"' not in str(found.attrs.get("problem", "")):
            remedy += ", or solve with rescaled=True"
        moved = "one output time does not show whether tokens are at rest"
        if np.isfinite(movement):
            moved = f"tokens moved by {movement:.2g} of the first cloud's size over the last tenth of the run"
        said.append(f"{moved}; {remedy}")
    return "; ".join(said)
