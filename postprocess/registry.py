"""Which kinds of Dataset and which studies there are, and in which module each is declared; loaded when it is needed.

A new study or kind is one line of ``_ENTRIES``, or a call of ``register`` elsewhere.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from vlasov.errors import InputError
from vlasov.kinds import Kind

if TYPE_CHECKING:
    import xarray as xr


class Declares(Protocol):
    """A class that says which kind of Dataset it makes: ``vlasov.postprocess.studies.study.Study``."""

    kind: ClassVar[Kind]


class Entry(NamedTuple):
    """A Kind, a Study class, or "room.module:name" of one; and the command of a study with its line of help."""

    where: Any
    command: str = ""
    says: str = ""


_ENTRIES: dict[str, Entry] = {
    "run": Entry("postprocess.run_panels:RUNS"),
    "study": Entry(
        "postprocess.mean_field:MeanFieldStudy",
        "converge",
        "Study how fast n tokens approach the mean-field limit: errors and slopes in n.",
    ),
    "depth study": Entry(
        "postprocess.depth:DepthStudy", "depth", "Study how fast L layers approach the flow: errors and slopes in L."
    ),
    "refinement": Entry("postprocess.refinement:Refinement", "compare --refine"),
    "Lipschitz study": Entry(
        "postprocess.lipschitz:LipschitzStudy", "lipschitz", "Study how rough attention is on n tokens, and its bounds."
    ),
    "sweep": Entry(
        "postprocess.sweep:Sweep",
        "sweep",
        "Solve a case for many values of parameters: --set attention.beta=1:4:0.5, or 1,2,3.",
    ),
    "grid": Entry("postprocess.on_grid:GRID"),
    "comparison": Entry("postprocess.compare:COMPARISON"),
    "sensitivity": Entry("postprocess.sensitivity:SENSITIVITY"),
    "energies": Entry("postprocess.energies:ENERGIES"),
    "gaussianity": Entry("postprocess.gaussianity:GAUSSIANITY"),
    "clusters": Entry("postprocess.clusters:CLUSTERS"),
}


def register(thing: Kind | type[Declares], command: str = "") -> None:
    """Make a kind known, or a study with its kind; its command is there if ``vlasov.cli`` is imported afterwards."""
    kind = thing if isinstance(thing, Kind) else thing.kind
    if kind.name in _ENTRIES and isinstance(_ENTRIES[kind.name].where, str):
        raise InputError(f'"{kind.name}" is a kind of vlasov itself; choose another name', "kind")
    _ENTRIES[kind.name] = Entry(thing, command, (thing.__doc__ or "").partition("\n")[0])


def names() -> list[str]:
    """Return the names of all kinds."""
    return list(_ENTRIES)


def kind_of(dataset: xr.Dataset) -> Kind | None:
    """Return the kind of a Dataset; None if vlasov knows none of that name."""
    return kind_named(str(dataset.attrs.get("kind", "")))


def kind_named(name: str) -> Kind | None:
    """Return the kind of this name, if there is one."""
    thing = _load(_ENTRIES[name]) if name in _ENTRIES else None
    return thing if thing is None or isinstance(thing, Kind) else thing.kind


def study_of(dataset: xr.Dataset) -> Any:
    """Return the study that made a Dataset; None if no study did."""
    entry = _ENTRIES.get(str(dataset.attrs.get("kind", "")))
    return None if entry is None or not entry.command else _load(entry)


def commands() -> dict[str, str]:
    """Return the commands of studies, each with its line of help; "compare --refine" is an option of another one."""
    return {entry.command: entry.says for entry in _ENTRIES.values() if entry.command and " " not in entry.command}


def study_named(command: str) -> Any:
    """Return the study of a command."""
    return _load(next(entry for entry in _ENTRIES.values() if entry.command == command))


def command_of(study: type[Declares]) -> str:
    """Return the command of a study."""
    return _ENTRIES[study.kind.name].command


def _load(entry: Entry) -> Any:
    if not isinstance(entry.where, str):
        return entry.where
    module, _, name = entry.where.partition(":")
    return getattr(import_module(f"vlasov.{module}"), name)
