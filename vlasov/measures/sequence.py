"""Laws of tokens that stand in a sequence: the law of x changes along s, as in a text with two topics."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures.base import Cube, How, Measure, Seed, mapped
from vlasov.measures.mixture import Mixed, Mixture
from vlasov.measures.order import checked_places
from vlasov.measures.particles import Particles
from vlasov.summing import Kernel, KernelSums, SumOfParts
from vlasov.tilting import Field, Head, Request, add_up
from vlasov.tilting.results import joined


@dataclass(frozen=True, eq=False)
class Sequence(Mixture, kind="sequence"):
    """s uniform on [0, 1], and x ~ mu_c for edges[c] <= s < edges[c + 1].

    Under ``Masked`` attention a token at s sees those with places up to s. In whatever is not about s it is the mixture
    with the weights diff(edges).

    Parameters
    ----------
    measures
        Laws mu_c on the same R^d, of any kind.
    edges
        From 0 to 1, increasing, one more than there are measures; equal parts if not given.

    Examples
    --------
    The first quarter of a text speaks of one thing, the rest of another:

    >>> text = vl.Sequence([vl.Box(0.0, 2.0), vl.Box(4.0, 6.0)], edges=[0.0, 0.25, 1.0])
    >>> text.mean
    array([4.])
    """

    components: abc.Sequence[Measure] = field(init=False)
    weights: Array = field(init=False)
    measures: abc.Sequence[Measure] = ()
    edges: Array = None  # type: ignore[assignment]  # None is replaced by equal parts

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, measures: abc.Sequence[Measure], edges: ArrayLike | None = None) -> None: ...

    def __post_init__(self) -> None:
        try:
            mixture = Mixture(self.measures)
        except InputError as mistake:
            raise InputError(
                mistake.sentence.replace("Mixture(components, weights)", "Sequence(measures, edges)"),
                mistake.field.replace("components", "measures"),
            ) from None
        count = len(mixture.components)
        for c, part in enumerate(mixture.components):
            if part.ordered:
                raise InputError("has places in a sequence of its own; give a law of x alone", f"measures[{c}]")
        edges = np.linspace(0.0, 1.0, count + 1) if self.edges is None else checks.vector(self.edges, "edges")
        if edges.shape != (count + 1,):
            raise InputError(f"has {edges.size} numbers for {count} measures; give one more than measures", "edges")
        if edges[0] != 0 or edges[-1] != 1 or (np.diff(edges) <= 0).any():
            raise InputError(f"is {edges.tolist()} but must increase from 0 to 1", "edges")
        self._set(measures=mixture.components, edges=edges, components=mixture.components, weights=np.diff(edges))

    @property
    def ordered(self) -> bool:
        return True

    # Prefixes

    def seen_by(self, x: Array, s: ArrayLike | None) -> Array:
        if s is None:
            raise InputError("is missing: a sequence is seen from a place in it, s=...", "s")
        return checked_places(s, len(x))

    def prefix(self, s: float) -> Measure:
        """The law of x given that its place is s or before; at s = 0 the first law."""
        weights = self._seen(np.array([s]))[0]
        last = int(np.flatnonzero(weights)[-1])
        return self.measures[0] if last == 0 else Mixture(self.measures[: last + 1], weights[: last + 1])

    def attend_prefixes(
        self, x: Array, places: Array, heads: abc.Sequence[Head], request: Request = Request(), **how: Unpack[How]
    ) -> Field:
        """``attend``, where targets x_i at ``places`` s_i (m,) see the law of tokens up to s_i only."""
        from vlasov.compiled.products import map_rows

        about, weights, fields = how.get("about"), self._seen(places).T, []
        seen = [c for c, weight in enumerate(weights) if weight.any()]
        for head in heads:
            parts = Mixed([(weights[c], self.measures[c].reweighted(head.P)) for c in seen])
            tilted = parts.tilted(map_rows(x, head.A), request, workspace=how.get("workspace"))
            values = map_rows(tilted.mean if about is None else tilted.mean - about, head.V)
            fields.append(Field(values, tilted.method, float(np.linalg.norm(head.V, 2)) * tilted.error_bound))
        return add_up(fields, how.get("out"))

    def summed_prefixes(
        self, xi: Array, places: Array, kernel: Kernel, request: Request = Request(), **how: Unpack[How]
    ) -> KernelSums:
        """``summed`` over the law of tokens up to s_i only, shape (m,)."""
        weights, total, methods = self._seen(places).T, SumOfParts(xi.shape), set()
        for part, share in zip(self.measures, weights / weights.sum(axis=0), strict=True):
            rows = np.flatnonzero(share)  # who sees it
            if rows.size:
                sums = part.summed(xi[rows], kernel, request, workspace=how.get("workspace"))
                some = share[rows]
                total.add(rows, (some[:, None] * sums.first, some * sums.error_bound))
                methods.add(sums.method)
        return total.over(np.ones(len(xi)), 0.0, joined(methods))

    def _seen(self, s: Array) -> Array:
        """Masses of the laws up to s, (m, parts), of which those at s = 0 are the first law's."""
        masses = np.clip(s[:, None] - self.edges[:-1], 0.0, self.weights)
        masses[s == 0, 0] = 1.0
        return masses

    # Samples

    def sample(self, n: int, sampling: str = "random", *, seed: Seed = 0) -> Particles:
        """n particles with places, in their order.

        As for every measure, with one more dimension for s; for "quadrature" n^{1/(d+1)} nodes of s in each part and
        along each axis. Where there is one law, one node of s says it all: every prefix is that law.
        """
        if sampling == "quantile":
            raise InputError('"quantile" leaves no place for s; use "sobol" or "quadrature"', "sampling")
        if sampling == "quadrature" and len(self.measures) > 1:
            axes = self.dimension + 1
            return self.quadrature(max(1, round(checks.integer(n, "n", least=1) ** (1 / axes))))
        return super().sample(n, sampling, seed=seed)

    def quadrature(self, nodes: int) -> Particles:
        """Gauss nodes in x at ``nodes`` places in the middle of equal pieces of each part.

        Those at one place see each other, so that a prefix of the first law is that law. No weights and places of
        tokens make sums over s of second order: one sees all of its own place, so that they err by 1 / nodes. (The
        solvers' own references, and "finite-volume", have slices of spectral accuracy instead.)
        """
        return self.along([part.quadrature(nodes) for part in self.measures], 1 if len(self.measures) == 1 else nodes)

    def along(self, rules: abc.Sequence[Particles], pieces: int) -> Particles:
        """Points that stand for each law in the middle of equal pieces of its part of s, so many of each."""
        points, weights, places = [], [], []
        for rule, start, width in zip(rules, self.edges, self.weights, strict=False):
            points.append(np.tile(rule.points, (pieces, 1)))
            weights.append(np.tile(rule.weights, pieces) * (width / pieces))
            places.append(np.repeat(start + width * (np.arange(pieces) + 0.5) / pieces, len(rule)))
        return Particles(np.concatenate(points), np.concatenate(weights), np.concatenate(places))

    def _drawn(self, n: int, cube: Cube) -> Particles:
        rows = mapped(self._placed, self.dimension + 1, cube(1 + self._most_coordinates), n)
        rows = rows[np.argsort(rows[:, -1], kind="stable")]
        return Particles.equally_weighted(np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1]))

    def _placed(self, u: Array) -> Array:
        """x and, last, s from points of a cube, whose first coordinate is s."""
        picked = np.searchsorted(self.edges[1:-1], u[:, 0], side="right")
        return np.column_stack([self._by_component(u, picked), u[:, 0]])

    @cached_property
    def _most_coordinates(self) -> int:
        return max(part.cube_dimension for part in self.measures)

    def image(self, matrix: ArrayLike, shift: ArrayLike) -> Sequence | None:
        """The sequence of the laws' images, if all have one."""
        images = [part.image(matrix, shift) for part in self.measures]
        present = [image for image in images if image is not None]
        return Sequence(present, self.edges) if len(present) == len(images) else None


def in_sequence(measure: Measure) -> Measure:
    """The measure with places: its product with Uniform[0, 1] if it says nothing of them.

    Parameters
    ----------
    measure
        Any measure.

    Examples
    --------
    >>> vl.measures.in_sequence(vl.Gaussian(0.0, 1.0)).kind
    'sequence'
    """
    return measure if isinstance(measure, Particles | Sequence) else Sequence([measure])
