"""What to cite for a run: BibTeX of this software, and of the theorems and methods that the run used.

    @key{...}   % why

``entries`` reads ``references.bib``, which is also the manual's; ``of_problems`` knows what attention, LayerNorm and
MLP ask for, ``of_datasets`` what solvers and studies do. Called by ``vl.cite`` and ``vlasov cite``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from vlasov import __version__
from vlasov.cases import Case, case_names, load_case
from vlasov.errors import InputError, short
from vlasov.postprocess.citing import entries
from vlasov.postprocess.citing.of_datasets import reasons_of
from vlasov.postprocess.citing.of_problems import EQUATION, Reason, of_problem
from vlasov.postprocess.studies.store import FINISHED
from vlasov.problem import Problem
from vlasov.solvers.dataset import open_run

_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")
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
    """The same of several things at once, each entry once; of versions of ours, all that are among them."""
    found = [_version_and_reasons(what) for what in things]
    versions = dict.fromkeys(version for version, _ in found)
    return written(", ".join(versions), [reason for _, reasons in found for reason in reasons])


def written(version: str, reasons: list[Reason]) -> str:
    """The entries of these reasons, those of one key together, below what is said of each."""
    said: dict[str, list[str]] = {}
    for reason in reasons:
        said.setdefault(reason.key, [])
        if reason.why not in said[reason.key]:
            said[reason.key].append(reason.why)
    known = entries.read()
    blocks = [f"% the software\n{entries.completed(known[entries.SOFTWARE], note=f'Version {version}')}"]
    blocks += [f"% {'; '.join(why)}\n{known[key]}" for key, why in said.items()]
    return "\n\n".join(blocks)


def _version_and_reasons(what: Any) -> tuple[str, list[Reason]]:
    """Which version made it, and what it asks to be cited."""
    if isinstance(what, str | os.PathLike):
        what = _read(os.fspath(what))
    if isinstance(what, Case):
        what = what.problem
    if isinstance(what, Problem):
        return __version__, [EQUATION, *of_problem(what)]
    if isinstance(what, xr.Dataset | xr.DataArray):
        version = str(what.attrs.get("vlasov_version", __version__))
        return version if _VERSION.fullmatch(version) else __version__, reasons_of(what)
    raise InputError(f"is {short(what)}; {_GIVE}", "what")


def _read(name: Any) -> Any:
    """The case of this name, or what is in this file, or in this folder of a study."""
    path = Path(name)
    if path.is_dir() and name not in case_names():
        if not (path / FINISHED).is_file():
            raise InputError(f'"{name}" is a folder without a finished study ({FINISHED}); give a .nc file', "path")
        return open_run(path / FINISHED)
    if path.suffix == ".toml" or not (
        path.suffix or path.is_file()
    ):  # who is mistaken in a name is told which there are
        return load_case(name)
    return open_run(name)
