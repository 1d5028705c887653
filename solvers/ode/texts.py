"""Masked attention in the limit: laws of x that change along a sequence, and paths of tokens that see what is before.

    X_t' = Gamma_{mu(t)(. | tau <= s)}(X_t),   mu(t)(. | tau <= s) = 1/s int_0^s law_tau(t) dtau

Within a part of a ``Sequence`` laws and velocities are smooth in s, but steep after its start, where tokens see few of
their own kind. They are known at Gauss places of pieces, each three times as long as the one before it, and between
them by polynomials; an integral that ends inside a piece has a Gauss rule of its own, so that errors fall faster than
any power of the number of places, and weights are positive. The first part needs one place: what is seen in it is its
law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.flow import Flow
from vlasov.measures import Measure, Particles, Sequence
from vlasov.measures.polynomials import gauss, lagrange
from vlasov.patience import Patience
from vlasov.problem import Problem
from vlasov.tilting import Field, Request

Velocity = Callable[[int, float, Array, Array], None]  # of clouds, as ``solvers.replicas.march`` calls it
_LONGER = 3.0  # a piece than the one before
_BEFORE, _AFTER = 0.0, 1.0  # places in what is seen: of tokens that are, and of those that heads without a mask see too


def without_mask(problem: Problem) -> Problem:
    """The same limit without the mask, where there is one law of x along the sequence, which then stays so."""
    initial = problem.initial
    if isinstance(initial, Sequence) and len(initial.measures) == 1:
        initial = initial.measures[0]
    if not problem.attention.causal or initial.ordered:
        return problem
    return problem.unmasked.changed(initial=initial)


def beside_tokens(
    attention: Attention, nodes: Particles, track: Array, tolerance: float, places: Array, patience: Patience
) -> Velocity:
    """The velocity of b clouds at ``places`` (b, m) that follow tokens with places of their own, for ``march``."""
    request, workspace = Request(tolerance), Workspace(patience)

    def velocity(k: int, t: float, x: Array, out: Array) -> None:
        measure = nodes.moved(track[k])
        for cloud, s, result in zip(x, places, out, strict=True):
            result[...] = attention.evaluate(measure, cloud, t, request, s=s, workspace=workspace).values

    return velocity


@dataclass(frozen=True)
class _Place:
    """One place in a sequence: its nodes, and how what they see is made of all nodes."""

    piece: int
    rows: slice
    before: int  # nodes of earlier pieces
    own: slice  # nodes of the piece itself
    inside: Array  # polynomials at the Gauss places before this one and, where all is seen by some, after it
    template: Particles  # weights, and _BEFORE or _AFTER where some heads see all
    after: int  # first node of later pieces where those are seen

    def seen(self, x: Array, count: int) -> Particles:
        """The law up to here (with the rest of the sequence) from the places of all nodes, (n, d)."""
        own = x[self.own].reshape(count, -1)
        inside = (self.inside @ own).reshape(-1, x.shape[1])
        return self.template.moved(np.concatenate([x[: self.before], inside, x[self.after :]]))


class Text:
    """A ``Sequence`` under attention with masks, each of its laws by nodes, which are ``rules``.

    There are ``levels`` pieces in each part but the first, with ``count`` places each.

    Attributes
    ----------
    nodes
        All of them at time zero: the law of x.
    """

    def __init__(
        self, attention: Attention, sequence: Sequence, rules: Iterable[Particles], levels: int, count: int
    ) -> None:
        self.attention, self._alone = attention, attention.masked  # else heads may see the whole sequence
        self._inner = attention.unmasked if self._alone else attention
        self._edges, laws = _pieces(sequence, levels)
        self._widths, each = np.diff(self._edges), list(rules)
        self._rules = [each[law] for law in laws]
        self._unit, self._gauss = gauss(count)
        self._counts = [1, *[count] * (len(self._rules) - 1)]
        pairs = list(zip(self._rules, self._counts, strict=True))
        ends = np.cumsum([0, *(len(rule) * places for rule, places in pairs)])
        shares = [np.ones(1) if places == 1 else self._gauss for places in self._counts]
        weights = [np.outer(share, rule.weights).ravel() for share, rule in zip(shares, self._rules, strict=True)]
        self._weights = [width * w for width, w in zip(self._widths, weights, strict=True)]
        points = np.concatenate([np.tile(rule.points, (places, 1)) for rule, places in pairs])
        self.nodes = Particles(points, np.concatenate(self._weights))
        self._places = [
            self._place(piece, k, ends.tolist()) for piece, places in enumerate(self._counts) for k in range(places)
        ]

    def _place(self, piece: int, k: int, ends: list[int]) -> _Place:
        """The k-th place of a piece."""
        rule, several = self._rules[piece], self._counts[piece] > 1
        end, start = self._unit[k] if several else 1.0, ends[piece]
        at = [end * self._unit] + [end + (1 - end) * self._unit] * (several and not self._alone)
        shares = [end * self._gauss] + [(1 - end) * self._gauss] * (len(at) - 1)
        inside = np.concatenate([lagrange(self._unit, one) for one in at]) if several else np.eye(1)
        own = [np.outer(share if several else [1.0], rule.weights).ravel() for share in shares]
        later = [] if self._alone else self._weights[piece + 1 :]
        weights = [*self._weights[:piece], *(self._widths[piece] * w for w in own), *later]
        s = None
        if not self._alone:
            hidden = sum(len(w) for w in own[1:]) + sum(map(len, later))
            s = np.repeat([_BEFORE, _AFTER], [sum(map(len, weights)) - hidden, hidden])
        total = np.concatenate(weights)
        template = Particles(np.zeros((len(total), self.nodes.dimension)), total, s)
        rows = slice(start + k * len(rule), start + (k + 1) * len(rule))
        after = ends[-1] if self._alone else ends[piece + 1]
        return _Place(piece, rows, start, slice(start, ends[piece + 1]), inside, template, after)

    def flow(self, tolerance: float) -> TextFlow:
        """The velocity of the nodes, for one run in one thread."""
        return TextFlow(self, Flow(self._inner, tolerance=tolerance))

    def move(self, flow: Flow, x: Array, t: float, out: Array) -> None:
        """The velocity of the nodes at x (n, d), by a flow of what is masked, into ``out``."""
        for number, (place, seen) in enumerate(self._seen(x)):
            self._evaluate(flow, seen, x[place.rows], t, out[place.rows], number)

    def passive(self, tolerance: float, track: Array, s: Array, patience: Patience) -> Velocity:
        """The velocity of b clouds at places s (b, m) that follow the nodes and do not act on them, for ``march``.

        At each node in s of a token's piece, and between them by the polynomials.
        """
        flow = Flow(self._inner, tolerance=tolerance)
        flow.patience = patience
        pieces = np.searchsorted(self._edges[1:-1], s, side="right")
        rows = [[np.flatnonzero(own == piece) for piece in range(len(self._rules))] for own in pieces]
        factors = [
            [self._factors(piece, places[mine]) for piece, mine in enumerate(own)]
            for places, own in zip(s, rows, strict=True)
        ]
        first = np.cumsum([0, *self._counts])

        def velocity(k: int, t: float, x: Array, out: Array) -> None:
            out[...] = 0.0
            for number, (place, seen) in enumerate(self._seen(track[k])):
                for b, cloud in enumerate(x):
                    mine = rows[b][place.piece]
                    if mine.size:
                        found = np.empty((mine.size, cloud.shape[1]))
                        self._evaluate(flow, seen, cloud[mine], t, found, (b + 1) * len(self._places) + number)
                        out[b, mine] += factors[b][place.piece][:, number - first[place.piece], None] * found

        return velocity

    def _factors(self, piece: int, s: Array) -> Array:
        if self._counts[piece] == 1:
            return np.ones((len(s), 1))
        return lagrange(self._unit, (s - self._edges[piece]) / self._widths[piece])

    def _seen(self, x: Array) -> list[tuple[_Place, Particles]]:
        return [(place, place.seen(x, self._counts[place.piece])) for place in self._places]

    def _evaluate(self, flow: Flow, seen: Particles, x: Array, t: float, out: Array, system: int) -> None:
        if seen.s is None:
            flow.velocity(seen, x, t, out=out, system=system)
        else:
            s, workspace = np.full(len(x), _BEFORE), Workspace(flow.patience)
            out[...] = self._inner.evaluate(seen, x, t, flow.request, s=s, workspace=workspace).values


class TextFlow(Flow):
    """The velocity of a text's nodes, as solvers and references ask for that of tokens."""

    def __init__(self, text: Text, inner: Flow) -> None:
        super().__init__(text.attention, tolerance=inner.request.tolerance)
        self._text, self._inner = text, inner

    def velocity(
        self,
        measure: Measure,
        x: Array,
        t: float,
        *,
        about: Array | None = None,
        out: Array | None = None,
        system: int = 0,
        s: Array | None = None,
    ) -> Field:
        """At x (n, d), which are all nodes, at their own places."""
        values = np.empty_like(x) if out is None else out
        self._inner.patience = self.patience
        self._text.move(self._inner, x, t, values)
        self.evaluations += 1
        return Field(values, "text", self._inner.error_bound)


def _pieces(sequence: Sequence, levels: int) -> tuple[Array, list[int]]:
    """Edges of pieces, and the law in each."""
    edges, laws = [0.0, float(sequence.edges[1])], [0]
    for law, (start, width) in enumerate(zip(sequence.edges[1:-1], sequence.weights[1:], strict=True), start=1):
        edges += [float(start + width * _LONGER**-level) for level in reversed(range(levels))]
        laws += [law] * levels
    edges[-1] = 1.0
    return np.array(edges), laws
