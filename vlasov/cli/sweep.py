"""The command sweep: many runs of one case, and how their parameters are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.cli.options import CaseArgument, JsonOption, Settings, command, names, numbers
from vlasov.cli.pictures import Picture, Target
from vlasov.cli.printing import print_json
from vlasov.cli.studies import resumable
from vlasov.errors import InputError, SolverError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::({_NUMBER}))?")
_LIKE_NUMBER = rf"\s*(?:{_NUMBER}|[+-]?(?:nan|inf|infinity))\s*"
_NO_RANGE = re.compile(rf"{_LIKE_NUMBER}:", re.IGNORECASE)  # if it is not one
_MOST = 10**6


@dataclass(frozen=True)
class Sweep:
    """What a sweep is made of, beside what is set."""

    solver: Annotated[str | None, typer.Option("--solver", help="The case's first if not given.")] = None
    save: Annotated[
        str, typer.Option("--save", metavar="NAME,NAME,...", help="Variables of the runs that are kept.")
    ] = "mean,covariance"
    side_by_side: Annotated[
        bool, typer.Option("--zip", help="First values with first ones, second with second ones: no combinations.")
    ] = False
    times: Annotated[
        str | None, typer.Option("--times", metavar="T,T,...", help="Output times; 101 equidistant if not given.")
    ] = None
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help='A dask address, or "local" for a cluster here.')
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Those of ``vl.sweep``."""
        return {
            "solver": self.solver,
            "save": names(self.save),
            "product": not self.side_by_side,
            "times": None if self.times is None else numbers(self.times, "times", float),
            "scheduler": self.scheduler,
        }


@command()
def sweep(
    case: CaseArgument,
    *,
    sweep: Sweep,
    settings: Settings,
    picture: Picture,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="A folder, where a sweep goes on if it was interrupted; or a .nc file, and no folder.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a case for many values of its parameters, on all cores, into one file; and draw what comes out.

    --set takes several values: 1,2,3 or 1:10:0.5, both ends included, or lists such as [0,1],[1,0]. attention.beta
    multiplies A in all heads.
    """
    from vlasov.jit import set_threads
    from vlasov.postprocess.sweep import sweep as sweep_case
    from vlasov.solvers.targets import check_place

    swept, fixed = parsed(settings.settings or [])
    if not swept:
        raise InputError("gives no parameter several values; write --set attention.beta=1:10:0.5, for example", "--set")
    set_threads(settings.threads)
    target = output or Path(f"{Path(case).stem}-sweep")
    if target.suffix == ".nc":
        check_place(target)
        place = picture.place(None, target.with_suffix(""), case, sources=[case, settings.settings, sweep.arguments()])
    else:
        place = picture.inside(target)
    arguments = sweep.arguments() | {
        "output": target, "overwrite": picture.force, "settings": fixed, "progress": not as_json,
    }  # fmt: skip
    if target.suffix == ".nc":
        result = sweep_case(case, swept, **arguments)
    else:
        with resumable(target):
            result = sweep_case(case, swept, **arguments)
    _show(result, target, picture, place, as_json)


def _show(result: xr.Dataset, target: Path, picture: Picture, place: Target, as_json: bool) -> None:
    """Draw a sweep of one or two parameters, print how its runs ended, and where it is."""
    from vlasov.postprocess.studies.store import FINISHED
    from vlasov.postprocess.sweep import figure
    from vlasov.postprocess.sweep.piece import FAILED
    from vlasov.postprocess.sweep.told import counts

    file = target if target.suffix == ".nc" else target / FINISHED
    ends, drawn = counts(result), None
    try:
        drawn = picture.write(lambda: figure.draw(result), place)
    except InputError as reason:  # three parameters, or nothing but fields
        undrawn = f"no picture: it {reason.sentence}"
    total = result["status"].size
    if as_json:
        print_json({"runs": total, **ends, "sweep": str(file), "picture": None if drawn is None else str(drawn)})
    else:
        said = ", ".join(f"{count:,} {status}" for status, count in ends.items())
        print(f"{result.attrs['title']}, solver {result.attrs['solver']}: {total:,} runs, {said}, "
              f"{result.attrs['wall_seconds']:.3g} s")  # fmt: skip
        print(f"  written to {file}")
        print(undrawn if drawn is None else drawn)
    if ends.get(FAILED) == total:
        raise SolverError("all runs failed")


def parsed(settings: Sequence[str]) -> tuple[dict[str, list[Any]], list[str]]:
    """What is swept, with its values, and the settings of one value."""
    swept: dict[str, list[Any]] = {}
    fixed: list[str] = []
    for setting in settings:
        path, equals, text = setting.partition("=")
        path = path.strip()
        parts = _apart(text)
        if equals and (wrong := next(filter(_NO_RANGE.match, parts), "")) and not _RANGE.fullmatch(wrong):
            raise InputError(f'has "{wrong}", which is no range; write a:b or a:b:step, all finite numbers', path)
        if not equals or (len(parts) == 1 and not _RANGE.fullmatch(parts[0])):
            fixed.append(setting)
            continue
        if path in swept:
            raise InputError("is swept twice; give all its values at once", path)
        swept[path] = [value for part in parts for value in _values(part, path)]
    for path in (setting.partition("=")[0].strip() for setting in fixed):
        if path in swept:
            raise InputError("is swept, and set to one value too; leave one of them out", path)
    return swept, fixed


def _apart(text: str) -> list[str]:
    """Parts between commas that stand in no brackets and no quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _values(part: str, path: str) -> list[Any]:
    """One value in TOML, or those of a range a:b or a:b:step, both ends included."""
    from vlasov.cases.settings import value_of

    found = _RANGE.fullmatch(part)
    if found is None:
        if not part:
            raise InputError("has an empty value; write values with commas between them", path)
        return [value_of(part, path)]
    first, last, step = (Decimal(text) for text in (found[1], found[2], found[3] or "1"))
    if step == 0:
        raise InputError(f'has the range "{part}" with steps of zero; give another step', path)
    count = (last - first) / step
    if count < 0:
        raise InputError(f'has the range "{part}", which never comes to its end; give the step the other sign', path)
    if count > _MOST:
        raise InputError(f'has the range "{part}" of {float(count):.2g} values; at most {_MOST:,} are possible', path)
    if count != int(count):
        end = first + int(count) * step
        raise InputError(
            f'has the range "{part}", which ends at {end} and not at {last}; let steps come to the end', path
        )
    whole = all(re.fullmatch(r"[+-]?\d+", text) for text in found.groups() if text)
    return [(int if whole else float)(first + k * step) for k in range(int(count) + 1)]
