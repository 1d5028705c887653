"""Facts of a figure's caption in words: for the terminal, and for the manual."""

from __future__ import annotations

from typing import Any

from vlasov.postprocess.papers.limits import FATES

_AT_MOST = "second eigenvalue over the first where"  # facts that are maxima, and do not say so


def told(facts: dict[str, Any]) -> list[tuple[str, str | list[tuple[str, str]]]]:
    """By panel: what is said of it, or what is said under several names."""
    return [
        (panel, [(what, _of(what, found)) for what in found] if isinstance(found, dict) else said(found))
        for panel, found in facts.items()
    ]


def _of(what: str, found: dict[str, Any]) -> str:
    """One of several: shares of covariances as how many of them, and maxima as such."""
    if what in FATES and "covariances" in found:
        return f"{round(found[what] * found['covariances'])} of {found['covariances']}"
    return f"at most {said(found[what])}" if what.startswith(_AT_MOST) else said(found[what])


def said(value: Any) -> str:
    """Numbers to four digits, lists and tables on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {said(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(said, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
