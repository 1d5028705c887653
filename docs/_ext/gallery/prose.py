"""Sentences of case files, in which formulas are plain text (``A = -q q^T``): these are set as code."""

from __future__ import annotations

import re

from gallery.words import escaped

_NAMES = (
    "Sigma|Gamma|lambda|theta|alpha|beta|delta|sigma|mu|int|sum|sqrt|gelu|tanh|sinh|cosh|tan|cos|sin|exp|log|tr|"
    "d[A-Zt-z]|dmu|da|kk|oo"
)
_LETTERS = re.compile(rf"{_NAMES}|[A-Z][a-z]?|[a-z]")
_ALONE = re.compile(rf"{_NAMES}|[A-Zb-z]")
_BEFORE = re.compile(r"(.*[-+*/=<>]|sin|cos|tan|log|exp)")  # an "a" after these is no article
_FORMULA = re.compile(r"[=^_{|*]|<-|->|\w\(|<\w")  # without one of these, letters and numbers may be words
_END = ",.:;"
_OPEN, _CLOSE = re.compile(r"[({\[]|<(?=\w)"), re.compile(r"[)}\]]|(?<=\w)>")


def sentences(text: str) -> str:
    """Text for Markdown on one line: formulas as code, and no sign with a meaning in the rest."""
    told: list[str] = []
    run: list[str] = []
    words = text.split()
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if _is_formula(word, run[-1] if run else "", after):
            run.append(word)
            if word[-1] in _END and _depth(" ".join(run)) <= 0:
                told, run = [*told, _said(run)], []
            continue
        told, run = [*told, *([_said(run)] if run else []), escaped(word)], []
    return " ".join([*told, *([_said(run)] if run else [])])


def _is_formula(word: str, before: str, after: str) -> bool:
    """Whether all of it may stand in a formula."""
    core = word.rstrip(_END)
    if core == "a":
        return bool(_BEFORE.fullmatch(before)) or after[:1] in ("=", "<", ">")
    if core.isalpha():
        return _ALONE.fullmatch(core) is not None
    letters = re.findall("[A-Za-z]+", core)
    return core.isascii() and bool(core) and all(_LETTERS.fullmatch(one) for one in letters)


def _depth(run: str) -> int:
    """How many brackets are open."""
    return len(_OPEN.findall(run)) - len(_CLOSE.findall(run))


def _said(words: list[str]) -> str:
    run = " ".join(words)
    if not (_FORMULA.search(run) and re.search(r"\w", run)) or "`" in run:
        return escaped(run)
    core = run.rstrip(_END)
    return f"`{core}`{escaped(run[len(core) :])}"
