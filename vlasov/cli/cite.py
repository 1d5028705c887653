"""The command about what to cite: cite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vlasov.cli.options import ForceOption, command
from vlasov.cli.pictures import write_text
from vlasov.errors import InputError

_FORMATS = ("bibtex",)
_SUFFIX = ".bib"


@command()
def cite(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN.nc|CASE...", help="Runs, studies or their folders, cases, or .toml files; one list for all."
        ),
    ],
    *,
    style: Annotated[str, typer.Option("--format", help="bibtex is all there is.")] = "bibtex",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A .bib file to write.")] = None,
    force: ForceOption = False,
) -> None:
    """Print BibTeX of this software, and of the theorems and methods that runs used, each with the reason why."""
    from vlasov.errors import choose
    from vlasov.postprocess.citing import cite_all

    choose(style, _FORMATS, "--format")
    if output is None:
        print(cite_all(paths))
        return
    if output.suffix.lower() != _SUFFIX:
        raise InputError(f'"{output}" must end in {_SUFFIX}', "output")
    write_text(output, cite_all(paths) + "\n", *paths, force=force)
    print(output)
