"""The public names: those of vlasov/__init__.pyi, in the groups of a reader who looks for one."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import vlasov


class Group(NamedTuple):
    """A heading, what it promises, and the modules whose names stand under it, as the stub writes them."""

    title: str
    says: str
    modules: tuple[str, ...]


GROUPS = (
    Group(
        "Problems",
        "What is solved: attention, initial measure, horizon, and what stands around the attention in a block.",
        (".problem", ".blocks", ".schedule", ".cases"),
    ),
    Group("Attentions", "The map from a measure of tokens to its velocity field.", (".attention",)),
    Group("Measures", "What is moved, and what a solution's state is again.", (".measures",)),
    Group(
        "Solving",
        "From a problem to an `xarray.Dataset`.",
        (".cases.solving", ".solvers", ".solvers.covariances", ".jit"),
    ),
    Group(
        "Reading solutions",
        "Densities in physical coordinates, clusters, energies, how far from a Gaussian.",
        (
            *(".postprocess.on_grid", ".postprocess.clusters", ".postprocess.energies"),
            *(".postprocess.gaussianity",),
        ),
    ),
    Group(
        "Comparing",
        "How far measures and solutions are apart.",
        (".postprocess.wasserstein", ".postprocess.compare"),
    ),
    Group(
        "Stability",
        "How much a small change of the tokens can grow: at one cloud, over a layer's data, along a flow.",
        (".lipschitz", ".postprocess.lipschitz", ".postprocess.sensitivity"),
    ),
    Group(
        "Studies",
        "Many runs: in the number of tokens, of layers, of cells, in a case's parameters.",
        (".postprocess.mean_field", ".postprocess.depth", ".postprocess.refinement", ".postprocess.sweep"),
    ),
    Group(
        "Showing and citing",
        "A page for others to read, and what to cite.",
        (".postprocess.report", ".postprocess.citing"),
    ),
    Group("Errors and warnings", "What can go wrong, in one sentence each.", (".errors",)),
    Group("Modules", "Rooms of the house that are public as a whole.", (".",)),
)


def stubbed() -> dict[str, str]:
    """The module from which each public name comes, as the stub writes it."""
    stub = Path(vlasov.__file__).with_name("__init__.pyi")
    return {
        name.asname or name.name: "." * line.level + (line.module or "")
        for line in ast.walk(ast.parse(stub.read_text(encoding="utf-8")))
        if isinstance(line, ast.ImportFrom)
        for name in line.names
    }


def grouped() -> dict[Group, list[str]]:
    """The names of each group, in the stub's order; raises where a name has none."""
    names = stubbed()
    found = {group: [name for name, module in names.items() if module in group.modules] for group in GROUPS}
    if lost := sorted(set(names) - {name for listed in found.values() for name in listed}):
        raise LookupError(f"{', '.join(lost)}: name the module in a group of docs/_ext/reference/public.py")
    return {group: listed for group, listed in found.items() if listed}
