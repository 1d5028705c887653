"""Where results are written: every file says its origin, and gives way only to a result of the same origin.

An origin is a text such as "run 9f0c4b1ad2e83c57": what makes a file, and a digest of all that it is made from. Two
files of one origin are one result, made twice. NetCDF files have it as an attribute, which is believed while nobody has
changed the file; pictures, films and pages have it among their metadata, as ``signature`` writes it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vlasov.errors import InputError
from vlasov.solvers.files import sealed

_ENDS = 1 << 16  # bytes at both ends of a file, where formats keep their metadata
_SIGNED = re.compile(rb"vlasov ([a-z-]+ [0-9a-f]{16})")


def origin(maker: str, *sources: Any) -> str:
    """The origin of what ``maker``, one word, makes from ``sources``, which are plain values or NumPy's."""
    text = json.dumps(sources, sort_keys=True, default=lambda value: getattr(value, "tolist", value.__repr__)())
    return f"{maker} {_digest(text.encode())}"


def origin_of_text(text: str) -> str:
    """The origin of a file that holds this text and says none."""
    return _digest(text.encode())


def signature(origin: str) -> str:
    """The words by which metadata say an origin; empty for none."""
    return f"vlasov {origin}" if origin else ""


def origin_of(path: str | os.PathLike[str]) -> str:
    """The origin that a file says, or a digest of its bytes where it says none; empty for what is no file."""
    import h5py

    try:
        with open(path, "rb") as file:
            head = file.read(_ENDS)
            file.seek(max(os.fstat(file.fileno()).st_size - _ENDS, 0))
            if signed := _SIGNED.search(head) or _SIGNED.search(file.read(_ENDS)):
                return signed[1].decode()
        with suppress(Exception):  # of damaged files, HDF5 raises almost anything
            if sealed(Path(path)):  # else somebody may have changed it
                with h5py.File(path) as data:
                    if said := data.attrs.get("origin"):
                        return said.decode() if isinstance(said, bytes) else str(said)
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except (OSError, ValueError):  # ValueError: a null character in the name
        return ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def check_target(target: Path, origin: str, *inputs: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Refuse a file that cannot be written, that is one of the inputs, or that holds a result of another origin."""
    check_place(target)
    for path in inputs:
        same = False
        with suppress(OSError, ValueError):  # not there, or no name of a file: others say so
            same = os.path.samefile(target, path)
        if same:
            raise InputError(f'"{target}" is what is read, and would be lost; choose another name', "output")
    if not overwrite and target.is_file() and origin_of(target) != origin:
        raise InputError(
            f'"{target}" is there already, and holds something else; choose another name, or replace it by --force '
            "(in Python: overwrite=True)",
            "output",
        )


def check_suffix(target: Path) -> None:
    """Refuse to call a NetCDF file anything but .nc."""
    if target.suffix != ".nc":
        raise InputError(f'"{target}" must end in .nc', "output")


def check_place(path: Path) -> None:
    """Refuse a place where no file can be written."""
    try:
        if not path.parent.is_dir():
            raise InputError(f'the folder "{path.parent}" does not exist; create it first', "output")
        with suppress(FileNotFoundError):
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                raise InputError(f'"{path}" is a folder; give the name of a file', "output")
            if not stat.S_ISREG(mode):
                raise InputError(f'"{path}" is no file that could be replaced; choose another name', "output")
        with tempfile.NamedTemporaryFile(dir=Path(os.path.realpath(path)).parent, prefix=".vlasov-"):
            pass
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(f'"{path}" cannot be written ({reason}); choose another name or folder', "output") from None


@contextmanager
def partial_target(target: Path) -> Iterator[Path]:
    """A place beside the target for what there is of its result: a name that says so, and that no file has."""
    for number in itertools.count(1):
        place = target.with_name(f"{target.stem}.partial{'' if number == 1 else f'-{number}'}{target.suffix}")
        with suppress(FileExistsError):
            place.touch(exist_ok=False)
            break
    try:
        yield place
    except BaseException:
        place.unlink()
        raise


@contextmanager
def rescue() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM do nothing while results of what was interrupted are written."""
    with suppress(KeyboardInterrupt), undisturbed():
        yield


@contextmanager
def undisturbed(done: str = "") -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until a file is written; ``done`` is a sentence that the interruption then says."""
    if threading.current_thread() is not threading.main_thread():  # which alone hears them
        yield
        return
    heard: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if heard:
        try:
            signal.raise_signal(heard[0])
        except KeyboardInterrupt as stop:
            stop.add_note(done)
            raise
