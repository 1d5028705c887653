"""How commands take their options: alone, or in groups that several of them share.

A group is a frozen dataclass whose fields are ``Annotated`` as Typer's parameters are. A command that takes a group
stands in the help with the group's options in its place, and is called with an instance.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from vlasov.cli.app import Interrupted, app
from vlasov.errors import InputError
from vlasov.remedies import named_by

if TYPE_CHECKING:
    from vlasov.cases import Case
    from vlasov.checks import Array

Command = TypeVar("Command", bound=Callable[..., None])

#: The name of the command that runs.
running: ContextVar[str] = ContextVar("running", default="")


def command(into: typer.Typer = app, **how: Any) -> Callable[[Command], Command]:
    """As ``into.command``, for functions whose arguments may be groups."""

    def register(function: Command) -> Command:
        hints = get_type_hints(function, include_extras=True)
        arguments = inspect.signature(function).parameters.values()
        groups = {one.name: hints[one.name] for one in arguments if is_dataclass(hints[one.name])}
        taken = [part for one in arguments for part in _parameters(one.replace(annotation=hints[one.name]))]

        @wraps(function)
        def called(**given: Any) -> None:
            made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
            running.set(function.__name__.replace("_", "-"))
            try:
                with named_by(partial(_named, {one.name for one in taken})):
                    function(**given, **made)
            except KeyboardInterrupt as stop:
                raise Interrupted(*getattr(stop, "__notes__", [])) from None

        called.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]  # what Typer reads
        called.__annotations__ = {one.name: one.annotation for one in taken}
        into.command(**how)(called)
        return function

    return register


def _named(own: set[str], option: str, solver: str) -> str | None:
    """How a command with these parameters takes an option of Python; None if it does not."""
    name, _, value = option.partition("=")
    if name in own:
        switch = f"--{'no-' if value == 'False' else ''}{name.replace('_', '-')}"
        return switch if value else f"{name} ({switch})"
    if "settings" not in own:
        return None
    if name == "horizon":
        return "horizon (--set horizon=...)"
    if solver and own & {"solver", "solvers"}:
        setting = f"--set solvers.{solver}.{name}="
        return f"{setting}{value}" if value else f"{name} ({setting}...)"
    return None


def _parameters(argument: inspect.Parameter) -> list[inspect.Parameter]:
    """An argument as it is, or those that a group stands for."""
    group = argument.annotation
    if not is_dataclass(group):
        return [argument]
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            f.name, argument.kind, annotation=hints[f.name],
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
        )
        for f in fields(group)
    ]  # fmt: skip


CaseArgument = Annotated[str, typer.Argument(metavar="CASE", help="Name of a case, or a .toml file.")]
FolderOption = Annotated[
    Path | None, typer.Option("-o", "--output", help="A folder, where a study goes on if it was interrupted.")
]
LocalOption = Annotated[
    bool | None,
    typer.Option(
        "--local/--no-local", help="Find how much small differences grow at most; if not given, where it is quick."
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace what is there already, also where it holds something else.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@dataclass(frozen=True)
class Settings:
    """What is changed of a case, and how many threads run it."""

    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change the case; values in TOML. May be repeated."),
    ] = None
    threads: Annotated[int | None, typer.Option("--threads", help="How many to use; all if not given.")] = None

    def load(self, case: str, settings: list[str] | None = None) -> Case:
        """Return the case with its changes, or with others, to be run by so many threads."""
        from vlasov.cases import load_case

        if self.threads is not None:
            from vlasov.jit import set_threads  # imports Numba, which a Gaussian run does not need

            set_threads(self.threads)
        return load_case(case, settings=(self.settings or []) if settings is None else settings)


@dataclass(frozen=True)
class Times:
    """Output times: how many, or which."""

    times: Annotated[
        int | None,
        typer.Option("--times", metavar="N", help="How many output times, equidistant from 0 to the horizon."),
    ] = None
    at: Annotated[
        str | None, typer.Option("--at", metavar="T,T,...", help="Output times, increasing, in place of --times.")
    ] = None

    def until(self, horizon: float, *, usual: int | None = None) -> Array | None:
        """Return output times in [0, horizon]; with neither option ``usual`` equidistant ones, or None for None."""
        import numpy as np

        from vlasov import checks
        from vlasov.solvers.driver import output_times

        if self.at is not None:
            if self.times is not None:
                raise InputError(f'is {self.times}, but --at names "{self.at}"; leave out one of them', "--times")
            return output_times(numbers(self.at, "--at", float), horizon, "--at")
        count = usual if self.times is None else checks.integer(self.times, "--times", least=2)
        return None if count is None else np.linspace(0.0, horizon, count)


def names(text: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in text.split(",")]


def numbers(text: str, field: str, kind: type[int] | type[float]) -> list[Any]:
    """Numbers with commas between them."""
    try:
        return [kind(number) for number in text.split(",")]
    except ValueError:
        raise InputError(f'is "{text}" where numbers with commas between them are needed', field) from None
