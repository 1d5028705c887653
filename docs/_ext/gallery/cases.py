"""The page of a case: picture, what it shows, its equation, its facts as measured, commands, neighbours, its file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from gallery.equations import problem as equation
from gallery.prose import sentences
from gallery.solved import OTHER, Shown, Solved, settings_of, solved, solver_for
from gallery.words import escaped, fenced, listed, quoted
from vlasov.cases import Case, case_names, load_case
from vlasov.cases.catalogue import case_path
from vlasov.cases.equations import around, seen
from vlasov.cases.subjects import SUBJECTS, subject
from vlasov.solvers.accuracy import doubt

__all__ = ["index", "make", "page", "settings_of", "solver_for"]

_NEIGHBOURS = 8
#: Pages of the theory, by what a case is about; those that are there are linked.
_THEORY = {
    "gaussian": "gaussians",
    "mixture": "mean-field",
    "particles": "clusters",
    "blow-up": "existence",
    "masked": "masks",
    "layer_norm": "blocks",
    "mlp": "blocks",
    **dict.fromkeys(("l2", "sinkhorn", "linear", "relu", "sigmoid", "exponential", "multi-head"), "variants"),
}


def make(name: str, folder: Path) -> None:
    """Write NAME.png and NAME.md."""
    found = solved(name, folder / f"{name}.png")
    (folder / f"{name}.md").write_text(page(found, folder.parent.parent), encoding="utf-8")


def page(found: Solved, docs: Path) -> str:
    """The whole page."""
    case, run = found.case, found.run
    parts = [
        f"(case-{case.name})=",
        f"# {escaped(case.title)}",
        sentences(case.description),
        f"```{{image}} {case.name}.png\n:alt: {quoted(case.title)}\n:align: center\n```",
        _how(found),
        "## The problem",
        f"{escaped(_kind(case)).capitalize()} attention in $d = {case.problem.dimension}$, up to "
        f"$t = {case.problem.horizon:g}$.",
        equation(case.problem.to_dict(), case.problem.dimension),
        "## What is known, and what was measured",
        _facts(found.shown, run.attrs["solver"]),
        "## Run it",
        fenced("\n".join(commands(case, run.attrs["solver"], found.settings)), "bash"),
        "and in Python:",
        fenced(_python(case, run.attrs["solver"]), "python"),
        "## Beside it",
        _neighbours(case),
        _theory(case, run.attrs["status"], docs),
        f"Source: {escaped(case.paper)}.",
        _file(case),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _kind(case: Case) -> str:
    return seen(case.problem.attention) + around(case.problem)


def _how(found: Solved) -> str:
    """Status, time and doubt."""
    attrs = found.run.attrs
    end = "It came to its horizon"
    if attrs["status"] == "blow-up":
        end = f"It blew up at $t = {attrs['blow_up_time']:.7g}$"
    words = [
        f"Solved by `{attrs['solver']}` when this page was made. {end}, after {attrs['steps']} steps, in "
        f"{_rounded(found.seconds)} s of one processor."
    ]
    if found.settings:
        words.append(f"For this page with `{' '.join(found.settings)}`, which is faster than the case's own.")
    elif attrs["solver"] != next(iter(found.case.solvers)):
        words.append(f"The case's first solver is `{next(iter(found.case.solvers))}`; this one has the better picture.")
    if found.case.name in OTHER:
        words.append("A density would take longer than a page of this manual may: see `--solver finite-volume`.")
    doubtful = doubt(found.run)
    return " ".join(words) + (f"\n\n:::{{warning}}\n{escaped(doubtful)}\n:::" if doubtful else "")


def _rounded(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 1 else f"{seconds:.1f}"


def _facts(shown: list[Shown], solver: str) -> str:
    """A table of what is known, held against the run as ``vlasov run`` does it."""
    rows = [("What is known", "Measured", "Allowed")]
    for fact, verdict, by in shown:
        measured = f"{listed(verdict.measured)}" + ("" if by == solver else f", by {by}")
        rows.append((sentences(fact.says), escaped(measured), escaped(_allowed(fact, verdict.error))))
    lines = ["\n".join(f"{'* -' if not k else '  -'} {cell}" for k, cell in enumerate(row)) for row in rows]
    table = "```{list-table}\n:header-rows: 1\n:widths: 50 30 20\n\n" + "\n".join(lines) + "\n```"
    return table + "\n\nA fact that did not hold would have failed the build of this manual."


def _allowed(fact: Any, error: float) -> str:
    if fact.equals is None:
        return f"at most {fact.at_most:g}" if fact.at_most is not None else f"at least {fact.at_least:g}"
    known = listed(fact.equals)
    return f"{known}, exactly" if not fact.tolerance else f"{known} ± {fact.tolerance:.0e}; off by {error:.1e}"


def commands(case: Case, solver: str, settings: tuple[str, ...] = ()) -> list[str]:
    """To run, draw and copy it."""
    name, changed = case.name, "".join(f" --set {one}" for one in settings)
    return [
        f"vlasov run {name} --solver {solver}{changed} -o {name}.nc",
        f"vlasov plot {name}.nc",
        f"vlasov copy {name} -o mine.toml",
    ]


def _python(case: Case, solver: str) -> str:
    return f'import vlasov as vl\n\nrun = vl.solve("{case.name}", "{solver}")'


@cache
def all_cases() -> dict[str, Case]:
    """Every named case."""
    return {name: load_case(name) for name in case_names()}


def _neighbours(case: Case) -> str:
    """Cases with the same attention, and those of the same dimension that begin alike."""
    others = [one for one in all_cases().values() if one.name != case.name]
    same = [one for one in others if _kind(one) == _kind(case)]
    near = [
        one
        for one in others
        if one not in same
        and one.problem.dimension == case.problem.dimension
        and one.problem.initial.kind == case.problem.initial.kind
    ]
    same.sort(key=lambda one: one.problem.initial.kind != case.problem.initial.kind)
    words = {
        f"The same attention ({_kind(case)})": same,
        f"Also from {case.problem.initial.kind} in d = {case.problem.dimension}": near,
    }
    return "\n".join(
        f"- {escaped(what)}: " + ", ".join(f"[{escaped(one.title)}]({one.name}.md)" for one in found[:_NEIGHBOURS])
        for what, found in words.items()
        if found
    )


def _theory(case: Case, status: str, docs: Path) -> str:
    about = {case.problem.initial.kind, case.problem.attention.kind, status}
    about |= {name for name in ("layer_norm", "mlp") if getattr(case.problem, name) is not None}
    pages = dict.fromkeys(page for key, page in _THEORY.items() if key in about)
    links = [f"[](../../theory/{page}.md)" for page in pages if (docs / "theory" / f"{page}.md").exists()]
    return f"The theory: {', '.join(links)}." if links else ""


def _file(case: Case) -> str:
    text = case_path(case.name).read_text(encoding="utf-8")
    return f":::{{dropdown}} The file, {case.name}.toml\n{fenced(text, 'toml')}\n:::"


def index(folder: Path) -> str:
    """Cards of all cases, in groups."""
    parts = [
        "# Cases",
        "Every named case, solved when this manual was built, and held against what is known about it. Each is a TOML "
        "file without code: `vlasov copy NAME` gives you yours.",
    ]
    for title, says in SUBJECTS.items():
        chosen = [case for case in all_cases().values() if subject(case) == title]
        cards = "\n".join(card(case.name, case.title, case.description) for case in chosen)
        parts += [f"## {title}", says, f"::::{{grid}} 1 2 2 2\n:gutter: 2\n\n{cards}\n::::"]
    return "\n\n".join([*parts, toctree(list(all_cases()))]) + "\n"


def card(name: str, title: str, description: str) -> str:
    """Thumbnail, title, one line."""
    return (
        f":::{{grid-item-card}} {escaped(title)}\n:link: {name}\n:link-type: doc\n:img-top: {name}-small.png\n"
        f":img-alt: {quoted(title)}\n:class-img-top: first-row\n\n{sentences(_line(description))}\n:::\n"
    )


def _line(description: str) -> str:
    """The first sentence, if it is not long."""
    words = " ".join(description.split())
    first = words.partition(". ")[0].removesuffix(".") + "."
    return first if len(first) <= 160 else first[:150].rpartition(" ")[0] + " …"


def toctree(names: list[str]) -> str:
    """Hidden: cards are what is seen."""
    return "```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```"
