"""A rescaled run beside a post-norm run of the same tokens: whether rescaling mimics LayerNorm.

    u_i = x_i / |x_i| in both; clusters of directions, matched one to one so that they share the most mass

The share of the mass in corresponding clusters is the number; angles between directions say how far apart these are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.geometry import linked
from vlasov.postprocess.clusters.directions import directions, problem_if_known
from vlasov.postprocess.clusters.tokens import Tokens
from vlasov.solvers.dataset import labels

_NO_DIRECTION = 1e-6  # of the largest |z|: tokens so close to zero have none
_SAME_START = 1e-6  # between directions of one token at the first time
_SAME_TIME = 1e-9
_SHUFFLES = 32

Labels = NDArray[np.intp]

_NAMES = {
    "share": "share of the mass in corresponding clusters",
    "chance": "the share, if tokens of clusters of these sizes were shuffled",
    "angle": "angle between the directions of corresponding clusters, mean by mass",
    "token_angle": "angle between a token's two directions, mean by mass",
    "directionless": "share of the mass so close to zero in the rescaled run that it has no direction",
    "count_rescaled": "number of clusters of directions in the rescaled run",
    "count_normed": "number of clusters of directions in the post-norm run",
    "direction_rescaled": "direction of a cluster of the rescaled run",
    "direction_normed": "direction of the corresponding cluster of the post-norm run",
    "pair_mass": "share of the mass in both clusters of a pair",
    "pair_angle": "angle between the directions of a pair",
}


class _Matched(NamedTuple):
    """Corresponding clusters at one time, the heaviest first."""

    pairs: tuple[Array, Array]  # directions, (k, d) each
    mass: Array
    groups: tuple[Labels, Labels]  # of the tokens that have a direction
    weights: Array
    token_angle: float

    @property
    def angles(self) -> Array:
        return between(*self.pairs)


def beside(rescaled: xr.Dataset, normed: xr.Dataset, *, tolerance: float = 0.1) -> xr.Dataset:
    """How much of the mass is in corresponding clusters of directions u = x / |x|, and how far these point apart.

    Parameters
    ----------
    rescaled
        A run by particles without LayerNorm, rescaled so that it may last.
    normed
        A run of the same tokens with post-norm: its tokens stay on the ellipsoid.
    tolerance
        Length of the steps between directions that join tokens to a cluster.

    Returns
    -------
    xarray.Dataset
        At each output time that both have: share, angle (of corresponding clusters, mean by mass), token_angle,
        directionless, count_rescaled, count_normed. At the last of them chance (what the share would be if tokens were
        shuffled) and, by pair: direction_rescaled, direction_normed,
        pair_mass, pair_angle.
    """
    reach = checks.number(tolerance, "tolerance", above=0.0, below=2.0)
    one, other = Tokens(rescaled, None, "rescaled"), Tokens(normed, None, "normed")
    _check_roles(rescaled, normed)
    instants = _shared(one, other)
    first, second = zip(*instants, strict=True)
    seen = zip(directions(rescaled, first, one.heavy), directions(normed, second, one.heavy), strict=True)
    found = [_matched(one, at, pair, reach) for at, pair in zip(first, seen, strict=True)]
    last, in_time = found[-1], ("time",)
    held: dict[str, tuple[tuple[str, ...], Any]] = {
        "share": (in_time, np.array([at.mass.sum() for at in found])),
        "chance": ((), _by_chance(last.groups, last.weights)),
        "angle": (in_time, np.array([_mean(at.angles, at.mass) for at in found])),
        "token_angle": (in_time, np.array([at.token_angle for at in found])),
        "directionless": (in_time, np.array([1.0 - float(at.weights.sum()) for at in found])),
        "count_rescaled": (in_time, np.array([at.groups[0].max(initial=-1) + 1 for at in found])),
        "count_normed": (in_time, np.array([at.groups[1].max(initial=-1) + 1 for at in found])),
        "direction_rescaled": (("pair", "component"), last.pairs[0]),
        "direction_normed": (("pair", "component"), last.pairs[1]),
        "pair_mass": (("pair",), last.mass),
        "pair_angle": (("pair",), last.angles),
    }
    units = {name: "radian" if name.endswith("angle") else "1" for name in held}
    variables = {name: (*one, {"long_name": _NAMES[name], "units": units[name]}) for name, one in held.items()}
    times = one.times[[pair[0] for pair in instants]]
    coordinates = {
        "time": ("time", times, {"long_name": "time", "units": "1"}),
        "component": labels(rescaled.sizes["component"])["component"],
    }
    told = {name: normed.attrs[name] for name in ("Conventions", "title", "vlasov_version") if name in normed.attrs}
    return xr.Dataset(variables, coordinates, told | {"kind": "directions", "tolerance": reach})


def _check_roles(rescaled: xr.Dataset, normed: xr.Dataset) -> None:
    """Refuse runs that do not differ by post-norm alone, as far as their problems are known."""
    one, other = problem_if_known(rescaled), problem_if_known(normed)
    if one is None or other is None:
        return
    if one.layer_norm is not None:
        raise InputError("has a LayerNorm; give the run without, and then the one under post-norm", "rescaled")
    if other.post_norm is None:
        raise InputError("has no post-norm; give a run with layer_norm=vl.LayerNorm()", "normed")
    if one.attention != other.attention or one.mlp != other.mlp:
        raise InputError(
            "has another attention or MLP than the rescaled run; they are to differ by LayerNorm", "normed"
        )


def between(one: Array, other: Array) -> Array:
    """Angles between unit vectors (n, d), exact for small ones too."""
    return np.asarray(2 * np.arcsin(np.clip(np.linalg.norm(one - other, axis=-1) / 2, 0.0, 1.0)))


def _shared(one: Tokens, other: Tokens) -> list[tuple[int, int]]:
    """Output times that both have; complain about runs of different tokens."""
    if one.run["position"].sizes != {**other.run["position"].sizes, "time": one.times.size} or not np.allclose(
        one.weights, other.weights, rtol=1e-9, atol=0
    ):
        raise InputError("has other tokens than the rescaled run; solve both from one initial measure", "normed")
    apart = between(*(directions(tokens.run, [0], one.heavy)[0] for tokens in (one, other)))
    if np.nanmax(apart, initial=0.0) > _SAME_START:
        sentence = f"begins with a token {np.nanmax(apart):.2g} radian away from where the rescaled run has it"
        raise InputError(f"{sentence}; solve both from one initial measure, from t = 0 on", "normed")
    slack = _SAME_TIME * float(max(one.times[-1], other.times[-1]))
    nearest = np.abs(one.times[:, None] - other.times).argmin(axis=1)
    return [(k, int(j)) for k, j in enumerate(nearest) if abs(one.times[k] - other.times[j]) <= slack]


def _matched(one: Tokens, instant: int, seen: tuple[Array, Array], reach: float) -> _Matched:
    lengths, (u, v) = np.linalg.norm(one.full(instant), axis=1), seen
    known = (lengths > _NO_DIRECTION * lengths.max()) & np.isfinite(u).all(axis=1) & np.isfinite(v).all(axis=1)
    u, v, weights = u[known], v[known], one.shares[known]
    groups = linked(u, reach), linked(v, reach)
    rows, columns, mass = _best(groups, weights)
    order = np.argsort(-mass, kind="stable")[: int((mass > 0).sum())]
    pairs = (
        _mean_directions(u, weights, groups[0])[rows[order]],
        _mean_directions(v, weights, groups[1])[columns[order]],
    )
    return _Matched(pairs, mass[order], groups, weights, _mean(between(u, v), weights))


def _best(groups: tuple[Labels, Labels], weights: Array) -> tuple[Labels, Labels, Array]:
    """Which clusters correspond, and the mass that is in both."""
    from scipy.optimize import linear_sum_assignment

    shared = np.zeros([int(group.max(initial=-1)) + 1 for group in groups])
    np.add.at(shared, groups, weights)
    rows, columns = linear_sum_assignment(-shared)
    return rows, columns, shared[rows, columns]


def _by_chance(groups: tuple[Labels, Labels], weights: Array) -> float:
    """The share that clusters of these sizes have in common where they have nothing to do with each other."""
    random = np.random.default_rng(0)
    shuffled = [_best((groups[0], random.permutation(groups[1])), weights)[2].sum() for _ in range(_SHUFFLES)]
    return float(np.mean(shuffled))


def _mean_directions(u: Array, weights: Array, group: Labels) -> Array:
    sums = np.stack([np.bincount(group, weights * x) for x in u.T], axis=1)
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.finfo(float).tiny)


def _mean(values: Array, weights: Array) -> float:
    return float(values @ weights / weights.sum()) if weights.sum() else float("nan")
