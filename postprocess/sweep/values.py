"""Values of swept parameters: their checks, and how the command line writes them."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from vlasov import checks
from vlasov.cases.settings import value_of
from vlasov.codec import encode
from vlasov.errors import InputError
from vlasov.postprocess.studies.store import text_of

_MOST = 10**6
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::({_NUMBER}))?")
_LIKE_NUMBER = rf"\s*(?:{_NUMBER}|[+-]?(?:nan|inf|infinity))\s*"
_NO_RANGE = re.compile(rf"{_LIKE_NUMBER}:", re.IGNORECASE)  # if it is not a range


def check_parameters(parameters: Any, name: str) -> dict[str, list[Any]]:
    """Return values by "section.key" as plain numbers, texts, lists and tables; none is a part of another."""
    if not isinstance(parameters, Mapping):
        example = '{"attention.A": [A_1, A_2]}'
        sentence = f"is {checks.short(parameters)} where lists of values by name are needed, as in {example}"
        raise InputError(sentence, name)
    if not parameters:
        raise InputError('is empty; name at least one, as in {"horizon": [1, 2]}', name)
    plain = {path: _plain_values(path, values, name) for path, values in parameters.items()}
    for path, whole in itertools.permutations(plain, 2):
        if path.startswith(f"{whole}."):
            raise InputError(f'is a part of "{whole}", which is swept too; give one of them', path)
    return plain


def _plain_values(path: Any, values: Any, name: str) -> list[Any]:
    if not isinstance(path, str) or not all(path.split(".")):
        raise InputError(f'{checks.short(path)} is not of the form "section.key"', name)
    plain = []
    for value in checks.items(values, path):
        encoded = encode(value, path)
        try:
            plain.append(json.loads(json.dumps(encoded)))
        except (TypeError, ValueError, RecursionError):
            raise InputError(f"has the value {checks.short(value)}, which no file can hold", path) from None
    if not plain:
        raise InputError("is empty; give at least one value", path)
    return plain


def check_runs(parameters: Mapping[str, list[Any]], product: bool) -> list[dict[str, Any]]:
    """Return the values of each run, the last parameter changing fastest; all runs differ."""
    first, *rest = parameters
    for path in () if product else rest:
        if len(parameters[path]) != len(parameters[first]):
            raise InputError(
                f'has {len(parameters[path])} values where "{first}" has {len(parameters[first])}; side by side, all '
                "need as many",
                path,
            )
    if (count := math.prod(map(len, parameters.values())) if product else len(parameters[first])) > _MOST:
        raise InputError(f"make {count:,} runs; at most {_MOST:,} are possible", "parameters")
    for path in parameters if product else ():
        if twice := _twice(parameters[path]):
            raise InputError(f"has the value {checks.short(parameters[path][twice[1]])} twice; leave one out", path)
    rows = itertools.product(*parameters.values()) if product else zip(*parameters.values(), strict=True)
    runs = [dict(zip(parameters, row, strict=True)) for row in rows]
    if not product and (twice := _twice(runs)):
        raise InputError(f"make runs {twice[0]} and {twice[1]} the same; leave one out", "parameters")
    return runs


def _twice(values: Sequence[Any]) -> list[int]:
    """Return the places of the first value that is there twice; 1 is 1.0."""
    texts = [text_of(value) for value in values]
    text = next((text for text, count in Counter(texts).items() if count > 1), None)
    return [place for place, each in enumerate(texts) if each == text]


def parsed(settings: Sequence[str]) -> tuple[list[str], dict[str, list[Any]]]:
    """Return settings of one value as they are, and the values of all others: "a=1,2,3", "a=1:10:0.5", "a=[1],[2]"."""
    swept: dict[str, list[Any]] = {}
    fixed: list[str] = []
    for setting in settings:
        path, equals, text = setting.partition("=")
        path, parts = path.strip(), _apart(text)
        if equals and (wrong := next(filter(_NO_RANGE.match, parts), "")) and not _RANGE.fullmatch(wrong):
            raise InputError(f'has "{wrong}", which is no range; write a:b or a:b:step, all finite numbers', path)
        if not equals or (len(parts) == 1 and not _RANGE.fullmatch(parts[0])):
            fixed.append(setting)
        elif path in swept:
            raise InputError("is swept twice; give all its values at once", path)
        else:
            swept[path] = [value for part in parts for value in _values(part, path)]
    for path in (setting.partition("=")[0].strip() for setting in fixed):
        if path in swept:
            raise InputError("is swept, and set to one value too; leave one of them out", path)
    return fixed, swept


def _apart(text: str) -> list[str]:
    """Return the parts between commas that stand in no brackets and no quotes."""
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
    """Return one value in TOML, or those of a range a:b or a:b:step, both ends included."""
    match = _RANGE.fullmatch(part)
    if match is None:
        if not part:
            raise InputError("has an empty value; write values with commas between them", path)
        return [value_of(part, path)]
    first, last, step = (Decimal(text) for text in (match[1], match[2], match[3] or "1"))
    count, wrong = (last - first) / (step or 1), ""
    if step == 0:
        wrong = " with steps of zero; give another step"
    elif count < 0:
        wrong = ", which never comes to its end; give the step the other sign"
    elif count > _MOST:
        wrong = f" of {float(count):.2g} values; at most {_MOST:,} are possible"
    elif count != int(count):
        wrong = f", which ends at {first + int(count) * step} and not at {last}; let steps come to the end"
    if wrong:
        raise InputError(f'has the range "{part}"{wrong}', path)
    whole = all(re.fullmatch(r"[+-]?\d+", text) for text in match.groups() if text)
    return [(int if whole else float)(first + k * step) for k in range(int(count) + 1)]
