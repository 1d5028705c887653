"""Where pictures and films go: files of known formats in folders that exist, written whole or not at all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vlasov.errors import InputError
from vlasov.solvers.files import written_whole

_ENDS = 1 << 16  # bytes at both ends of a file, where formats say what they are


def checked_target(path: str | os.PathLike[str], formats: Sequence[str]) -> tuple[Path, str]:
    """The path and its format, complained about before any work is done."""
    target = Path(path)
    suffix = target.suffix.lower().lstrip(".")
    if suffix not in formats:
        raise InputError(f'"{target}" does not end in a known format; choose one of: .{", .".join(formats)}.', "path")
    if not target.parent.is_dir():
        raise InputError(f'"{target}" cannot be written, its folder does not exist; create it first', "path")
    return target, suffix


def mark(command: str) -> str:
    """What a picture says of the command that has drawn it; empty for those of Python."""
    return f"drawn by vlasov {command}." if command else ""


def drawn_by(path: Path, command: str) -> bool:
    """Whether this command has drawn a picture."""
    with path.open("rb") as file:
        head = file.read(_ENDS)
        file.seek(max(path.stat().st_size - _ENDS, 0))
        return mark(command).encode() in head + file.read(_ENDS)


@contextmanager
def written(target: Path) -> Iterator[Path]:
    """As ``written_whole``, with failures in words."""
    try:
        with written_whole(target) as unfinished:
            yield unfinished
    except (OSError, subprocess.CalledProcessError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise InputError(f'"{target}" cannot be written ({reason}); choose a folder you may write to', "path") from None
