"""What to cite for a run: BibTeX of this software, and of the theorems and methods that the run used.

    @key{...}   % why

``references.bib`` is also the manual's; ``reasons`` knows what problems and runs ask for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import xarray as xr

from vlasov import __version__
from vlasov.cases import Case, case_names, load_case
from vlasov.errors import InputError, short
from vlasov.postprocess.citing.reasons import Reason, of_dataset, of_problem
from vlasov.postprocess.studies.store import FINISHED
from vlasov.problem import Problem
from vlasov.solvers.dataset import open_run

_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")
_BEGINS = re.compile(r"^@\w+\{([^,\s]+),", re.MULTILINE)
_GIVE = "give what vl.solve or a study returned, a problem, a case, or a file of these"


def cite(what: xr.Dataset | xr.DataArray | Problem | Case | str | os.PathLike[str]) -> str:
    """BibTeX of what a run used: this software, the equation, its theorems and methods, each with a line that says why.

    Parameters
    ----------
    what
        A run or a study (a Dataset), a problem, a case or its name, a .nc or .toml file, or the
        folder of a study.

    Returns
    -------
    str
        Entries of BibTeX, each below a comment with its reason, in the order: software, equation, what the problem is,
        how it was solved, what was made of it, the packages it stands on.

    Examples
    --------
    >>> import vlasov as vl
    >>> print(vl.cite("gaussian-collapse").splitlines()[1])
    @misc{vlasov,
    """
    return cite_all([what])


def cite_all(things: Sequence[Any]) -> str:
    """Return BibTeX of several things, each entry once; of versions of vlasov, all that are among them."""
    versions, why = dict[str, None](), dict[str, dict[str, None]]()
    for what in things:
        version, reasons = _version_and_reasons(what)
        versions[version] = None
        for key, words in reasons:
            why.setdefault(key, {})[words] = None
    bibliography = entries()
    software = bibliography["vlasov"].removesuffix("}").rstrip()
    blocks = [f"% the software\n{software}\n  note = {{Version {', '.join(versions)}}},\n}}"]
    return "\n\n".join([*blocks, *(f"% {'; '.join(words)}\n{bibliography[key]}" for key, words in why.items())])


@cache
def entries() -> dict[str, str]:
    """Return all entries of ``references.bib`` as texts by their keys, in the order of the file."""
    text = files(__package__).joinpath("references.bib").read_text(encoding="utf-8")
    begins = list(_BEGINS.finditer(text))
    ends = [*(begin.start() for begin in begins[1:]), len(text)]
    return {begin[1]: text[begin.start() : end].strip() for begin, end in zip(begins, ends, strict=True)}


def _version_and_reasons(what: Any) -> tuple[str, list[Reason]]:
    """Return the version that made a thing, and the reasons of what it asks to be cited."""
    if isinstance(what, str | os.PathLike):
        what = _read(os.fspath(what))
    if isinstance(what, Case):
        what = what.problem
    if isinstance(what, Problem):
        return __version__, of_problem(what)
    if isinstance(what, xr.Dataset | xr.DataArray):
        version = str(what.attrs.get("vlasov_version", __version__))
        return version if _VERSION.fullmatch(version) else __version__, of_dataset(what)
    raise InputError(f"is {short(what)}; {_GIVE}", "what")


def _read(name: Any) -> Any:
    """The case of this name, or what is in this file, or in this folder of a study."""
    path = Path(name)
    if path.is_dir() and name not in case_names():
        if not (path / FINISHED).is_file():
            raise InputError(f'"{name}" is a folder without a finished study ({FINISHED}); give a .nc file', "path")
        return open_run(path / FINISHED)
    if path.suffix == ".toml" or not (path.suffix or path.is_file()):  # a mistaken name is answered by the names
        return load_case(name)
    return open_run(name)
