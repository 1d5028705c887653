"""Where commands write: pictures for a screen or for print, and numbers beside them.

Whatever a command writes has an origin, which is known before any work: a file of another origin is replaced by --force
alone, whether the user named it or not.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from vlasov.cli.options import ForceOption, running
from vlasov.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import xarray as xr
    from matplotlib.figure import Figure


_NUMBERS = ".nc"
_DRAWING = 2.0  # seconds that a picture takes, about


class Target(NamedTuple):
    """A file to be written, the origin of what it will hold, and whether a file of another origin is replaced."""

    path: Path
    origin: str
    force: bool


def claim(path: Path, sources: Sequence[Any], *inputs: str | Path, force: bool) -> Target:
    """A path as the target of what the running command makes from these sources; refused where a result may be lost."""
    from vlasov.solvers.targets import check_target, origin

    target = Target(path, origin(running.get(), *sources), force)
    check_target(path, target.origin, *inputs, overwrite=force)
    return target


def sources_of(paths: Sequence[str | Path]) -> list[str]:
    """The origins of files that a command reads."""
    from vlasov.solvers.targets import origin_of

    return [origin_of(path) for path in paths]


def keep(dataset: xr.Dataset, target: Target) -> None:
    """Write numbers."""
    from vlasov.solvers.dataset import save

    dataset.attrs["origin"] = target.origin
    save(dataset, target.path, overwrite=target.force)


def write_text(path: Path, text: str, *inputs: str | Path, force: bool) -> None:
    """Write a text, whose origin is itself: users may have changed the file."""
    from vlasov.solvers.files import write_text as write
    from vlasov.solvers.targets import check_target, origin_of_text

    check_target(path, origin_of_text(text), *inputs, overwrite=force)
    write(path, text, "output")


@contextmanager
def keeping(target: Target) -> Iterator[dict[str, xr.Dataset]]:
    """Results by what ends their names: where a command fails or is interrupted, they are written beside its target."""
    from vlasov.solvers.dataset import save_partial
    from vlasov.solvers.targets import rescue

    results: dict[str, xr.Dataset] = {}
    try:
        yield results
    except (Exception, KeyboardInterrupt) as stop:
        files: list[str] = []
        with rescue():  # who presses Ctrl-C twice loses nothing
            for name, result in results.items():
                place = target.path.with_name(f"{target.path.stem}{name}.nc")
                files.append(str(save_partial(result, place)))
        if files:
            stop.add_note(f"What was solved until then is in {' and '.join(files)}.")
        raise


@dataclass(frozen=True)
class Picture:
    """What a picture is written as."""

    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="pdf, svg or png; where -o names a file, its end says it."),
    ] = None
    width: Annotated[
        str | None,
        typer.Option("--width", metavar="WIDTH", help="For print: column, page, or a number such as 86mm or 3.4in."),
    ] = None
    force: ForceOption = False

    def place(
        self, output: Path | None, default: Path, *inputs: str | Path, sources: Sequence[Any] | None = None,
        numbers: bool = False,
    ) -> Target:  # fmt: skip
        """Return where the picture goes: what -o names, or a default with the end added; checked before any work.

        It is made from the inputs, if no other ``sources`` are given. ``numbers``: -o may name a .nc file for these.
        """
        from vlasov.postprocess.drawing.canvas import checked_target
        from vlasov.postprocess.figures import FORMATS

        sources = sources_of(inputs) if sources is None else sources
        if numbers and output is not None and output.suffix == _NUMBERS:
            self.refuse(f'-o names "{output}", for numbers')
            return claim(output, sources, *inputs, force=self.force)
        form = self._checked()
        if output is not None and form is not None and output.suffix.lower() != f".{form}":
            raise InputError(f'is "{form}", but -o names "{output}"; leave out one of them', "--format")
        path = default.with_name(f"{default.name}.{form or 'png'}") if output is None else output
        checked_target(path, FORMATS)
        return claim(path, sources, *inputs, force=self.force)

    def inside(self, folder: Path) -> Target:
        """Where the picture of a study goes, in a folder that may have to be made, and that no other study may use."""
        from vlasov.solvers.targets import origin

        if folder.is_dir():
            return self.place(None, folder / "study")
        return Target(folder / f"study.{self._checked() or 'png'}", origin(running.get()), self.force)

    def refuse(self, why: str) -> None:
        """Complain about options for pictures where none is drawn."""
        for name, value in (("--format", self.form), ("--width", self.width)):
            if value is not None:
                raise InputError(f"is for pictures, but {why}; leave it out", name)

    def write(self, draw: Callable[[], Figure], target: Target, numbers: xr.Dataset | None = None) -> None:
        """Draw a picture and write it, or the numbers where the target is a .nc file.

        Refused where a file of another origin came meanwhile.
        """
        from vlasov.postprocess import figures
        from vlasov.postprocess.drawing.paper import printed
        from vlasov.solvers.progress import waiting
        from vlasov.solvers.targets import check_target

        if numbers is not None and target.path.suffix == _NUMBERS:
            keep(numbers, target)
            return
        with waiting("drawing", seconds=_DRAWING), printed(self.width):
            drawn = draw()
            check_target(target.path, target.origin, overwrite=target.force)
            figures.save(drawn, target.path, origin=target.origin)

    def _checked(self) -> str | None:
        """The format, without its dot."""
        from vlasov.postprocess.drawing.paper import inches
        from vlasov.postprocess.figures import FORMATS

        inches(self.width)
        form = None if self.form is None else self.form.lower().lstrip(".")
        if form is not None and form not in FORMATS:
            raise InputError(f'is "{self.form}"; {did_you_mean(form, FORMATS)}', "--format")
        return form


def beside(path: Path, name: str) -> Path:
    """A place beside a file that is read; ``{}`` in its name is that of the file, without its end."""
    if path.is_dir() or not path.name:
        raise InputError(f'"{path}" is a folder; give a .nc file that "vlasov run -o" wrote', "path")
    return path.with_name(name.format(path.stem))
