"""Arrays from files: in a case file, or in a setting, the name of a .npy, .npz or .csv file stands for its numbers.

"tokens.npz:points" is one of several arrays of a .npz file; the first line of a .csv file may hold names of columns.
What is made of a case holds the numbers, never the file's name.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlasov.errors import InputError, did_you_mean

_NAME = re.compile(r"(?P<file>.*\.(?:npy|npz|csv))(?:(?<=npz):(?P<member>.+))?", re.IGNORECASE | re.DOTALL)
_TEXTS = ("title", "description", "paper", "kind", "says", "quantity")  # keys whose values are never numbers


def with_arrays(plain: Any, folder: Path, field: str = "") -> Any:
    """Return tables, lists and values with the arrays of the files that they name, relative to the folder."""
    if isinstance(plain, Mapping):
        items = plain.items()
        return {key: with_arrays(value, folder, f"{field}.{key}" if field else key) for key, value in items}
    if isinstance(plain, list):
        return [with_arrays(value, folder, f"{field}[{i}]") for i, value in enumerate(plain)]
    named = isinstance(plain, str) and field.rpartition(".")[2] not in _TEXTS and _NAME.fullmatch(plain)
    return _read(plain, folder / named["file"], named["member"], field) if named else plain


def files_named(plain: Any, field: str = "") -> list[str]:
    """Return the names of files in the texts that stand for arrays, without members."""
    if isinstance(plain, Mapping):
        return [name for key, value in plain.items() for name in files_named(value, key)]
    if isinstance(plain, list):
        return [name for value in plain for name in files_named(value, field)]
    named = isinstance(plain, str) and field not in _TEXTS and _NAME.fullmatch(plain)
    return [named["file"]] if named else []


def _read(name: str, path: Path, member: str | None, field: str) -> Any:
    """Return the array as float64; ``name`` is what the user wrote."""
    from vlasov import checks

    if not os.path.isfile(path):  # False too for names that no file can have
        where = "" if os.path.isabs(name) else " in the folder of the case, or for a setting in the current one"
        raise InputError(f'is "{name}", which is no file{where}; give its path', field)
    try:
        values = _columns(path) if path.suffix.lower() == ".csv" else _loaded(path, name, member, field)
    except InputError:
        raise
    except Exception as error:  # of damaged files, and of those with Python objects in them
        kind = path.suffix.lower()
        reason = error if kind == ".csv" else getattr(error, "strerror", None) or "no array of numbers, or damaged"
        raise InputError(f'"{name}" cannot be read as {kind} ({reason}); write it again', field) from None
    try:
        return checks.array(values, field)
    except InputError as mistake:
        raise InputError(f'"{name}": {mistake.sentence}', field) from None


def _loaded(path: Path, name: str, member: str | None, field: str) -> Any:
    """Return the array of a .npy file, or one of a .npz file; never a Python object."""
    import numpy as np

    with path.open("rb") as file:
        values = np.load(file, allow_pickle=False)
        return values[_member(name, values.files, member, field)] if hasattr(values, "files") else values


def _member(name: str, members: list[str], member: str | None, field: str) -> str:
    if member is None and len(members) == 1:
        return members[0]
    if member is None:
        listed = ", ".join(sorted(members)[:8]) or "none"
        example = f"{name}:{members[0] if members else 'name'}"
        raise InputError(f'"{name}" has {len(members)} arrays ({listed}); name one of them, as in "{example}"', field)
    if member not in members:
        raise InputError(f'"{name}" has no array "{member}"; {did_you_mean(member, members)}', field)
    return member


def _columns(path: Path) -> Any:
    """Return rows of numbers with commas between them; one column is a vector."""
    import numpy as np

    with path.open(encoding="utf-8-sig") as file:
        names = not any(map(_is_number, file.readline().split(",")))
    with warnings.catch_warnings():  # of files without rows
        warnings.simplefilter("ignore")
        table = np.loadtxt(path, delimiter=",", skiprows=int(names), ndmin=2, encoding="utf-8-sig")
    if not table.size:
        raise ValueError("no rows of numbers")
    return table[:, 0] if table.shape[1] == 1 else table


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
