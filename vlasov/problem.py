"""The problem: which attention moves which measure, and for how long. It turns into JSON and back without loss."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vlasov import checks
from vlasov.attention import Attention
from vlasov.codec import Described, decode, encode
from vlasov.errors import InputError
from vlasov.flow import Flow
from vlasov.measures import Measure, Particles


@dataclass(frozen=True, eq=False)
class Problem(Described):
    """d_t mu + div(mu Gamma_mu) = 0, mu(0) = initial, for 0 <= t <= horizon.

    Parameters
    ----------
    attention
        The map from mu to its velocity field Gamma_mu.
    initial
        mu(0).
    horizon
        The final time, positive.
    name
        What the problem is called in titles and files.
    """

    attention: Attention
    initial: Measure
    horizon: float
    name: str = ""

    def __post_init__(self) -> None:
        for field, family, example in (
            ("attention", Attention, "vl.Softmax(...)"),
            ("initial", Measure, "vl.Gaussian(...)"),
        ):
            if not isinstance(value := getattr(self, field), family):
                raise InputError(
                    f"is {checks.short(value)}; give {field} as an object such as {example}, or as a table in a file",
                    field,
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

        _check_places(self.attention, self.initial)

    @property
    def dimension(self) -> int:
        """d."""
        return self.initial.dimension

    def until(self, horizon: float) -> Problem:
        """The same up to another time, which is not checked again."""
        return Problem.trusted(attention=self.attention, initial=self.initial, horizon=horizon, name=self.name)

    def flow(self, *, tolerance: float = 1e-10, method: str = "auto") -> Flow:
        """The velocity of this problem: one for each run and thread; see ``vlasov.flow``."""
        return Flow(self.attention, tolerance=tolerance, method=method)

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, numbers and strings: the form of a case's TOML file."""
        return encode(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Problem:
        """The problem that ``to_dict`` described."""
        return decode(plain, cls)

    def to_json(self) -> str:
        """One line of JSON that rebuilds the problem bit for bit."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Problem:
        """The problem that ``to_json`` wrote."""
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
        warnings.warn(
            f"{attention.kind} attention is not masked: the places s of its tokens are kept, but change nothing; "
            "mask it by vl.Masked(attention)",
            UserWarning,
            stacklevel=4,
        )


def _has_moments(measure: Measure) -> bool:
    """Whether mean and covariance are numbers."""
    try:
        with np.errstate(all="ignore"):
            return checks.finite(measure.mean) and checks.finite(measure.covariance)
    except OverflowError:  # of Python's own numbers
        return False
