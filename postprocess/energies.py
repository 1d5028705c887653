"""Energies of a solution over time: attentions with V = A = A^T move measures up an energy.

    softmax     E(mu) = int int e^{<A x, y>} dmu dmu / 2       dE/dt = int Z_mu(A x) |Gamma|^2 dmu
    Sinkhorn    F(mu) = (int f dmu + int g dmu) / 2            dF/dt = int |Gamma|^2 dmu

``vlasov.gradient_flow`` knows them of a measure, ``vlasov.balance`` holds what is gained against what is dissipated.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.attention import Sinkhorn
from vlasov.balance import along, check
from vlasov.checks import Array
from vlasov.errors import InputError, interrupted
from vlasov.kinds import Kind
from vlasov.postprocess.panels import Curve, Panel, Table
from vlasov.solvers import measure, problem_of
from vlasov.solvers.accuracy import doubt
from vlasov.solvers.dataset import RUN, provenance, require

_METRIC = {"softmax": "Wasserstein, twisted by Z", "sinkhorn": "Wasserstein"}
_NAMES = {
    "energy": "energy",
    "dissipation": "rate at which the energy grows",
    "speed": "Wasserstein speed of the measure",
    "log_energy": "logarithm of the energy",
    "log_dissipation": "logarithm of the rate at which the energy grows",
    "energy_error": "bound on the error of sums in the energy, of softmax in its logarithm",
    "identity_error": "distance of what is gained from the integral of what is dissipated, of softmax in logarithms",
    "quadrature_error": "estimated error of that integral",
}

_ERRORS = {"identity_error": ("gained - dissipated", "-"), "quadrature_error": ("integral over time", "--"),
           "energy_error": ("sums over the measure", ":")}  # fmt: skip
_COLUMNS = {"time": "t", "energy": "energy", "log_energy": "log energy", "dissipation": "dissipation", "speed": "speed",
            "identity_error": "gained - dissipated"}  # fmt: skip


def _panels(dataset: xr.Dataset) -> list[Panel]:
    times, softmax = dataset["time"].values, "log_energy" in dataset
    letter = "E" if softmax else "F"
    rate = "∫ Z|Γ|² dμ" if softmax else "∫ |Γ|² dμ = speed²"
    growth, y = _values(dataset, "dissipation")
    rates = [Curve(rate, times, growth)]
    if softmax and not y:
        rates.append(Curve("∫ |Γ|² dμ = speed²", times, np.square(dataset["speed"].values), dash="--"))
    errors = [
        Curve(label, times, np.where(dataset[name] > 0, dataset[name], np.nan), dash=dash)
        for name, (label, dash) in _ERRORS.items()
    ]
    energy, unit = _values(dataset, "energy")
    return [
        Panel(f"Energy {letter}", "t", [Curve("", times, energy)], unit),
        Panel(f"Dissipation d{letter}/dt", "t", rates, y),
        Panel("Error of the identity", "t", errors, logy=True,
              note="The identity holds where its error is not above that of the integral."),
    ]  # fmt: skip


def _values(dataset: xr.Dataset, name: str) -> tuple[Array, str]:
    """Return a variable, or its decimal logarithm where it is beyond all numbers; with its label then."""
    values = dataset[name].values
    if np.isfinite(values).all() or f"log_{name}" not in dataset:
        return values, ""
    logs = dataset[f"log_{name}"].values
    return np.where(np.isfinite(logs), logs / np.log(10), np.nan), f"log_10 of the {name}"


def _tables(dataset: xr.Dataset) -> list[Table]:
    columns = {head: dataset[name].values for name, head in _COLUMNS.items() if name in dataset}
    title = ", ".join(str(dataset.attrs[name]) for name in ("title", "solver") if dataset.attrs.get(name))
    return [Table.of_columns(f"{title}: energies", columns)]


def _notes(dataset: xr.Dataset) -> list[str]:
    errors = [float(dataset[name].max()) for name in ("identity_error", "quadrature_error")]
    notes = [
        f"Gradient flow, metric {dataset.attrs.get('metric', 'unknown')}: gained = dissipated up to {errors[0]:.2g}; "
        f"outputs let the integral be off by {errors[1]:.2g}."
    ]
    if "log_energy" in dataset and (infinite := np.isinf(dataset["log_energy"].values)).any():
        notes.append(f"The energy is infinite from t = {float(dataset['time'][infinite.argmax()]):.4g} on.")
    return notes


ENERGIES = Kind(
    "energies",
    'what vl.energies returned or "vlasov observe" wrote',
    title="Energies",
    variables=_NAMES,
    panels=_panels,
    tables=_tables,
    notes=_notes,
    cites=(("sander2022", "attention as a gradient flow of an energy"),),
)


def energies(run: xr.Dataset, *, tolerance: float = 1e-10) -> xr.Dataset:
    """The energy of a solution with V = A = A^T at its output times, and how fast it grows.

        softmax     E(mu) = int int e^{<A x, y>} dmu dmu / 2       dE/dt = int Z_mu(A x) |Gamma|^2 dmu
        Sinkhorn    F(mu) = (int f dmu + int g dmu) / 2            dF/dt = int |Gamma|^2 dmu

    Parameters
    ----------
    run
        A solution by tokens, densities or Gaussians, with constant parameters.
    tolerance
        Of the sums, as in ``attention.velocity``.

    Returns
    -------
    xarray.Dataset
        energy, dissipation and speed, the Wasserstein speed, at each time; of softmax also log_energy and
        log_dissipation, which hold what energies beyond 1.8e308 do not (of a Gaussian with |Sigma^{1/2} A Sigma^{1/2}|
        >= 1 it is infinite indeed). energy_error: a bound on errors of sums, relative for softmax; of Sinkhorn with
        those of the marginals. identity_error: how far log E(t) - log E(0) is from int D / E, of Sinkhorn F(t) - F(0)
        from int D. The integral knows D at output times only, and quadrature_error estimates how far it may be off: the
        identity holds up to both, and where outputs are few it is quadrature_error that is large. NaN where energies
        are infinite. attributes: metric, of which this is a gradient flow, and doubt, why the run may not be right.

    Examples
    --------
    Tokens at -1 and 1 have the energy cosh(1) / 2 at first. It grows as they part:

    >>> attention = vl.Softmax(A=[[1.0]], V=[[1.0]])
    >>> problem = vl.Problem(attention, vl.Particles([-1.0, 1.0]), horizon=0.5)
    >>> found = vl.energies(vl.solve(problem, "particles", times=[0.0, 0.5]))
    >>> print((2 * found["energy"].values).round(4), np.cosh(1.0).round(4))
    [1.5431 5.8421] 1.5431
    """
    require(run, RUN, "run")
    tolerance = checks.number(tolerance, "tolerance", above=0.0, below=1.0)
    problem, times = problem_of(run), run["time"].values
    check(problem)
    if not times.size:
        raise InputError("has no output times left; keep some, as in run.isel(time=[1])", "run")
    try:
        states = [measure(run, k) for k in range(times.size)]
        found = along(problem, states, times, tolerance=tolerance)
    except (SystemError, RuntimeError) as error:
        if interrupted(error):
            raise KeyboardInterrupt from None
        raise
    values = {"energy": found.value, "dissipation": found.rate}
    if not isinstance(problem.attention, Sinkhorn):
        values = {"log_energy": found.value, "log_dissipation": found.log_dissipation}
        with np.errstate(over="ignore"):  # energies beyond the largest number are infinite; their logarithms are not
            values |= {name.removeprefix("log_"): np.exp(value) for name, value in values.items()}
    values |= {name: getattr(found, name) for name in ("speed", "identity_error", "quadrature_error")}
    values["energy_error"] = found.error
    variables = {name: ("time", values[name]) for name in _NAMES if name in values}
    attributes = provenance(problem, ENERGIES)
    attributes |= {name: str(run.attrs.get(name, "")) for name in ("case", "solver", "options", "status")}
    attributes |= {"title": str(run.attrs.get("title", problem.name)), "attention": problem.attention.kind}
    attributes |= {"metric": _METRIC[problem.attention.kind], "method": found.method, "doubt": doubt(run)}
    return ENERGIES.name_variables(xr.Dataset(variables, {"time": times}, attributes))
