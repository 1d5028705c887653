"""What figures there are: a file of parameters for each, beside this one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from vlasov.errors import choose

_FOLDER = Path(__file__).parent
_ORDER = (
    *("to-zero", "to-a-line", "to-a-plane", "to-two-lines", "blow-up", "mixed", "ranks"),
    *("clusters", "polytope", "lipschitz-against-n"),
)


def figure_names() -> list[str]:
    """The figures, in the papers' order."""
    return sorted((path.stem for path in _FOLDER.glob("*.toml")), key=lambda name: (*_ORDER, name).index(name))


def parameters(name: str) -> dict[str, Any]:
    """What a figure's file says."""
    choose(name, figure_names(), "figure")
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
