"""What a kind of Dataset is: its name, who makes it, what it holds, and how it is shown.

A Dataset says its kind in the attribute ``kind``. Each kind is declared once, in the module that makes it; pictures,
reports, tables, JSON, citations and the manual's page of the schema read the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr


#: Coordinates that Datasets of several kinds have.
COORDINATES = {
    "data": "law of the tokens",
    "depth": "number of layers",
    "n": "number of tokens",
    "order": "order of the moments",
    "p": "order of the distance",
    "pair": "two solutions",
    "quantity": "what was measured",
    "reference_quantity": "what was measured of the limit",
    "replica": "number of the replica",
    "sampling": "how tokens are drawn",
    "solution": "solution",
    "time": "time",
}


def _nothing(_: xr.Dataset) -> Sequence[Any]:
    return ()


STEPS = ("hairer1993", "DOP853, the Runge-Kutta method of order 8 that steps in time")
SCIPY = ("virtanen2020", "SciPy, with the coefficients of DOP853")
NUMBA = ("lam2015", "Numba, which compiles the sums")
GAUSSIANS = ("castin2025", "Gaussians stay Gaussian: the equations of mean and covariance")
TRANSPORT = ("flamary2021", "POT, for exact optimal transport")
SMOOTHNESS = ("castin2024", "the Lipschitz constant of attention, its bounds and the worst tokens")
SINGULAR_VALUE = (
    ("golub1965", "the largest singular value by bidiagonalisation"),
    ("baglama2005", "restarts of the bidiagonalisation"),
)


@dataclass(frozen=True)
class Kind:
    """A kind of Dataset.

    Attributes
    ----------
    name
        The attribute ``kind`` of the Dataset, such as "depth study".
    made_by
        Who makes it, such as 'what vl.depth_study returned or "vlasov depth" wrote'.
    title
        The heading of its section in a report.
    variables
        Long names of its variables, by name; ``vlasov.solvers.dataset.SCHEMA`` has those of runs.
    panels
        From a Dataset to the ``Panel`` and ``Image`` objects that show it (``vlasov.postprocess.panels``).
    tables
        From a Dataset to its ``Table`` objects, the most important first.
    notes
        From a Dataset to the sentences below its table.
    cites
        Keys of references.bib, each with the reason for which it is cited.
    """

    name: str
    made_by: str
    title: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    panels: Callable[[xr.Dataset], Sequence[Any]] | None = None
    tables: Callable[[xr.Dataset], Sequence[Any]] | None = None
    notes: Callable[[xr.Dataset], Sequence[str]] = _nothing
    cites: Sequence[tuple[str, str]] = ()

    def name_variables(self, dataset: xr.Dataset) -> xr.Dataset:
        """Return the Dataset itself, with long names where there are none, and "1" as the units of all numbers.

        Nothing has units here: attention has no scale of its own.
        """
        texts = {**COORDINATES, **self.variables}
        for name, variable in dataset.variables.items():
            if text := texts.get(str(name)):
                variable.attrs.setdefault("long_name", text)
            if variable.dtype.kind in "fiu":
                variable.attrs.setdefault("units", "1")
        return dataset
