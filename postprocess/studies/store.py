"""Results of a study on disk: one small file for each, whole or not at all.

A folder holds ``study.json``, which says what is studied and by which reference, and files such as
``random-64-0.json``, named by the key of what they hold. Python writes the shortest text that reads back to the same
number, so that a study that is resumed ends with the same bits as one that never stopped.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import xarray as xr

from vlasov import checks
from vlasov.errors import InputError, SolverError
from vlasov.solvers.dataset import STUDY, save
from vlasov.solvers.files import written_whole
from vlasov.solvers.targets import check_place, origin, origin_of

Key = tuple[Any, ...]  # texts and whole numbers, such as sampling, n and replica
Result = dict[str, Any]  # plain lists and numbers
FINISHED = "study.nc"  # the Dataset of a study that has ended, in its folder
_HEAD = "study.json"
_WHOLE = 1e15  # from which on whole numbers are told as floats
_LONG = 80  # letters of two lists, from which on only what differs is said


class Store:
    """The folder of one study, made if it does not exist; ``identity`` has what makes results comparable."""

    def __init__(self, folder: str | os.PathLike[str], identity: dict[str, Any], kind: str = STUDY) -> None:
        told = {} if kind == STUDY else {"kind": kind}  # the first study did not say which it was
        self._identity = json.loads(json.dumps(told | identity))
        try:
            self._folder = Path(folder)
            self._folder.mkdir(exist_ok=True)
        except TypeError:
            raise InputError(f"is {folder!r} where the path of a folder is needed", "output") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f'"{folder}" cannot be made a folder ({reason}); choose another', "output") from None
        self._kind = kind
        self._begun()
        if self._head is None and any(self._folder.glob("[!.]*")):
            raise InputError(f'"{folder}" is not empty and holds no study; choose a new folder', "output")
        finished = self._folder / FINISHED
        check_place(finished)
        if finished.is_file() and origin_of(finished) != self.origin:
            raise InputError(f'"{finished}" is not what this study wrote; move it elsewhere', "output")

    def _begun(self) -> None:
        """Read what the folder says of its study; refuse another study."""
        folder, kind = self._folder, self._kind
        self._head = self._read(_HEAD)
        held = kind if self._head is None else self._head.get("kind", STUDY)
        if held != kind:
            raise InputError(
                f'"{folder}" holds a {checks.short(held)[1:-1]}, and not a {kind}; choose another', "output"
            )
        for name, value in self._identity.items():
            if self._head is not None and (found := self._head.get(name)) != value:
                where, was, wanted = _apart(name, found, value)
                sentence = (
                    f'"{folder}" holds another study: its {where} is {was} and not {wanted}; choose another folder'
                )
                raise InputError(sentence, "output")

    @property
    def origin(self) -> str:
        """The origin of the Dataset of the study, however many results there are."""
        return origin("study", self._identity)

    @property
    def settled(self) -> Any:
        """What was settled when the study began, such as reference and time steps; None if it begins now."""
        return None if self._head is None else self._head["settled"]

    def settle(self, settled: Any) -> bool:
        """Begin: keep what all results share; return False where another process has begun the study meanwhile."""
        head = {**self._identity, "settled": settled}
        try:
            self._write(_HEAD, head, new=True)
        except FileExistsError:
            self._begun()
            return False
        self._head = head
        return True

    def finish(self, dataset: xr.Dataset) -> None:
        """Write the Dataset of the study."""
        dataset.attrs["origin"] = self.origin
        save(dataset, self._folder / FINISHED, overwrite=False)

    def get(self, key: Key) -> Result | None:
        """A result, None if there is none yet."""
        return self._read(_name(key))

    def put(self, key: Key, result: Result) -> None:
        """Keep a result."""
        self._write(_name(key), result)

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self._folder / name).read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            if name != _HEAD:
                return None  # damaged: computed again
            raise InputError(f'"{self._folder / name}" is damaged; choose another folder', "output") from None
        except OSError as error:
            raise InputError(f'"{self._folder / name}" cannot be read ({error.strerror})', "output") from None

    def _write(self, name: str, content: Any, *, new: bool = False) -> None:
        target = self._folder / name
        try:
            with written_whole(target, new=new) as unfinished:
                unfinished.write_text(json.dumps(content))
        except FileExistsError:
            raise
        except OSError as error:
            raise SolverError(f'"{target}" could not be written: {error.strerror or error}') from None


def _apart(name: str, was: Any, wanted: Any) -> tuple[str, str, str]:
    """Where two values differ first, inside tables and lists of one length, and what stands there."""
    if isinstance(was, dict) and isinstance(wanted, dict):
        for key in [*was, *(key for key in wanted if key not in was)]:
            if key not in was or key not in wanted or was[key] != wanted[key]:
                inner = key if name == "problem" else f"{name}.{key}"
                return _apart(inner, was.get(key), wanted.get(key))
    if isinstance(was, list) and isinstance(wanted, list) and len(was) == len(wanted):
        k = next((k for k, (one, other) in enumerate(zip(was, wanted, strict=True)) if one != other), None)
        if k is not None and len(checks.short(was)) + len(checks.short(wanted)) > _LONG:
            return _apart(f"{name}[{k}]", was[k], wanted[k])
    return name, _said(was), _said(wanted)


def _said(value: Any) -> str:
    if value is None:
        return "not given"
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE
    return checks.short(int(value) if whole else value)


def _name(key: Key) -> str:
    return f"{'-'.join(map(str, key))}.json"
