"""The problem: which block moves which measure, and for how long. It turns into JSON and back without loss."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from vlasov import checks
from vlasov.attention import Attention
from vlasov.blocks import MLP, Block, LayerNorm, Normalised, normalised
from vlasov.blocks.layer_norm import refuse_origin
from vlasov.codec import Described, decode, encode
from vlasov.errors import InputError, warn
from vlasov.flow import Flow
from vlasov.measures import Density, Measure, Particles, in_sequence

_LOST = 0.01  # of the mass: finite volumes and grids that are a little small lose so much


@dataclass(frozen=True, eq=False)
class Problem(Described):
    """d_t mu + div(mu Gamma_mu) = 0, mu(0) = initial, for 0 <= t <= horizon.

    Parameters
    ----------
    attention
        The map from mu to its velocity field Gamma_mu.
    initial
        mu(0). A ``Density`` whose mass is not one (pixels, counts) is divided by it, with a warning.
    horizon
        The final time, positive.
    name
        What the problem is called in titles and files.
    layer_norm, mlp
        What stands around the attention in a block, if anything does: see ``vlasov.blocks``.

    Examples
    --------
    The variance of this Gaussian is 1 / (2 - 2 t), and its solution ends before the horizon:

    >>> problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 0.5), horizon=2.0)
    >>> problem.dimension, problem.horizon, vl.solve(problem, "gaussian").attrs["status"]
    (1, 2.0, 'blow-up')
    """

    attention: Attention
    initial: Measure
    horizon: float
    name: str = ""
    layer_norm: LayerNorm | None = field(default=None, kw_only=True)
    mlp: MLP | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for part, family, example in (
            ("attention", Attention, "vl.Softmax(...)"),
            ("initial", Measure, "vl.Gaussian(...)"),
            ("layer_norm", LayerNorm | None, "vl.LayerNorm(...)"),
            ("mlp", MLP | None, "vl.MLP(...)"),
        ):
            if not isinstance(value := getattr(self, part), family):
                raise InputError(
                    f"is {checks.short(value)}; give {part} as an object such as {example}, or as a table in a file",
                    part,
                )
        checks.text(self.name, "name")
        self._set(horizon=checks.number(self.horizon, "horizon", above=0.0))
        rows, columns = self.attention.shape
        if rows != columns:
            raise InputError(
                f"has V of shape {(rows, columns)} but velocities need d rows; add an output matrix", "attention"
            )
        if not _has_moments(self.initial):
            raise InputError("has a mean or a covariance that is not finite; scale it to about one", "initial")
        if self.initial.dimension != columns:
            raise InputError(
                f"has d = {self.initial.dimension} but the attention acts on d = {columns}; make them agree", "initial"
            )

        self._check_parts()
        _check_places(self.attention, self.initial)
        self._set(initial=_of_mass_one(self.initial))

    def _check_parts(self) -> None:
        """LayerNorm and MLP fit the tokens, none of which is where LayerNorm is not defined."""
        for name, part in (("layer_norm", self.layer_norm), ("mlp", self.mlp)):
            try:
                if part is not None:
                    part.check(self.dimension)
            except InputError as mistake:
                raise mistake.inside(name) from None
        points = self.initial.points if isinstance(self.initial, Particles) else None
        if self.layer_norm is not None and points is not None and not points.any(axis=1).all():
            refuse_origin(points, "initial.points")

    @property
    def dimension(self) -> int:
        """d."""
        return self.initial.dimension

    @cached_property
    def block(self) -> Attention:
        """What moves the measure: the attention, with what stands around it."""
        if self.layer_norm is None and self.mlp is None:
            return self.attention
        return Block(self.attention, self.layer_norm, self.mlp)

    @property
    def post_norm(self) -> LayerNorm | None:
        """What keeps tokens on an ellipsoid, if anything does."""
        return None if self.layer_norm is None or not self.layer_norm.post else self.layer_norm

    @property
    def jumps_at_origin(self) -> bool:
        """Whether velocities jump there: under pre-norm, where they depend on x / |x|."""
        return self.layer_norm is not None and not self.layer_norm.post

    @cached_property
    def start(self) -> Measure:
        """mu(0): the initial measure, under post-norm on the ellipsoid."""
        return self.initial if self.post_norm is None else normalised(self.initial, self.post_norm)

    @property
    def drawn_from(self) -> Measure:
        """What tokens are drawn from: mu(0), with places in a sequence where attention asks for them."""
        return in_sequence(self.start) if self.attention.causal else self.start

    @property
    def smooth(self) -> bool:
        """Whether Gauss nodes know their limit.

        Not where LayerNorm jumps at the origin, unless nodes are directions; nor where an MLP bends within a part of
        the measure's width.
        """
        if self.mlp is not None and not self.mlp.is_mild(self.start.covariance):
            return False
        if self.layer_norm is None:
            return True
        return isinstance(self.start, Normalised) and self.start.by_directions

    def until(self, horizon: float) -> Self:
        """The same up to another time.

        Parameters
        ----------
        horizon
            The final time.

        Examples
        --------
        >>> vl.load_case("gaussian-blow-up").problem.until(0.25).horizon
        0.25
        """
        return self.changed(horizon=horizon)

    @property
    def unmasked(self) -> Self:
        """The same where all see all."""
        return self.changed(attention=self.attention.unmasked) if self.attention.causal else self

    def changed(self, **changes: Any) -> Self:
        """The same but for these fields, which are not checked again.

        Parameters
        ----------
        **changes
            Fields by name, with values as they are kept: objects, not tables.

        Examples
        --------
        >>> problem = vl.load_case("gaussian-blow-up").problem
        >>> problem.changed(initial=vl.Box([-1.0, -1.0], [1.0, 1.0])).initial.kind
        'box'
        """
        return self.trusted(**{f.name: getattr(self, f.name) for f in dataclasses.fields(self)} | changes)

    def flow(self, *, tolerance: float = 1e-10, method: str = "auto") -> Flow:
        """The velocity of this problem: one for each run and thread; see ``vlasov.flow``.

        Parameters
        ----------
        tolerance
            Largest error of a velocity that is accepted, relative to |V| and the radius of the measure.
        method
            How sums over particles are evaluated: one of ``vlasov.tilting.METHODS``.

        Examples
        --------
        >>> flow = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Particles([-1.0, 1.0]), horizon=1.0).flow()
        >>> flow.velocity(vl.Particles([-1.0, 1.0]), [[1.0]], 0.0).values.round(6), flow.evaluations
        (array([[0.761594]]), 1)
        """
        return Flow(self.block, tolerance=tolerance, method=method)

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, numbers and strings: the form of a case's TOML file.

        Examples
        --------
        >>> vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 1.0), horizon=2.0).to_dict()["initial"]
        {'kind': 'gaussian', 'mean': [0.0], 'covariance': [[1.0]]}
        """
        return encode(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Problem:
        """The problem that ``to_dict`` described.

        Parameters
        ----------
        plain
            Tables as ``to_dict`` returns them, or as a case's TOML file has them.

        Examples
        --------
        >>> plain = vl.load_case("ring-2d").problem.to_dict()
        >>> vl.Problem.from_dict(plain | {"horizon": 0.5}).horizon
        0.5
        """
        return decode(plain, cls)

    def to_json(self) -> str:
        """One line of JSON that rebuilds the problem bit for bit.

        Examples
        --------
        >>> problem = vl.load_case("ring-2d").problem
        >>> vl.Problem.from_json(problem.to_json()).to_dict() == problem.to_dict()
        True
        """
        return self._json

    @cached_property
    def _json(self) -> str:
        """Problems never change, and every Dataset made of a problem holds this text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Problem:
        """The problem that ``to_json`` wrote.

        Parameters
        ----------
        text
            JSON as ``to_json`` writes it; every run holds its own in the attribute ``problem``.

        Examples
        --------
        >>> run = vl.solve("gaussian-blow-up", "gaussian", times=[0.1])
        >>> vl.Problem.from_json(run.attrs["problem"]).initial.kind  # every run holds its problem
        'gaussian'
        """
        try:
            plain = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"is not JSON: {error}", "problem") from None
        return cls.from_dict(plain)


def _check_places(attention: Attention, initial: Measure) -> None:
    """Tokens under a mask have places in a sequence; where nothing is masked, places are kept, and say nothing."""
    if attention.causal:
        nobody = np.zeros((0, initial.dimension)), np.zeros(0)
        try:
            initial.seen_by(*((initial.points, None) if isinstance(initial, Particles) else nobody))
        except InputError as mistake:
            raise mistake.inside("initial") from None
    elif initial.ordered:
        warn(
            f"{attention.kind} attention is not masked: the places s of its tokens are kept, but change nothing; "
            "mask it by vl.Masked(attention)",
            UserWarning,
        )


def _of_mass_one(initial: Measure) -> Measure:
    """The initial measure; a density of another mass is divided by it, with a warning."""
    if not isinstance(initial, Density) or abs(initial.mass - 1) <= _LOST:
        return initial
    mass = f"{initial.mass:.4g}"
    warn(
        f"initial has mass {mass} and is divided by it, since a solution has mass 1; give values divided by {mass} if "
        "that is meant",
        UserWarning,
    )
    return Density(initial.values / initial.mass, initial.edges, origin=initial.origin, matrix=initial.matrix)


def _has_moments(measure: Measure) -> bool:
    """Whether mean and covariance are numbers."""
    try:
        with np.errstate(all="ignore"):
            return checks.finite(measure.mean) and checks.finite(measure.covariance)
    except OverflowError:  # of Python's own numbers
        return False
