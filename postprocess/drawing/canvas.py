"""Where pictures and films go: files of known formats in folders that exist, written whole or not at all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vlasov.errors import InputError
from vlasov.solvers.files import written_whole


def checked_target(path: str | os.PathLike[str], formats: Sequence[str]) -> tuple[Path, str]:
    """The path and its format, complained about before any work is done."""
    target = Path(path)
    suffix = target.suffix.lower().lstrip(".")
    if suffix not in formats:
        raise InputError(f'"{target}" does not end in a known format; choose one of: .{", .".join(formats)}.', "path")
    if not target.parent.is_dir():
        raise InputError(f'"{target}" cannot be written, its folder does not exist; create it first', "path")
    return target, suffix


@contextmanager
def written(target: Path) -> Iterator[Path]:
    """As ``written_whole``, with failures in words."""
    try:
        with written_whole(target) as unfinished:
            yield unfinished
    except (OSError, subprocess.CalledProcessError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise InputError(f'"{target}" cannot be written ({reason}); choose a folder you may write to', "path") from None
