"""Pieces of a page as HTML: everything that comes from a file passes through ``escaped`` or ``as_json``."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_DIGITS = 6
_TURNING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))  # would turn round our own words


@dataclass
class Parts:
    """What a page is made of while it is made: sections of HTML, and the numbers behind its figures."""

    body: list[str] = field(default_factory=list)
    charts: list[dict[str, Any]] = field(default_factory=list)
    scenes: list[dict[str, Any]] = field(default_factory=list)


def escaped(text: object) -> str:
    """Text as it is, in HTML and in quoted attributes; letters that are no text are left out."""
    return html.escape(_text(str(text)), quote=True)


def _text(text: str) -> str:
    words = text.encode("utf-8", "replace").decode()
    return "".join(c for c in words if c in "\n\t" or (ord(c) >= 32 and c not in _TURNING))


def as_json(value: Any) -> str:
    """JSON that no HTML parser takes for an end of its element; numbers that are none become null."""
    text = json.dumps(_plain(value), allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, str):
        return _text(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def paragraph(text: str, name: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(name)}>{escaped(text)}</p>"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A table of two columns: what, and in words."""
    inner = "".join(f'<tr><th scope="row">{escaped(a)}</th><td>{escaped(b)}</td></tr>' for a, b in rows)
    return f'<table class="facts"><tbody>{inner}</tbody></table>'


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], label: str) -> str:
    """A table that sorts by a click on a head; numbers are shown to six digits and sorted by all."""
    rows = list(rows)
    texts = [bool(rows) and not isinstance(one, int | float | np.number | np.bool_) for one in (rows or [heads])[0]]
    top = "".join(
        f'<th scope="col"{_class("t" * text)}>{escaped(h)}</th>' for h, text in zip(heads, texts, strict=True)
    )
    inner = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    inside = f"<thead><tr>{top}</tr></thead><tbody>{inner}</tbody>"
    region = f'<div class="wide" tabindex="0" role="region" aria-label="{escaped(label)}">'
    return f'{region}<table class="sortable">{inside}</table></div>'


def number(value: float, digits: int = _DIGITS) -> str:
    """A number to so many digits."""
    return "–" if math.isnan(value) else f"{value:.{digits}g}".replace("-", "−").replace("inf", "∞")


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float | np.number):
        shown = float(value)
        key = "" if math.isnan(shown) else repr(shown).replace("inf", "1e999")
        return f'<td data-value="{key}">{number(shown)}</td>'
    return f'<td class="t">{escaped(value)}</td>'


def code(text: str, file: str = "") -> str:
    """A text to copy, or to save as a file."""
    saved = f' data-file="{escaped(file)}"' if file else ""
    return f'<div class="code"{saved}><pre tabindex="0">{escaped(text)}</pre></div>'


def group(parts: Parts, made: Sequence[dict[str, Any]], notes: Sequence[str]) -> str:
    """Solutions side by side under one slider; their numbers go into the page's data."""
    figures = [_scene(parts, *one) for one in zip(made, notes, strict=True)]
    bar = '<div class="time"><button type="button" aria-label="Play">▶</button>'
    bar += '<input type="range" min="0" max="1" value="0" step="1" aria-label="Time"><output></output></div>'
    one = " one" if len(figures) == 1 else ""
    return f'<section class="group{one}">{bar}<div class="grid">{"".join(figures)}</div></section>'


def _scene(parts: Parts, made: dict[str, Any], note: str) -> str:
    parts.scenes.append(made)
    turned, label = " turned" if made["d"] == 3 else "", escaped(f"{made['title']}, a picture at one time")
    key = '<div class="key"><span class="low"></span><span class="bar"></span><span class="high"></span>density</div>'
    key += '<div class="key level" hidden></div>' if made["d"] == 3 else ""
    shaded = made["density"] is not None and made["d"] > 1
    return (
        f'<figure class="scene{turned}" data-scene="{len(parts.scenes) - 1}"><figcaption>{escaped(made["title"])}'
        f'</figcaption><div class="stage"><canvas tabindex="0" role="img" aria-label="{label}"></canvas>'
        f'<div class="tip" hidden></div></div>{key if shaded else ""}<div class="tools"></div>'
        f'<p class="note">{escaped(note)}</p></figure>'
    )


def charts(parts: Parts, made: Sequence[dict[str, Any]]) -> str:
    """Curves in a grid; their numbers go into the page's data."""
    figures = []
    for chart in made:
        parts.charts.append({key: value for key, value in chart.items() if key not in ("title", "note")})
        label, note = escaped(chart["title"]), paragraph(chart["note"], "note") if chart.get("note") else ""
        figures.append(
            f'<figure class="chart" data-chart="{len(parts.charts) - 1}"><figcaption>{label}</figcaption>'
            f'<div class="plot"><canvas role="img" aria-label="{label}"></canvas><div class="tip" hidden></div></div>'
            f'<div class="legend"></div>{note}</figure>'
        )
    return f'<div class="grid">{"".join(figures)}</div>' if figures else ""


def _class(name: str) -> str:
    return f' class="{escaped(name)}"' if name else ""
