"""Where compiled kernels are kept: one file for each kernel, signature and processor, with a hash of what it holds.

Numba keeps an index beside its files. Two processes that write one at once may leave an index that names a wrong file,
and a damaged file ends the program; here a file is what its name and its first bytes say, or it is not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from vlasov.compiling import CLOCK


class _Listener(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Passes the beginning and end of each compilation on to the process's clock."""

    def on_start(self, event: Any) -> None:
        CLOCK.begin()

    def on_end(self, event: Any) -> None:
        CLOCK.end()


event.register("numba:compile", _Listener())


class _Files:
    """Compiled code by keys; what cannot be read is compiled again, what cannot be written is not kept."""

    def __init__(self, folder: str, base: str) -> None:
        self._folder, self._base = Path(folder), base

    def _path(self, key: object) -> Path | None:
        text = repr((numba.__version__, llvmlite.__version__, key))
        if " at 0x" in text:  # something that only this process has
            return None
        return self._folder / f"{self._base}.{hashlib.sha256(text.encode()).hexdigest()[:32]}.nbc"

    def load(self, key: object) -> Any:
        path = self._path(key)
        try:
            content = b"" if path is None else path.read_bytes()
        except OSError:
            return None
        return pickle.loads(content[32:]) if hashlib.sha256(content[32:]).digest() == content[:32] else None

    def save(self, key: object, data: Any) -> None:
        path = self._path(key)
        if path is None:
            return
        content = dumps(data)
        temporary = path.with_name(f"{path.name[:8]}.{uuid.uuid4().hex}.tmp")
        try:
            temporary.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(temporary, path)  # other processes see all of it or nothing
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()


class Cache(FunctionCache):  # type: ignore[misc]  # Numba has no types
    """Found by a name that stands for all the code that a kernel depends on: Numba looks at the kernel's own alone."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        super().__init__(function)
        self.name = name
        self._cache_file = _Files(self.cache_path, self._impl.filename_base)

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        return signature, codegen.magic_tuple(), self.name

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return super().load_overload(signature, context)
        except Exception:  # of another make, whatever it is: compiled again
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            super().save_overload(signature, result)
        except OSError:  # a full disk, a folder that is gone
            CLOCK.kept = False


def keep(dispatcher: Any, name: str, kind: type[Cache] = Cache) -> None:
    """Let a function look for its compiled code on disk, and leave it there, if there is a folder for it."""
    try:
        dispatcher._cache = kind(dispatcher.py_func, name)
    except RuntimeError:  # Numba: no locator available
        CLOCK.kept = False
