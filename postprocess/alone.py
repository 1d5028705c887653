"""Which Datasets have one picture of their own, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr
from matplotlib.figure import Figure

from vlasov.postprocess.depth import figure as of_layers
from vlasov.postprocess.drawing import energies
from vlasov.postprocess.lipschitz import figure as of_roughness
from vlasov.postprocess.mean_field import figure as of_tokens
from vlasov.postprocess.sensitivity import figure as of_changes
from vlasov.postprocess.sweep import figure as of_sweeps
from vlasov.solvers.dataset import DEPTH, ENERGIES, LIPSCHITZ, SENSITIVITY, STUDY, SWEEP


def drawn_alone() -> dict[str, Callable[[xr.Dataset], Figure]]:
    """By kind."""
    return {
        STUDY: of_tokens.draw,
        DEPTH: of_layers.draw,
        LIPSCHITZ: of_roughness.draw,
        ENERGIES: energies.draw,
        SWEEP: of_sweeps.draw,
        SENSITIVITY: of_changes.draw,
    }
