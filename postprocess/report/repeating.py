"""How what a page shows is made again: a command where it can say all of it, else a few lines of Python.

Studies keep their options as JSON in the attribute ``options``.
"""

from __future__ import annotations

import shlex
from typing import Any

from vlasov.postprocess import registry
from vlasov.postprocess.report import casefile
from vlasov.postprocess.report.sources import Source
from vlasov.postprocess.studies.study import Study, function_name, options
from vlasov.solvers.dataset import RUN, kept_problem, table_in

_RUN_AGAIN = (
    "again = vl.solve(problem, made.attrs['solver'], times=made['time'].values, **json.loads(made.attrs['options']))"
)


def repeated(source: Source) -> str:
    """Return the lines that make a Dataset again, with the case file of its page; "" where it does not hold enough."""
    dataset, study = source.dataset, registry.study_of(source.dataset)
    if kept_problem(dataset) is None:
        return ""
    name = casefile.case_name(dataset)
    short = len(casefile.case_file(dataset)) <= casefile.LONGEST
    saved = f"# with the case file above, saved as {name}.toml\n"
    if source.kind == RUN.name and dataset.attrs.get("solver"):
        solver = shlex.quote(str(dataset.attrs["solver"]))
        command = f"{saved}vlasov run {name}.toml --solver {solver} -o again.nc"
        return command if short else _from_file(source, "import json\n", _RUN_AGAIN)
    asked = {} if study is None else _asked(study, table_in(dataset.attrs, "options"))
    if study is None or not asked:
        return ""
    unsaid = {item.name for item in options(study) if item.metadata["flag"] == "-"}
    if short and all(map(_is_word, asked.values())) and not unsaid & {*asked}:
        words = " ".join(_option(study, name, value) for name, value in asked.items())
        return f"{saved}vlasov {registry.command_of(study)} {name}.toml {words}"
    call = f"again = vl.{function_name(study)}(problem, {', '.join(f'{k}={v!r}' for k, v in asked.items())})"
    if short:
        return f'{saved}import vlasov as vl\n\nproblem = vl.load_case("{name}.toml").problem\n{call}'
    return _from_file(source, "", call)


def _asked(study: type[Study], values: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a study that are not the default; none where not all of them are known."""
    own = [item for item in options(study) if not item.metadata["run"]]
    if not all(item.name in values for item in own):
        return {}
    defaults = {item.name: list(item.default) if isinstance(item.default, tuple) else item.default for item in own}
    return {name: values[name] for name, default in defaults.items() if values[name] != default}


def _is_word(value: Any) -> bool:
    """Return whether a value, or several, can be said on the command line."""
    return all(isinstance(each, str | int | float) for each in (value if isinstance(value, list) else [value]))


def _option(study: type[Study], name: str, value: Any) -> str:
    """Return an option as the command line takes it; truth values are switches, --local or --no-local."""
    flag = next(item.metadata["flag"] for item in options(study) if item.name == name)
    flag = "--at" if name == "times" else flag or f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        on, _, off = flag.partition("/")
        return on if value else off or f"--no-{on.removeprefix('--')}"
    return f"{flag} {_word(value)}"


def _word(value: Any) -> str:
    """Return a value, or several with commas between them, exactly."""
    return shlex.quote(",".join(map(str, value if isinstance(value, list) else [value])))


def _from_file(source: Source, imports: str, call: str) -> str:
    """Return lines with the problem of the file itself, where it is too large for the page."""
    return (
        f"{imports}import vlasov as vl\n\nmade = vl.open_run({(source.name or 'made.nc')!r})\n"
        f"problem = vl.Problem.from_json(made.attrs['problem'])\n{call}"
    )
