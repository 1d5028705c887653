"""How a run may end, what errors there are, and every sentence that a run may say, from ``vlasov.messages``."""

from __future__ import annotations

import inspect
import re
from typing import get_args

import vlasov.errors as errors
from reference.cases import explained
from reference.words import code, plain, table
from vlasov.messages import MESSAGES, STATUSES_OF_GAUSSIANS, STATUSES_OF_RUNS, STATUSES_OF_SWEEPS
from vlasov.postprocess import registry
from vlasov.postprocess.sweep import FAILED, NOT_RUN
from vlasov.solvers.covariances.batch import STATUS
from vlasov.solvers.record import Status

#: What readers may type: its quotes stay straight.
_TYPED = re.compile(r'(?:\w+=)?"[^"]+"|\w+=[^\s;,]+')
_PAGE = "../howto/when-a-run-stops.md"
_CODES = {
    "0": "All went well; a blow-up is well too.",
    "1": "A run failed, or stopped before its horizon, or shows that a fact of its case does not hold.",
    "2": "A mistake in what was given: one sentence says where and what to do.",
    "130": "Interrupted by Ctrl-C.",
    "141": "Nobody reads the output any more, as after `| head`.",
    "143": "Interrupted by SIGTERM, as batch systems and `timeout` send it.",
}


def pages() -> dict[str, str]:
    """By file name."""
    return {
        "statuses.md": _statuses(STATUSES_OF_RUNS, get_args(Status)),
        "statuses-of-gaussians.md": _statuses(STATUSES_OF_GAUSSIANS, [status for status in STATUS if status]),
        "statuses-of-sweeps.md": _statuses(STATUSES_OF_SWEEPS, [*get_args(Status), FAILED, NOT_RUN]),
        "exit-codes.md": table(["exit code", "what it means"], [[code(k), says] for k, says in _CODES.items()]),
        "errors.md": _errors(),
        "kinds.md": table(["kind", "who makes it"], _kinds()),
        "advice.md": table(["what to do", "sentence, with … for what is filled in"], _advice()),
    }


def _kinds() -> list[list[str]]:
    """Return a row for each kind of Dataset that is declared."""
    kinds = [kind for name in registry.names() if (kind := registry.kind_named(name)) is not None]
    return [[code(kind.name), plain(kind.made_by)] for kind in kinds]


def _statuses(words: dict[str, str], names: object) -> str:
    return table(["status", "what it means"], [[code(name), says] for name, says in explained(words, names).items()])


def _errors() -> str:
    found = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__]
    rows = []
    for cls in found:
        bases = ", ".join(code(base.__name__) for base in cls.__bases__)
        rows.append([code(cls.__name__), bases, plain((cls.__doc__ or "").split("\n\n")[0])])
    return table(["class", "derives from", "when"], rows)


def _advice() -> list[list[str]]:
    """Each template with dots for what is filled in, and where the manual says more."""
    return [
        [f"[more]({_PAGE}#{said.section})", plain(_TYPED.sub(r"``\g<0>``", _filled(said.template)))]
        for said in MESSAGES.values()
    ]


def _filled(template: str) -> str:
    return re.sub(r"(?:\{[^}]*\})+", "…", template).strip(" ;,")
