"""Where commands write: pictures for a screen or for print, and numbers beside them.

A file that the user names is replaced, unless it is what is read. One that the command names itself is replaced only
where it is what the same command has written before.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlasov.cli.options import running
from vlasov.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure


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

    def place(self, output: Path | None, default: Path, *inputs: str | Path) -> Path:
        """Where the picture goes: what -o names, or a default, to which the end is added; checked before any work."""
        form = self._checked()
        if output is None:
            target = default.with_name(f"{default.name}.{form or 'png'}")
            _picture_place(target, *inputs)
            check_ours(target)
            return target
        if form is not None and output.suffix.lower() != f".{form}":
            raise InputError(f'is "{form}", but -o names "{output}"; leave out one of them', "--format")
        _picture_place(output, *inputs)
        return output

    def inside(self, folder: Path) -> Path:
        """Where the picture of a study goes, in a folder that may have to be made."""
        form = self._checked()
        return self.place(None, folder / "study") if folder.is_dir() else folder / f"study.{form or 'png'}"

    def place_or_numbers(self, output: Path | None, default: Path, *inputs: str | Path) -> tuple[Path, bool]:
        """As ``place``; and whether -o names a .nc file, for numbers."""
        from vlasov.solvers.files import check_apart, check_writable

        if output is None or output.suffix != ".nc":
            return self.place(output, default, *inputs), False
        self.refuse(f'-o names "{output}", for numbers')
        check_apart(output, *inputs)
        check_writable(output)
        return output, True

    def refuse(self, why: str) -> None:
        """Complain about options for pictures where none is drawn."""
        for name, value in (("--format", self.form), ("--width", self.width)):
            if value is not None:
                raise InputError(f"is for pictures, but {why}; leave it out", name)

    def write(self, draw: Callable[[], Figure], target: Path) -> Path:
        """Draw a picture so wide, and write it."""
        from vlasov.postprocess import figures
        from vlasov.postprocess.drawing.paper import printed
        from vlasov.solvers.progress import waiting

        with waiting("drawing"), printed(self.width):
            return figures.save(draw(), target, command=running())

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


def check_ours(target: Path, kind: str | None = None) -> None:
    """Complain where a file that the user did not name is there already, and is nothing that this command has written.

    A picture says which command has drawn it, a .nc file its kind.
    """
    from vlasov.postprocess.drawing.canvas import drawn_by
    from vlasov.solvers.files import check_replaced, kind_of

    command = running()
    check_replaced(target, command, lambda file: drawn_by(file, command) if kind is None else kind_of(file) == kind)


def _picture_place(target: Path, *inputs: str | Path) -> None:
    """Complain where a picture cannot be written, or would take the place of what is read."""
    from vlasov.postprocess.drawing.canvas import checked_target
    from vlasov.postprocess.figures import FORMATS
    from vlasov.solvers.files import check_apart, check_place

    checked_target(target, FORMATS)
    check_apart(target, *inputs)
    check_place(target)
