"""The commands of studies: converge, depth and all others that ``vlasov.postprocess.registry`` lists.

Their options are made from the fields of the study. The help of ``vlasov`` needs their names alone; a study's module is
imported when its command runs.
"""

from __future__ import annotations

import types
from dataclasses import MISSING, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from vlasov.cli.app import app
from vlasov.cli.options import CaseArgument, FolderOption, JsonOption, Settings, Times, command, names, numbers
from vlasov.cli.pictures import Picture
from vlasov.cli.printing import numbers_of, print_json, print_tables
from vlasov.errors import InputError
from vlasov.postprocess import registry

if TYPE_CHECKING:
    from vlasov.cases import Case
    from vlasov.postprocess.studies.study import Study

_LEFT_OUT = ("output", "overwrite", "progress")  # which all commands have in their own words
_SIMPLE = (bool, int, float, str)


def _add(name: str, says: str) -> None:
    """Add a command to the program that passes its arguments on, unread, to the command made when it runs."""

    @app.command(
        name, help=says, add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )  # fmt: skip
    def passed_on(context: typer.Context) -> None:
        program(name)(context.args, prog_name=f"vlasov {name}", standalone_mode=False)


def program(name: str) -> typer.Typer:
    """Return the program of a study."""
    study = registry.study_named(name)
    made = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=app.rich_markup_mode)
    group = _group(study)

    def run(
        case: CaseArgument,
        *,
        options: Any,
        settings: Settings,
        picture: Picture,
        output: FolderOption = None,
        as_json: JsonOption = False,
    ) -> None:
        fixed, swept = study.from_settings(settings.settings or [])
        loaded = settings.load(case, fixed)
        arguments = _arguments(study, options, loaded) | swept
        _conduct(study, loaded, arguments, output or Path(f"{loaded.name}-{name}"), picture, as_json)

    run.__name__, run.__doc__ = name, registry.commands()[name]
    run.__annotations__["options"] = group
    command(made)(run)
    return made


def _group(study: type[Study]) -> type:
    """Return a dataclass of the options of a study, as Typer reads them; with --times and --at if it has times."""
    from vlasov.postprocess.studies.study import options

    hints = get_type_hints(study)
    made = []
    for item in options(study):
        if item.name in (*_LEFT_OUT, "times") or item.metadata["flag"] == "-" or item.default is MISSING:
            continue
        kind, several = _kind(hints[item.name])
        flags = [item.metadata["flag"]] if item.metadata["flag"] else []
        metavar = {int: "N,N,...", float: "X,X,...", str: "A,B,..."}.get(kind) if several else None
        help_text = item.metadata["says"].replace("``", "")
        taken: Any = str if several else kind
        hint: Any = taken | None if item.default is None else taken
        annotation: Any = Annotated[hint, typer.Option(*flags, metavar=metavar, help=help_text)]
        default = item.default
        if several and default is not None:
            default = ",".join(map(str, default if isinstance(default, tuple) else (default,)))
        made.append((item.name, annotation, field(default=default, kw_only=True)))
    has_times = any(item.name == "times" for item in options(study))
    return make_dataclass("Options", made, bases=(Times,) if has_times else (), frozen=True)


def _kind(hint: Any) -> tuple[Any, bool]:
    """Return the type of an option's values, and whether there may be several, from its annotation."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    simple = [part for part in parts if part in _SIMPLE]
    several = [part for part in parts if get_origin(part) is not None]
    if several:
        inner = [part for part in get_args(several[0]) if part in _SIMPLE]
        return (simple or inner or [str])[0], True
    return (simple or [str])[0], False


def _arguments(study: type[Study], options: Any, case: Case) -> dict[str, Any]:
    """Return what the study is called with, from the options of its command."""
    hints, arguments = get_type_hints(study), {}
    for item in fields(options):
        value = getattr(options, item.name)
        if item.name == "at" or (item.name == "times" and isinstance(options, Times)):
            continue
        kind, several = _kind(hints[item.name])
        if several and value is not None:
            value = names(value) if kind is str else numbers(value, item.name, kind)
        arguments[item.name] = value
    if isinstance(options, Times) and (times := options.until(case.problem.horizon)) is not None:
        arguments["times"] = times
    return arguments


def _conduct(
    study: type[Study], case: Case, arguments: dict[str, Any], target: Path, picture: Picture, as_json: bool
) -> None:
    """Make a study in its folder or file, save its picture there, and print it for programs or as a table."""
    from vlasov.postprocess.drawing.panels import draw
    from vlasov.postprocess.studies.run import run_study
    from vlasov.postprocess.studies.store import FINISHED
    from vlasov.solvers.targets import check_place

    in_file = target.suffix == ".nc"
    if in_file:
        check_place(target)
    place = picture.place(None, target.with_suffix(""), sources=[case.name, arguments]) if in_file else (
        picture.inside(target)
    )  # fmt: skip
    made = study(case, **arguments, output=target, overwrite=picture.force, progress=not as_json)
    try:
        result = run_study(made)
    except KeyboardInterrupt as stop:
        if not in_file:
            stop.add_note(f"What is done is in {target}, and the same command goes on with it.")
        raise
    file, undrawn = target if in_file else target / FINISHED, ""
    try:
        picture.write(lambda: draw(result), place)
    except InputError as reason:  # such as three parameters of a sweep
        undrawn = f"no picture: it {reason.sentence}"
    if as_json:
        print_json(numbers_of(result) | {"study": str(file), "picture": None if undrawn else str(place.path)})
        return
    print_tables(result)
    print(f"written to {file}")
    print(undrawn or place.path)


for _command, _help in registry.commands().items():
    _add(_command, _help)
