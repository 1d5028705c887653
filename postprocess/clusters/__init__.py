"""Clusters: where tokens gather, when, and whom they follow.

What the theory knows of softmax attention whose A and V are constant, for z_i = e^{-tV} x_i and t to infinity:

    d = 1, A V > 0    P(t) converges to a matrix of zeros and ones, up to one row, of low rank
    V = I, A > 0      each z_i converges to zero or to a point of the boundary of a convex polytope

A > 0 means that A + A^T is positive definite. Every finite time is before the limit; ``movement`` says how far.
``tokens`` reads a run, ``sight`` says whom tokens look at, ``show`` has panels and tables.

Reference: Geshkovski, Letrouit, Polyanskiy, Rigollet (2023), arXiv:2305.05465.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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

_NAMES = {
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
    "member": "cluster of each token, -1 for tokens that carry no mass",
    "leader_since": "time from which the token likes itself best, to the end: it leads; NaN where it does not",
    "count": "number of clusters",
    "attention_rank": "singular values of the matrix of attention above 1e-2 of the largest",
    "boolean_distance": "largest distance of an entry of the matrix of attention to 0 or 1",
    "plateau_start": "first output time of a plateau, where the number of clusters does not change",
    "plateau_end": "last output time of the plateau",
    "plateau_count": "number of clusters on the plateau",
    "time_to_cluster": "first output time from which tokens are together that are together at the end",
    "reach": "length of the steps that join tokens: the tolerance times the size of the first cloud",
    "movement": "how far any token moved over the last tenth of the run, relative to the size of the first cloud",
    "polytope_dimension": "dimension of the polytope of all limits",
}

CLUSTERS = Kind(
    "clusters",
    'what vl.clusters returned or "vlasov observe" wrote',
    title="Clusters",
    variables=_NAMES,
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
    group = linked(tokens.at(-1), reach)
    final, (count, since) = _final(tokens, group), _history(tokens, group, reach)
    found: dict[str, tuple[tuple[str, ...], Any]] = {
        **_of_limits(final, margin * tokens.size),
        "member": (("particle",), _spread_out(final.group, tokens, -1)),
        "count": (("time",), count),
        **_plateaus(tokens.times, count),
        "time_to_cluster": ((), tokens.times[since]),
        "reach": ((), reach),
        "movement": ((), tokens.moved()),
        **_of_sight(tokens, final, rank=rank),
    }
    component = labels(run.sizes["component"])["component"]
    coordinates = {
        "time": ("time", tokens.times, {"long_name": "time", "units": "1"}),
        "cluster": ("cluster", np.arange(final.mass.size), {"long_name": "cluster, the heaviest first"}),
        "component": component,
    }
    variables = {name: (*values, {"long_name": _NAMES[name], "units": "1"}) for name, values in found.items()}
    attributes = {name: run.attrs[name] for name in _TOLD if name in run.attrs}
    attributes |= {"kind": CLUSTERS.name, "tolerance": tolerance, "margin": margin, "rescaled": int("rescaling" in run)}
    result = xr.Dataset(variables, coordinates, attributes)
    result.attrs["doubt"] = _doubt(result)
    return result


class _Final(NamedTuple):
    """The clusters at the last output time, the heaviest first."""

    group: NDArray[np.intp]
    limit: Array
    mass: Array
    tokens: NDArray[np.intp]
    spread: Array


def _final(tokens: Tokens, group: NDArray[np.intp]) -> _Final:
    z, order = tokens.at(-1), np.argsort(-np.bincount(group, tokens.shares), kind="stable")
    group = np.argsort(order)[group]
    mass = np.asarray(np.bincount(group, tokens.shares), dtype=np.float64)
    limit = np.stack([np.bincount(group, tokens.shares * x) / mass for x in z.T], axis=1)
    spread = np.zeros(mass.size)
    np.maximum.at(spread, group, np.linalg.norm(z - limit[group], axis=1))
    return _Final(group, limit, mass, np.bincount(group), spread)


def _of_limits(final: _Final, margin: float) -> dict[str, tuple[tuple[str, ...], Any]]:
    """What is known of each limit: its mass, and where it lies in the polytope of all."""
    hull = polytope(final.limit, margin)
    each = ("cluster",)
    return {
        "limit": ((*each, "component"), final.limit),
        "mass": (each, final.mass),
        "tokens": (each, final.tokens),
        "spread": (each, final.spread),
        "vertex": (each, hull.vertex),
        "boundary": (each, hull.vertex | (hull.depth <= margin)),
        "zero": (each, np.linalg.norm(final.limit, axis=1) <= margin),
        "depth": (each, hull.depth),
        "polytope_dimension": ((), hull.dimension),
    }


def _history(tokens: Tokens, last: NDArray[np.intp], reach: float) -> tuple[NDArray[np.intp], int]:
    """Return the number of clusters by output time, and the first from which tokens are together as at the end."""
    count, since = np.empty(tokens.times.size, dtype=np.intp), 0
    for instant in range(count.size):
        group = last if instant == count.size - 1 else linked(tokens.at(instant), reach)
        count[instant] = group.max() + 1
        since = since if (group == last).all() else instant + 1
    return count, since


def _plateaus(times: Array, count: NDArray[np.intp]) -> dict[str, tuple[tuple[str, ...], Any]]:
    """The longest stretches of two output times or more over which the number of clusters stays, as they come."""
    changes = np.flatnonzero(np.diff(count)) + 1
    starts, ends = np.append(0, changes), np.append(changes, count.size) - 1
    lasting = np.flatnonzero(ends > starts)
    longest = np.sort(lasting[np.argsort(-(times[ends] - times[starts])[lasting], kind="stable")[:_PLATEAUS]])
    return {
        "plateau_start": (("plateau",), times[starts[longest]]),
        "plateau_end": (("plateau",), times[ends[longest]]),
        "plateau_count": (("plateau",), count[starts[longest]]),
    }


def _of_sight(tokens: Tokens, final: _Final, *, rank: bool) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Leaders, and what the matrix of attention is like, where one head says whom tokens look at."""
    problem = problem_of(tokens.run) if tokens.run.attrs.get("problem") else None  # None: a parameter is a function
    if problem is None or not Sight.is_known(problem):
        if rank:
            why = "is masked, or no sum with one head" if problem else "has a parameter that is a Python function"
            raise InputError(f"is not known where the attention {why}; leave it out", "rank")
        return {}
    sight = Sight(problem, tokens)
    since = leader_since(sight, tokens)
    leaders = np.bincount(final.group[np.isfinite(since)], minlength=final.mass.size)
    found: dict[str, tuple[tuple[str, ...], Any]] = {
        "leader_since": (("particle",), _spread_out(since, tokens, np.nan)),
        "leaders": (("cluster",), leaders),
        "gain": (("cluster",), _gain(*sight.seen(-1, final.limit))),
    }
    if rank:
        matrix_rank, distance = ranks(sight, tokens)
        found |= {"attention_rank": (("time",), matrix_rank), "boolean_distance": (("time",), distance)}
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
