"""Files that appear whole or not at all, and that know whether they are what was written: a digest ends them.

What stands behind the end of an HDF5 file is skipped by all who read HDF5.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MARK = b"\nvlasov sha256 "
_SEAL = len(_MARK) + 2 * hashlib.sha256().digest_size + 1


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A place beside the target to write to, which takes the target's place at the end; nothing is left on failure."""
    unfinished = target.with_name(f".vlasov-{os.getpid()}-{threading.get_ident()}{target.suffix}")
    try:
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def write_sealed(target: Path, content: memoryview) -> None:
    """Write all of the content and its digest; Python complains about full disks where HDF5 crashes."""
    seal = _MARK + hashlib.sha256(content).hexdigest().encode() + b"\n"
    with written_whole(target) as unfinished, unfinished.open("wb") as file:
        file.write(content)
        file.write(seal)


def intact(path: Path) -> bool | None:
    """Whether a file is what was written; None if it has no digest."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _SEAL, 0))
        seal = file.read()
        if not seal.startswith(_MARK):
            return None
        file.seek(0)
        digest, left = hashlib.sha256(), size - _SEAL
        while left > 0 and (piece := file.read(min(left, 1 << 20))):
            digest.update(piece)
            left -= len(piece)
    return seal == _MARK + digest.hexdigest().encode() + b"\n"
