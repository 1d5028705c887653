"""The program: its name, what every command takes, and how it ends. Exit code 0, 1 (a run failed) or 2 (bad input)."""

from __future__ import annotations

import io
import os
import shutil
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.errors import InputError, SolverError

if TYPE_CHECKING:
    from vlasov.cases import Case

_NARROW = 80  # columns below which help is plain text: tables would cut the names of options

app = typer.Typer(
    help="Solve the Transformer PDE, d_t mu + div(mu Gamma_mu) = 0: the mean-field limit of self-attention.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

CaseArgument = Annotated[str, typer.Argument(metavar="CASE", help="Name of a case, or a .toml file.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change the case; values in TOML. May be repeated."),
]
ThreadsOption = Annotated[int | None, typer.Option("--threads", help="How many to use; all if not given.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
# The command line's own exception for unknown commands and options; Typer does not export it by name.
_Misuse: Any = typer.BadParameter.__base__


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2, a failed run exit code 1."""
    if sys.stdout is None:  # closed
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # letters that the terminal does not have
    app.rich_markup_mode = "rich" if shutil.get_terminal_size().columns >= _NARROW else None
    try:
        code = _answer()
        sys.stdout.flush()
    except OSError as error:
        code = _unwritten(error)
    sys.exit(code)


def _answer() -> int:
    """The exit code."""
    try:
        return app(sys.argv[1:] or ["--help"], prog_name="vlasov", standalone_mode=False) or 0
    except InputError as mistake:
        return _complain(str(mistake), 2)
    except _Misuse as misuse:
        command = getattr(getattr(misuse, "ctx", None), "command_path", "vlasov")
        return _complain(f'{misuse.format_message()} See "{command} --help".', 2)
    except SolverError as failure:
        return _complain(" ".join([str(failure), *getattr(failure, "__notes__", [])]), 1)
    except MemoryError:
        return _complain("there is not enough memory for this run; lower n or the number of output times", 1)
    except typer.Abort:
        return _complain("interrupted", 130)  # as shells say it; newer Typer does so by itself


def _complain(sentence: str, code: int) -> int:
    """Print a sentence for people; the exit code."""
    plain = "".join(letter if letter.isprintable() else " " for letter in sentence)
    print(f"vlasov: {plain}", file=sys.stderr)
    return code


def _unwritten(error: OSError) -> int:
    """Nobody reads what is printed any more, or it has no place."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still in the buffer goes nowhere
    if isinstance(error, BrokenPipeError):
        return 141  # as shells say it
    return _complain(f"{error.filename or 'standard output'} cannot be written: {error.strerror}", 1)


def load(case: str, settings: list[str] | None, threads: int | None) -> Case:
    """The case with its changes, to be run by so many threads."""
    from vlasov.cases import load_case
    from vlasov.jit import set_threads

    set_threads(threads)
    return load_case(case, settings=settings or [])


def numbers(text: str, field: str, kind: type[int] | type[float]) -> list[Any]:
    """Numbers with commas between them."""
    try:
        return [kind(number) for number in text.split(",")]
    except ValueError:
        raise InputError(f'is "{text}" where numbers with commas between them are needed', field) from None
