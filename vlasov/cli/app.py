"""The program: its name, what it says beside its answers, and how it ends.

Exit code 0, 1 (a run failed, or stopped before its horizon for another reason than a blow-up), 2 (bad input), 130
(interrupted by Ctrl-C) or 143 (by SIGTERM). With --json an error is JSON too, {"error": ..., "field": ...}, and a
sentence on stderr.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import shutil
import signal
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from vlasov.cli.printing import answered, print_json
from vlasov.errors import AccuracyWarning, InputError, SlowRunWarning, SolverError, interrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # read when NumPy and SciPy are imported
_NARROW = 80  # columns below which help is plain text: tables would cut the names of options

app = typer.Typer(
    help="Solve the Transformer PDE, d_t mu + div(mu Gamma_mu) = 0: the mean-field limit of self-attention.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_REPLACED = {  # by the name of a command that is no longer there
    "beyond-gaussian": '"vlasov beyond-gaussian" is now "vlasov observe RUN.nc --quantity gaussianity"',
    "clusters": '"vlasov clusters" is now "vlasov observe RUN.nc --quantity clusters"',
    "energies": '"vlasov energies" is now "vlasov observe RUN.nc --quantity energies"',
    "figure": '"vlasov figure" is now programs in docs/examples, such as covariance_limits.py and limit_ranks.py',
    "stability": '"vlasov stability" is now "vlasov compare CASE --shift 0.1", or --scale, --resample, --initial',
}

_signals: list[int] = [signal.SIGINT]  # which signals have interrupted the command, by default the first

# The command line's own exception for unknown commands and options; Typer does not export it by name.
_Misuse: Any = typer.BadParameter.__base__


class Interrupted(Exception):
    """Ctrl-C or SIGTERM during a command; its arguments say what was kept."""


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2, a failed run exit code 1."""
    for variable in _BLAS:
        os.environ.setdefault(
            variable, "1"
        )  # its threads spin: beside two busy neighbours 300 x 300 products took 10 x
    atexit.register(gc.freeze)  # else the interpreter's last collections search all modules: a fifth of a short run
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # letters that the terminal does not have
    columns = shutil.get_terminal_size().columns
    app.rich_markup_mode = "rich" if columns >= _NARROW else None
    try:
        with _warnings_as_lines(), _terminated_as_interrupted():
            code = _answer({"terminal_width": columns} if columns < _NARROW else {})
        sys.stdout.flush()
    except OSError as error:
        code = _unwritten(error)
    sys.exit(code)


def _answer(settings: dict[str, Any]) -> int:
    """The exit code."""
    answered.set(False)
    try:
        return app(sys.argv[1:] or ["--help"], prog_name="vlasov", standalone_mode=False, **settings) or 0
    except InputError as mistake:
        return _complain(_with_notes(mistake), 2, mistake.field)
    except _Misuse as misuse:
        if replaced := _REPLACED.get(next(iter(sys.argv[1:]), "")):
            return _complain(replaced, 2)
        command = getattr(getattr(misuse, "ctx", None), "command_path", "vlasov")
        return _complain(f'{misuse.format_message()} See "{command} --help".', 2)
    except SolverError as failure:
        return _complain(_with_notes(failure), 1)
    except MemoryError:
        return _complain("memory does not suffice; take fewer tokens, cells, slices or output times", 1)
    except Interrupted as stop:
        return _interrupted(*(stop.args or ["Nothing was written."]))
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except (SystemError, RuntimeError) as error:
        if interrupted(error):
            return _interrupted()
        raise


def _interrupted(*kept: str) -> int:
    """Say what was kept; the exit code is that of shells."""
    return _complain(" ".join(["interrupted.", *kept]) if kept else "interrupted", 128 + _signals[-1])


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM, which batch systems send, end a command as Ctrl-C does."""

    def interrupt(number: int, _: object) -> None:
        _signals.append(number)
        raise KeyboardInterrupt

    _signals[:] = [signal.SIGINT]
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Python's warnings in one line each, in the colour of a warning; those of others with where they come from."""

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        from rich.console import Console
        from rich.text import Text

        ours = issubclass(category, AccuracyWarning | SlowRunWarning)
        where = "" if ours else f" ({category.__name__} in {filename}, line {lineno})"
        said = Text(f"warning: {_plain(str(message))}{where}", style="bold yellow")
        Console(stderr=True, highlight=False).print(said, soft_wrap=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _with_notes(error: Exception) -> str:
    """What went wrong, and what was said to it since, as sentences."""
    said = str(error)
    for note in getattr(error, "__notes__", []):
        said += f". {note}" if note[:1].isupper() and not said.endswith(".") else f" {note}"
    return said


def _plain(sentence: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in sentence)


def _complain(sentence: str, code: int, field: str = "") -> int:
    """Print a sentence for people, and for programs that asked for JSON and have none yet; the exit code."""
    print(f"vlasov: {_plain(sentence)}", file=sys.stderr)
    if "--json" in sys.argv[1:] and not answered.get():
        print_json({"error": _plain(sentence), "field": field or None})
    return code


def _unwritten(error: OSError) -> int:
    """Nobody reads what is printed any more, or it has no place."""
    if error.filename is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still in the buffer goes nowhere
    if isinstance(error, BrokenPipeError):
        return 141  # as shells say it
    return _complain(f"{error.filename or 'standard output'} cannot be written: {error.strerror}", 1)
