"""Random problems put under a causal mask, and their solutions in plain NumPy; ``python benchmarks/trust.py --masked``.

    Gamma_mu(s, x) = Gamma_{mu(. | tau <= s)}(x)

Three kinds: a law that is the same along the sequence, whose truth is that without the mask; a text of two or three
laws; tokens that are given, with places, ties and unequal weights. The law of a text is smooth in s within each part,
but steep after its start: it is known at Gauss places of pieces that grow, between them by polynomials, and prefixes
end with a Gauss rule of their own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from problems import Array
from trust_problems import Part, Stated, Truth, built, errors, nodes, solved, truth as unmasked_truth
from trust_twists import moved
from trust_velocities import causal_velocity, means_at

# Nodes along an axis; pieces of a part, and places in each: more and more, until two sizes agree or time is up
_SIZES = {1: ((12, 2, 3), (18, 3, 4), (27, 4, 5), (40, 5, 6)),
          2: ((5, 2, 3), (7, 3, 4), (10, 3, 5), (13, 4, 6)),
          3: ((3, 2, 2), (4, 2, 3), (5, 3, 4))}  # fmt: skip
_AGREE, _PATIENCE = 1e-8, 4.0  # of two sizes; CPU seconds, after which no larger size is begun
_LONGER = 4.0  # a piece of a part than the one before
_NARROWEST = 0.1  # part of a text
_RTOL, _LOOSE = 1e-9, 1e-7
_LEAST, _ROUGH = 1e-8, 1e-5  # errors of a reference that is known no better, and that few nodes are asked for


@dataclass(frozen=True)
class Masked(Stated):
    """A problem under a mask: "product", "text" with its edges, or "tokens" (points, weights, places)."""

    mask: str = ""
    edges: Array | None = None
    tokens: tuple[Array, Array, Array] | None = None
    seen: tuple[bool, ...] = ()  # heads that see all, whatever the place

    def __str__(self) -> str:
        return f"{super().__str__()} masked {self.mask}{' but a head' * any(self.seen)}"


def masked(problem: Stated, seed: int, *, tokens: bool) -> Masked:
    """The problem under a mask; given tokens are among the kinds where the solver moves such."""
    rng = np.random.default_rng([seed, problem.index, 3])
    kind = str(rng.choice(["product", "text", "tokens"] if tokens else ["product", "text", "text"]))
    plain = {name: value for name, value in vars(problem).items() if name != "parts"}
    several = len(problem.heads) > 1 and tokens and kind != "product" and rng.uniform() < 0.3
    common = plain | {"mask": kind, "seen": (False, True) if several else ()}
    if kind == "product":
        return Masked(parts=problem.parts, **common)
    if kind == "tokens":
        return Masked(parts=problem.parts, tokens=_tokens(problem, rng), **common)
    if any(head.kind == "sinkhorn" for head in problem.heads):  # dear in NumPy, prefix by prefix
        common["heads"] = [head._replace(kind="softmax") if head.kind == "sinkhorn" else head for head in problem.heads]
    parts = problem.parts[:3] if len(problem.parts) > 1 else _several(problem.parts[0], rng)
    inner = np.sort(rng.uniform(_NARROWEST, 1 - _NARROWEST, len(parts) - 1))
    edges = np.concatenate([[0.0], inner, [1.0]])
    if np.diff(edges).min() < _NARROWEST:
        edges = np.linspace(0.0, 1.0, len(parts) + 1)
    return Masked(
        parts=[(float(w), *part[1:]) for w, part in zip(np.diff(edges), parts, strict=True)], edges=edges, **common
    )


def _several(part: Part, rng: np.random.Generator) -> list[Part]:
    """Two or three laws of one kind at different places."""
    d, size = len(part[2][-1]) if part[1] == "ring" else len(part[2][0]), _size(part)
    ways = rng.normal(size=(int(rng.integers(1, 3)), d))
    return [part, *(moved(part, size * rng.uniform(0.3, 2.0) * way) for way in ways)]


def _size(part: Part) -> float:
    _, kind, numbers = part
    if kind == "gaussian":
        return float(np.sqrt(np.trace(numbers[1])))
    return float(np.abs(numbers[1] - numbers[0]).max() / 2) if kind == "box" else float(numbers[1])


def _tokens(problem: Stated, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Between 10 and 80 tokens: nodes of the problem's law, with places of which some are ties."""
    x, w = nodes(problem, 6)
    n = int(rng.integers(10, 81))
    rows = rng.choice(len(x), n, p=w / w.sum())
    points = x[rows] + 1e-3 * np.sqrt(np.var(x, axis=0)) * rng.normal(size=(n, problem.dimension))
    weights = rng.uniform(0.1, 1.0, n) if rng.uniform() < 0.5 else np.ones(n)
    places = rng.uniform(size=n) if rng.uniform() < 0.5 else rng.integers(0, n // 3, n) / n
    return points, weights / weights.sum(), places


def built_masked(problem: Masked) -> Any:
    """The problem as the package takes it."""
    import vlasov as vl

    plain = built(problem)
    if any(problem.seen):
        heads = [head if seen else vl.Masked(head)
                 for head, seen in zip(plain.attention.heads, problem.seen, strict=True)]  # fmt: skip
        attention: Any = vl.MultiHead(heads, plain.attention.outputs)
    else:
        attention = vl.Masked(plain.attention)
    initial = plain.initial
    if problem.tokens is not None:
        initial = vl.Particles(*problem.tokens)
    elif problem.edges is not None:
        initial = vl.Sequence(initial.components, problem.edges)
    return vl.Problem(attention, initial, problem.horizon)


def truth(problem: Masked, times: Array, *, careful: bool = True) -> Truth:
    """The reference solution, as ``trust_problems.truth``."""
    if problem.mask == "product":
        return unmasked_truth(problem, times, careful=careful)
    rtol = _RTOL if careful else _LOOSE
    if problem.tokens is not None:
        return Truth(*_of_tokens(problem, times), 1e-9)
    began, better, apart = time.process_time(), None, np.inf
    for size in _SIZES[problem.dimension]:
        found, better = better, _Text(problem, *size).moments(times, rtol)
        if found is not None:
            apart = float(np.max(errors(found, better)))
        spent = time.process_time() - began
        if apart <= (_AGREE if careful else _ROUGH) or (found is not None and spent > _PATIENCE):
            break
    assert better is not None
    return Truth(*better, max(_LEAST if careful else _ROUGH, apart))


def _of_tokens(problem: Masked, times: Array) -> tuple[Array, Array]:
    assert problem.tokens is not None
    points, weights, places = problem.tokens
    seen = problem.seen or (False,) * len(problem.heads)

    def velocity(t: float, y: Array) -> Array:
        x = y.reshape(points.shape)
        each = zip(problem.heads, seen, strict=True)
        return sum(causal_velocity(head, x, weights, np.zeros(len(x)) if all_of_it else places)
                   for head, all_of_it in each).ravel()  # fmt: skip

    scale = float(np.sqrt(weights @ np.square(points).sum(axis=1)))
    rows = solved(velocity, points.ravel(), times, scale).reshape(len(times), *points.shape)
    return _moments(rows, weights)


def _moments(rows: Array, weights: Array) -> tuple[Array, Array]:
    means = np.einsum("n,tnk->tk", weights, rows)
    away = rows - means[:, None]
    return means, np.einsum("n,tnk,tnl->tkl", weights, away, away)


class _Text:
    """Laws at Gauss places of pieces of each part; the first part needs one, for all of its prefixes are one law."""

    def __init__(self, problem: Masked, size: int, levels: int, places: int) -> None:
        assert problem.edges is not None
        self.heads, self.seen = problem.heads, problem.seen or (False,) * len(problem.heads)
        self.shape, rules = (-1, problem.dimension), [
            nodes(replace(problem, parts=[(1.0, *part[1:])]), size) for part in problem.parts
        ]  # fmt: skip
        edges, self.rules = [0.0, problem.edges[1]], rules[:1]
        for rule, start, end in zip(rules[1:], problem.edges[1:-1], problem.edges[2:], strict=True):
            edges += [start + (end - start) * _LONGER ** (level + 1 - levels) for level in range(levels)]
            self.rules += [rule] * levels
        self.edges = np.array(edges)
        unit, gauss = leggauss(places)
        self.unit, self.gauss = (unit + 1) / 2, gauss / 2
        counts = [1] + [places] * (len(self.rules) - 1)
        start = [np.tile(x, (count, 1)) for (x, _), count in zip(self.rules, counts, strict=True)]
        self.ends = np.cumsum([len(x) for x in start])
        self.start = np.concatenate(start)
        widths = np.diff(self.edges)
        first = [w * width for (_, w), width in zip(self.rules[:1], widths, strict=False)]
        rest = [np.outer(self.gauss * width, w).ravel()
                for (_, w), width in zip(self.rules[1:], widths[1:], strict=True)]  # fmt: skip
        self.weights = np.concatenate([*first, *rest])

    def moments(self, times: Array, rtol: float) -> tuple[Array, Array]:
        """Means and covariances of all."""
        scale = float(np.sqrt(self.weights @ np.square(self.start).sum(axis=1)))
        rows = solved(self._velocity, self.start.ravel(), times, scale, rtol)
        return _moments(rows.reshape(len(times), *self.start.shape), self.weights)

    def _velocity(self, t: float, y: Array) -> Array:
        x, result = y.reshape(self.shape), np.zeros(self.start.shape)
        for rows, points, weights in self._prefixes(x):
            for head, all_of_it in zip(self.heads, self.seen, strict=True):
                if not all_of_it:
                    result[rows] += means_at(head, x[rows], points, weights)
        for head, all_of_it in zip(self.heads, self.seen, strict=True):
            if all_of_it:
                result += means_at(head, x, x, self.weights)
        return result.ravel()

    def _prefixes(self, x: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Rows at one place, and the points and weights that they see."""
        yield slice(0, int(self.ends[0])), x[: self.ends[0]], self.rules[0][1]
        for c in range(1, len(self.rules)):
            before, w = int(self.ends[c - 1]), self.rules[c][1]
            own, width = x[before : self.ends[c]].reshape(len(self.unit), len(w), -1), np.diff(self.edges)[c]
            for k, end in enumerate(self.unit):  # from the part's start to its share ``end``
                inside = np.einsum("qk,kmd->qmd", _polynomials(self.unit, end * self.unit), own)
                weights = np.outer(end * width * self.gauss, w).ravel()
                rows = slice(before + k * len(w), before + (k + 1) * len(w))
                yield (
                    rows,
                    np.concatenate([x[:before], inside.reshape(self.shape)]),
                    np.concatenate([self.weights[:before], weights]),
                )


def _polynomials(places: Array, at: Array) -> Array:
    """Lagrange's, one at each place, (at, places)."""
    result = np.ones((len(at), len(places)))
    for k, here in enumerate(places):
        others = np.delete(places, k)
        result[:, k] = np.prod((at[:, None] - others) / (here - others), axis=1)
    return result
