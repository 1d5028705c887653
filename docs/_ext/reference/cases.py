"""Every section and key of a case file, from the code that reads it."""

from __future__ import annotations

import dataclasses
from typing import Any

import vlasov.cases.load as reader
import vlasov.codec as codec
from reference.words import code, described, first_sentence, plain, table, value
from vlasov.attention import Attention
from vlasov.blocks import MLP, LayerNorm
from vlasov.cases.facts import QUANTITIES, Fact
from vlasov.measures import Measure
from vlasov.schedule import Piecewise
from vlasov.solvers import SOLVERS
from vlasov.solvers.driver import resolve

_KEYS = {
    "title": "What the case is called, in pictures too.",
    "description": "What it shows, in a paragraph.",
    "paper": "Where that comes from.",
    "horizon": "The final time, positive.",
    "times": "Output times; 101 equidistant ones from 0 to the horizon if left out.",
    "attention": "The table of the attention; its `kind` says which.",
    "initial": "The table of the initial measure; its `kind` says which.",
    "layer_norm": "LayerNorm around the attention, if there is one.",
    "mlp": "The MLP after the attention, if there is one.",
    "solvers": "One table for each solver that can do the case, with its options; the first is the recommended one.",
    "facts": "What is known about the solution: `vlasov run` holds every run against it.",
    "facts_for": "Digest of the problem that the facts are stated for; `vlasov copy` writes it.",
}
_FACTS = {
    "says": "The fact, in a sentence.",
    "quantity": "What is measured: one of the quantities below.",
    "equals": "The value, a number or an array; this or one of the next two.",
    "at_most": "An upper bound.",
    "at_least": "A lower bound.",
    "tolerance": "Absolute error that is allowed; goes with `equals`.",
    "solvers": "Which solvers must show it; all of the case's if left out.",
    "time": "When: one of the output times; the last if left out.",
}
_QUANTITIES = {
    "blow_up_time": "Time of the blow-up.",
    "blew_up": "1 if the run ended by a blow-up, else 0.",
    "mean": "The mean, d numbers.",
    "covariance": "The covariance, d times d numbers.",
    "radius": "Largest distance from the origin in the support; NaN where that is not bounded.",
    "eigenvalues": "Eigenvalues of the covariance, increasing.",
    "position": "Positions of all tokens.",
    "clusters": "Number of groups of tokens, linked by steps of 5 % of the initial radius.",
}
_WORDS = {  # where the class itself has none
    "Q": "Queries, shape (k, d).",
    "K": "Keys, shape (k, d).",
    "A": "Their product A = K^T Q, shape (d, d), in place of both.",
    "V": "Values, shape (d, d); the identity if not given.",
}
_BETA = ["`beta`", "`1`", "Inverse temperature: multiplies A, in all heads."]


def pages() -> dict[str, str]:
    """By file name."""
    return {
        "case-keys.md": _keys(),
        "case-attentions.md": _kinds(Attention),
        "case-measures.md": _kinds(Measure),
        "case-block.md": _fields(LayerNorm, "`[layer_norm]`") + "\n\n" + _fields(MLP, "`[mlp]`"),
        "case-piecewise.md": _fields(Piecewise, '`kind = "piecewise"`'),
        "case-solvers.md": "\n\n".join(_options(name) for name in SOLVERS),
        "case-facts.md": _facts(),
    }


def explained(words: dict[str, str], names: Any) -> dict[str, str]:
    """The words for these names; raises where they are not words for exactly these."""
    if wrong := set(words) ^ set(names):
        raise LookupError(f"{', '.join(sorted(wrong))}: not explained, or gone; see docs/_ext/reference")
    return {name: words[name] for name in names}


def _keys() -> str:
    needed = {*reader._TEXTS, *reader._NEEDED, "solvers"}
    rows = [
        [code(name), "yes" if name in needed else "", says] for name, says in explained(_KEYS, reader._KEYS).items()
    ]
    return table(["key", "needed", "what it says"], rows)


def _kinds(family: type) -> str:
    found = [cls for cls in codec._KINDS.values() if issubclass(cls, family) and codec.kind_is_ours(cls.kind)]
    return "\n\n".join(_fields(cls, f'`kind = "{cls.kind}"`') for cls in sorted(found, key=lambda cls: cls.kind))


def _fields(cls: type, title: str) -> str:
    """A heading, what the class says of itself, and its fields; those without words are an error."""
    said, fields = _WORDS | described(cls), codec._arguments(cls)
    if lost := [f.name for f in fields if f.name not in said]:
        raise LookupError(f"{cls.__name__} says nothing of {', '.join(lost)} in its docstring")
    rows = [[code(f.name), _default(f), plain(said[f.name])] for f in fields]
    if issubclass(cls, Attention):
        rows.append(_BETA)
    link = f"In Python: {{py:class}}`vlasov.{cls.__name__}`."
    return f"### {title}\n\n{plain(first_sentence(cls))} {link}\n\n{table(['field', 'default', 'what it says'], rows)}"


def _default(f: dataclasses.Field[Any]) -> str:
    if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
        return "needed"
    if f.default_factory is not dataclasses.MISSING:
        return value(f.default_factory())
    return value(f.default)


def _options(solver: str) -> str:
    options = type(resolve(solver, {})[1])
    said = described(options)
    rows = [[code(f.name), _default(f), plain(said[f.name])] for f in dataclasses.fields(options)]
    return f"### `[solvers.{solver}]`\n\n{table(['option', 'default', 'what it says'], rows)}"


def _facts() -> str:
    words = explained(_FACTS, [f.name for f in dataclasses.fields(Fact)])
    fields = table(["key", "what it says"], [[code(name), says] for name, says in words.items()])
    rows = []
    for name, measure in QUANTITIES.items():
        says = _QUANTITIES.get(name) or plain(measure.__doc__ or "") or _title(name)
        rows.append([code(name), says])
    return f"{fields}\n\n### Quantities\n\n{table(['quantity', 'what is measured'], rows)}"


def _title(name: str) -> str:
    raise LookupError(f"the quantity {name} has no docstring and no words in docs/_ext/reference/cases.py")
