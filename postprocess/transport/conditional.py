"""Laws of tokens with places in a sequence, place by place: what the conditional distance adds up.

    d_p(mu, nu)^p = int_0^1 W_p(mu(.|s), nu(.|s))^p ds

for measures on [0, 1] x R^d with one law of s. Reference: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Measure, Particles, Sequence

_SAME = 1e-9  # difference of masses at one place, and of places


class AtPlace(NamedTuple):
    """The mass at some places, and the two laws of x there."""

    mass: float
    one: Measure
    other: Measure


def match(mu: Measure, nu: Measure) -> bool:
    """Whether both have places, and the same law of them."""
    if isinstance(mu, Sequence) and isinstance(nu, Sequence):
        return True
    if not (isinstance(mu, Particles) and isinstance(nu, Particles)) or mu.s is None or nu.s is None:
        return False
    (places, masses), (others, counted) = _law(mu), _law(nu)
    return (
        places.shape == others.shape
        and bool((np.abs(places - others) <= _SAME).all())
        and bool((np.abs(masses - counted) <= _SAME * masses + 1e-15).all())
    )


def at_places(mu: Measure, nu: Measure) -> tuple[list[AtPlace], Array, Array]:
    """The laws at each place, and masses and distances |x - y| of places where each has one token, both (k,)."""
    if not match(mu, nu):
        sentence = 'have other places, or masses at them, so that no "conditional" distance is defined'
        raise InputError(
            f"{sentence}; for the distance of x alone give vl.Particles(points, "
            "weights) or, of a vl.Sequence, vl.Mixture(measures, weights)",
            "mu, nu",
        )
    if isinstance(mu, Sequence) and isinstance(nu, Sequence):
        edges = np.union1d(mu.edges, nu.edges)
        middles = (edges[1:] + edges[:-1]) / 2
        parts = [
            tuple(one.measures[int(np.searchsorted(one.edges, s)) - 1] for one in (mu, nu)) for s in middles.tolist()
        ]
        return (
            [AtPlace(float(w), *pair) for w, pair in zip(np.diff(edges), parts, strict=True)],
            np.empty(0),
            np.empty(0),
        )
    assert isinstance(mu, Particles)
    assert isinstance(nu, Particles)
    groups = [_groups(one) for one in (mu, nu)]
    single = np.array([len(a) == 1 == len(b) for a, b in zip(*groups, strict=True)])
    rows = [np.array([group[0] for group in one], np.int64)[single] for one in groups]
    apart = np.linalg.norm(mu.points[rows[0]] - nu.points[rows[1]], axis=1)
    several = [
        AtPlace(
            float(mu.weights[a].sum()), Particles(mu.points[a], mu.weights[a]), Particles(nu.points[b], nu.weights[b])
        )
        for a, b, alone in zip(*groups, single, strict=True)
        if not alone
    ]
    return several, mu.weights[rows[0]], apart


def _law(cloud: Particles) -> tuple[Array, Array]:
    """Places that carry weight, and the masses at them."""
    assert cloud.s is not None
    carrying = cloud.weights > 0
    places, which = np.unique(cloud.s[carrying], return_inverse=True)
    return places, np.bincount(which, cloud.weights[carrying]).astype(float)


def _groups(cloud: Particles) -> list[NDArray[np.int64]]:
    """Tokens that carry weight, by place."""
    assert cloud.s is not None
    carrying = np.flatnonzero(cloud.weights > 0)
    carrying = carrying[np.argsort(cloud.s[carrying], kind="stable")]
    return np.split(carrying, np.flatnonzero(np.diff(cloud.s[carrying])) + 1)
