"""Results of a study on disk: one small file for each point, whole or not at all.

A folder holds ``study.json``, which says what is studied and what was settled, and a file for each point, which is
named by a digest of the point and holds the Dataset measured there as JSON. Python writes the shortest text that reads
back to the same number, so that a study that is resumed ends with the same bits as one that never stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.errors import InputError, SolverError
from vlasov.solvers.dataset import save
from vlasov.solvers.files import written_whole
from vlasov.solvers.targets import check_place, origin, origin_of

FINISHED = "study.nc"  # the Dataset of a study that has ended, in its folder
_HEAD = "study.json"
_WHOLE = 1e15  # from which on whole numbers are told as floats
_DIGITS = 24  # of the name of a file
_LONG = 80  # letters of two lists, from which on only what differs is said


class Store:
    """The folder of one study, made if it does not exist; ``identity`` has what makes results comparable."""

    def __init__(self, folder: str | os.PathLike[str], identity: dict[str, Any]) -> None:
        self._identity = json.loads(json.dumps(identity))
        try:
            self._folder = Path(folder)
            self._folder.mkdir(exist_ok=True)
        except TypeError:
            raise InputError(f"is {folder!r} where the path of a folder is needed", "output") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f'"{folder}" cannot be made a folder ({reason}); choose another', "output") from None
        self._begun()
        if self._head is None and any(self._folder.glob("[!.]*")):
            raise InputError(f'"{folder}" is not empty and holds no study; choose a new folder', "output")
        finished = self._folder / FINISHED
        check_place(finished)
        if finished.is_file() and origin_of(finished) != self.origin:
            raise InputError(f'"{finished}" is not what this study wrote; move it elsewhere', "output")

    def _begun(self) -> None:
        """Read what the folder says of its study; refuse another study."""
        folder = self._folder
        self._head = self._read(_HEAD)
        held, kind = (self._head or self._identity).get("kind"), self._identity["kind"]
        if held != kind:
            of = "a version before 0.1.0" if held is None else f'kind "{held}"'
            raise InputError(f'"{folder}" holds a study of {of}, and not of kind "{kind}"; choose another', "output")
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

    def get(self, point: Mapping[str, Any]) -> xr.Dataset | str | None:
        """Return what was measured at a point, the reason why it failed, or None if there is nothing yet."""
        kept = self._read(_name(point))
        try:
            return kept if kept is None else kept["reason"] if "reason" in kept else _dataset(kept)
        except (TypeError, KeyError, ValueError):
            return None  # damaged: measured again

    def put(self, point: Mapping[str, Any], measured: xr.Dataset | str) -> None:
        """Keep what was measured at a point, or the reason why it failed."""
        kept = {"reason": measured} if isinstance(measured, str) else _plain(measured)
        self._write(_name(point), {"point": dict(point)} | kept)

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


def _plain(dataset: xr.Dataset) -> dict[str, Any]:
    """Return a Dataset as lists and numbers, which JSON keeps to the last bit."""
    variables = {
        str(name): {
            "dims": array.dims, "dtype": array.dtype.str, "shape": array.shape, "data": array.values.ravel().tolist(),
            "attrs": array.attrs,
        }
        for name, array in dataset.variables.items()
    }  # fmt: skip
    return {"variables": variables, "coordinates": list(map(str, dataset.coords)), "attrs": dataset.attrs}


def _dataset(plain: Mapping[str, Any]) -> xr.Dataset:
    """Return the Dataset that ``_plain`` described."""
    variables = {}
    for name, kept in plain["variables"].items():
        data = np.array(kept["data"], dtype=str if kept["dtype"] == "|O" else kept["dtype"]).reshape(kept["shape"])
        variables[name] = (kept["dims"], data, kept["attrs"])
    return xr.Dataset(variables, attrs=plain["attrs"]).set_coords(plain["coordinates"])


def _name(point: Mapping[str, Any]) -> str:
    return f"{hashlib.sha256(text_of(dict(point)).encode()).hexdigest()[:_DIGITS]}.json"


def text_of(value: Any) -> str:
    """Return a text that is equal for equal values: 1 is 1.0."""
    return json.dumps(_as_floats(value), sort_keys=True)


def _as_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_floats(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_floats(item) for item in value]
    exact = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53
    return float(value) + 0.0 if exact or isinstance(value, float) else value
