"""The output schema: variables from the code that writes them, attributes with words that runs are held against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference.words import code, plain, table
from vlasov.postprocess import registry
from vlasov.solvers.dataset import RUN, SCHEMA

if TYPE_CHECKING:
    import xarray as xr

#: What the attributes of a run say. ``unexplained`` holds runs of all solvers against it, in tests/docs.
ATTRIBUTES = {
    "Conventions": "`CF-1.11 vlasov-1`: the last word says that vlasov wrote it, and is the version of the schema.",
    "kind": 'What the Dataset is: "run", "study", ..., see [kinds](statuses.md#kinds-of-dataset).',
    "title": "The problem's name, or a few words that describe it.",
    "case": "Name of the case; empty for a problem of one's own.",
    "problem": "JSON that rebuilds the problem, exactly; empty where a parameter is a Python function.",
    "solver": "Which solver made it.",
    "origin": "What the run is made from: runs with the same are the same, and may replace each other's files.",
    "options": "JSON of all its options, with the values that it chose itself.",
    "status": "How the run ended, see [statuses](statuses.md).",
    "blow_up_time": "NaN if there was none.",
    "error_estimate": "Largest of the estimated errors over time.",
    "steps": "Number of steps in time, or of layers.",
    "method": "How velocities were evaluated.",
    "velocity_error_bound": "A bound on the error of every velocity, as far as sums are concerned.",
    "velocity_evaluations": "How many velocity fields were evaluated.",
    "wall_seconds": "Time that the run took.",
    "compile_seconds": "How much of it went into compiling.",
    "vlasov_version": "Version that wrote it.",
    "created": "When, in UTC.",
    "citation": "What to cite.",
    "saved": "Which variables were kept, in runs that keep some alone (`save=`, `--save`).",
    "advice": "What limited the accuracy, and what to do; empty if nothing did.",
    "sampling_error": "How far the first cloud's moments are off, in the units of `mean_error` and `covariance_error`.",
    "blow_up_time_error": "How far off the time of the blow-up may be.",
    "outflow": "Share of the mass that left the grid.",
    "doublings": "How often the domain was doubled.",
    "density_note": "Why there is no `density_error`, where the initial density jumps; empty where it does not.",
    "limited_cells": "Share of cells and steps in which the limiter acted, which keeps densities non-negative.",
    "refinements": "How often the run was repeated with twice as many cells.",
    "layer_step": "The step h of a layer: x + h Gamma.",
    "parameters_sampled": "At which time of its step a layer takes parameters.",
    "sinkhorn_iterations": "How many iterations Sinkhorn's potentials took, over the whole run.",
    "sinkhorn_error": "Largest error of the marginals that was left.",
}


def pages() -> dict[str, str]:
    """By file name."""
    coordinates = {"time": (("time",), "time"), "component": (("component",), "names of the components: x_1, ..., x_d")}
    known = coordinates | {name: (variable.dims, variable.long_name) for name, variable in SCHEMA.items()}
    rows = [[code(name), code(", ".join(dims)), plain(text)] for name, (dims, text) in known.items()]
    told = [[code(name), says] for name, says in ATTRIBUTES.items()]
    return {
        "schema-variables.md": table(["variable", "dimensions", "what it is"], rows),
        "schema-attributes.md": table(["attribute", "what it says"], told),
        "schema-kinds.md": "\n\n".join(map(_section, registry.names())),
    }


def _section(name: str) -> str:
    """Return who makes a kind of Dataset and what its variables are; "" for runs, which have a table of their own."""
    kind = registry.kind_named(name)
    if kind is None or kind.name == RUN.name:
        return ""
    rows = [[code(variable), plain(text)] for variable, text in kind.variables.items()]
    made_by = plain(f"{kind.made_by[0].upper()}{kind.made_by[1:]}.")
    return "\n\n".join([f"### {kind.name}", made_by, *([table(["variable", "what it is"], rows)] if rows else [])])


def unexplained(run: xr.Dataset) -> set[str]:
    """Variables and attributes of a run that the page does not explain."""
    known = {"time", "component", "component_b", *SCHEMA}
    return {str(name) for name in run.variables if name not in known} | (set(map(str, run.attrs)) - set(ATTRIBUTES))
