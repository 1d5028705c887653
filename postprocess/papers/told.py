"""Facts of a figure's caption in words: for the terminal, and for the manual."""

from __future__ import annotations

from typing import Any


def told(facts: dict[str, Any]) -> list[tuple[str, str | list[tuple[str, str]]]]:
    """By panel: what is said of it, or what is said under several names."""
    return [
        (panel, [(what, said(value)) for what, value in found.items()] if isinstance(found, dict) else said(found))
        for panel, found in facts.items()
    ]


def said(value: Any) -> str:
    """Numbers to four digits, lists and tables on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {said(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(said, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
