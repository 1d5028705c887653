"""Every command, argument and option of the command line, from the program itself."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from reference.words import code, plain, table
from vlasov.cli import app
from vlasov.cli.studies import program as study_program
from vlasov.postprocess.registry import commands as study_commands


def pages() -> dict[str, str]:
    """By file name."""
    program = typer.main.get_command(app)
    commands = dict(program.commands)  # type: ignore[attr-defined]
    commands |= {name: typer.main.get_command(study_program(name)) for name in study_commands()}
    listed = [[f"[`vlasov {name}`](#vlasov-{name})", plain(_brief(command))] for name, command in commands.items()]
    parts = [table(["command", "what it does"], listed)]
    parts += [_command(name, command) for name, command in commands.items()]
    return {"commands.md": "\n\n".join(parts)}


def _help(command: Any) -> str:
    return inspect.cleandoc(command.help or "")


def _brief(command: Any) -> str:
    return _help(command).split("\n\n")[0]


def _command(name: str, command: Any) -> str:
    parameters = [one for one in command.params if one.name != "help" and not getattr(one, "hidden", False)]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    options = [one for one in parameters if one.param_type_name == "option"]
    words = " ".join(_word(one) for one in arguments)
    parts = [
        f"## `vlasov {name}`",
        f"```text\n{' '.join(f'vlasov {name} {words} [OPTIONS]'.split())}\n```",
        *(plain(paragraph) for paragraph in _help(command).split("\n\n")),
    ]
    rows = [[code(_word(one)), plain(getattr(one, "help", "") or ""), ""] for one in arguments]
    rows += [[_names(one), plain(one.help or ""), _default(one)] for one in options]
    if rows:
        parts.append(table(["argument or option", "what it says", "default"], rows))
    return "\n\n".join(parts)


def _word(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    many = "..." if argument.nargs == -1 and not name.endswith("...") else ""
    return f"{name}{many}" if argument.required else f"[{name}{many}]"


def _names(option: Any) -> str:
    names = ", ".join(code(name) for name in [*option.opts, *option.secondary_opts])
    kind = "" if option.is_flag else option.metavar or _type(option)
    return f"{names} {code(kind)}" if kind else names


def _type(option: Any) -> str:
    """What is to be given: typer told it by click's types once, and does by annotations now."""
    told = getattr(option, "type", None)
    hint = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    return str(told.name if told is not None else getattr(hint, "__name__", "text")).upper().replace("STR", "TEXT")


def _default(option: Any) -> str:
    if option.required:
        return "needed"
    if option.is_flag or option.default is None or callable(option.default) or option.default == []:
        return ""
    return code(option.default)
