"""The papers' figures, each from a file of parameters, with the facts of its caption as numbers.

``settings``: which there are. ``variants``: their attentions. ``limits``: what becomes of covariances. ``cone``,
``ranks``, ``gathering``, ``roughness``: the pictures, by kind. ``told``: facts in words.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from vlasov.postprocess.papers import cone, gathering, ranks, roughness
from vlasov.postprocess.papers.settings import figure_names, parameters

_KINDS = {
    "cone": cone.figure,
    "trace-one": cone.figure,
    "ranks": ranks.figure,
    "gathering": gathering.figure,
    "roughness": roughness.figure,
}


def paper_figure(name: str, **changes: Any) -> tuple[Figure, dict[str, Any]]:
    """A figure of the papers, and the facts of its caption.

    Parameters
    ----------
    name
        One of ``figure_names()``.
    changes
        Of the parameters in its file, such as ``dimensions=[3]`` for "ranks".
    """
    given = parameters(name)
    return _KINDS[given["kind"]]({**given, **changes})


__all__ = ["figure_names", "paper_figure", "parameters"]
