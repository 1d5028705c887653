"""Where tokens of a case gather: clusters and the polytope of their limits."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from vlasov.cases.solving import solve
from vlasov.postprocess.clusters import clusters as find
from vlasov.postprocess.drawing.clusters import clusters
from vlasov.postprocess.panels import notes_of


def figure(given: dict[str, Any]) -> tuple[Figure, dict[str, Any]]:
    """The picture of the case's run, and what its clusters are."""
    run = solve(given["case"], "particles")
    found = find(run)
    return clusters(run, found=found), {"clusters": int(found["count"].values[-1]), "says": list(notes_of(found))}
