"""Tables for narrow terminals: a line for each number, under a heading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def listed(table: Table, heading: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Add a heading, and under it rows of texts by name, of which empty ones are left out."""
    if not table.columns:
        table.show_header = False
        table.add_column()
        table.add_column(justify="right")
    table.add_row(heading, "")
    for row in rows:
        for name, text in row.items():
            if text:
                table.add_row(f"  {name}" if name != "t" else name, text)
    table.add_section()
