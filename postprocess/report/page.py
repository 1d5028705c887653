"""The page: template, style and scripts in one file, whose one script is the only one that may run."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from string import Template

from vlasov import __version__
from vlasov.postprocess.drawing import palette
from vlasov.postprocess.report.elements import Parts, as_json, escaped
from vlasov.solvers.targets import signature

VERSION = __version__
_ASSETS = "assets"


def whole_page(title: str, parts: Parts, footer: str, origin: str = "") -> str:
    """A whole page, which says its origin; its policy lets no other script run and nothing be loaded."""
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_asset("page.html")).substitute(
        allowed=f"'sha256-{digest}'",
        version=__version__,
        generator=signature(origin) or "vlasov report",
        title=escaped(title),
        style=_series() + _asset("page.css"),
        body="\n".join(parts.body),
        footer=footer,
        data=as_json({"scenes": parts.scenes, "charts": parts.charts}),
        script=script,
    )


def _series() -> str:
    """The colours of curves, on light and on dark paper."""
    light, dark = (
        ":root { " + " ".join(f"--series-{k}: {colour};" for k, colour in enumerate(colours)) + " }\n"
        for colours in (palette.PALETTE, palette.DARK)
    )
    return f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


@cache
def _script() -> str:
    """All scripts, in the order of their names."""
    folder = files(__package__).joinpath(_ASSETS)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".js"))
    return "\n" + "\n".join(_asset(name) for name in names)


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(_ASSETS, name).read_text(encoding="utf-8")
