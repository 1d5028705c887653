"""How rough attention is on n tokens of several laws, with every bound: the figure of Lipschitz constants against n."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from vlasov.postprocess.drawing.panels import draw
from vlasov.postprocess.lipschitz import ABOVE, FIT, lipschitz_study
from vlasov.postprocess.studies.slopes import band
from vlasov.problem import Problem

_ASKED = ("n", "data", "replicas", "radius", "clusters", "seed")
_NOW = 1.0  # any horizon: the flow is not asked


def figure(given: dict[str, Any]) -> tuple[Figure, dict[str, Any]]:
    """The picture, and by law of tokens: roughness of the fewest and of the most, its exponent, and the bounds."""
    problem = {"attention": given["attention"], "initial": given["initial"], "horizon": _NOW, "name": given["problem"]}
    found = lipschitz_study(Problem.from_dict(problem), **{name: given[name] for name in _ASKED})
    return draw(found), {str(name): _facts(found.sel(data=name)) for name in found["data"].values}


def _facts(here: xr.Dataset) -> dict[str, Any]:
    """Of one law; bounds at the most tokens, as geometric means over replicas."""
    means, most = band(here["lipschitz"].values, FIT).mean, int(here["n"][-1])
    bounds = {name: float(band(here[name].values, FIT).mean[-1]) for name in ABOVE}
    facts = {
        f"n = {int(here['n'][0])}": float(means[0]),
        f"n = {most}": float(means[-1]),
        "exponent": float(here["slope"]),
        "its interval": [float(here["low"]), float(here["high"])],
        "exponent by the theory": float(here["expected"]),
        "bounds from above": bounds,
        "bound from below": float(here["lower_bound"][-1]),
        "above a bound": int(sum((here["lipschitz"] > here[name]).values.sum() for name in ABOVE)),
    }
    return {what: value for what, value in facts.items() if not _unknown(value)}


def _unknown(value: Any) -> bool:
    """Whether there is no such number for this law."""
    return isinstance(value, float) and bool(np.isnan(value))
