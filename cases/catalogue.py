"""Which cases there are: names, files and titles, without loading anything heavy."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from vlasov.cases.arrays import with_arrays
from vlasov.errors import InputError, did_you_mean, short

_FOLDER = Path(__file__).parent


def case_names() -> list[str]:
    """The names of the built-in cases.

    Examples
    --------
    >>> [name for name in vl.case_names() if name.startswith("gaussian-b")]
    ['gaussian-blow-up']
    """
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def case_path(name_or_path: str | os.PathLike[str]) -> Path:
    """The file of a built-in case, or a user's own .toml file.

    Parameters
    ----------
    name_or_path
        A name of ``vl.case_names()``, or the path of a .toml file.

    Examples
    --------
    >>> vl.cases.case_path("ring-2d").name
    'ring-2d.toml'
    """
    if not isinstance(name_or_path, str | os.PathLike):
        raise InputError(f"is {short(name_or_path)} where a name or the path of a .toml file is needed", "case")
    text = os.fsdecode(name_or_path)
    if text in case_names():
        return _FOLDER / f"{text}.toml"
    path = Path(text)
    if path.suffix == ".nc":
        ways = 'draw it by "vlasov plot", report it by "vlasov report", or read it by vl.open_run'
        raise InputError(f'"{text}" is the name of a run, not of a case; {ways}', "case")
    if path.suffix == ".toml" or len(path.parts) > 1:
        if not os.path.isfile(path):  # False too for names that no file can have
            raise InputError(f'"{text}" is not a file; give a .toml file or the name of a case ("vlasov list")', "case")
        return path
    raise InputError(f'"{text}" is not known; {did_you_mean(text, case_names())} See "vlasov list".', "case")


def read(name_or_path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the tables of a case file, with the arrays of the files that it names."""
    return with_arrays(tables_of(path := case_path(name_or_path)), path.parent)


def tables_of(path: Path) -> dict[str, Any]:
    """Return the tables of a case file as they stand."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f'"{path}" is not valid TOML: {error}', "case") from None
    except OSError as error:
        raise InputError(f'"{path}" cannot be read: {error.strerror}', "case") from None
