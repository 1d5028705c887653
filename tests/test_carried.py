"""The manual's table of what solver carries what attention is what the code says."""

from pathlib import Path

import numpy as np
import pytest

import vlasov as vl
from vlasov.solvers.driver import SOLVERS, prepare

ROOT = Path(__file__).parent.parent
A = np.eye(2)
ATTENTIONS = {
    "`Softmax`": vl.Softmax(A=A),
    "`L2`": vl.L2(A, A),
    "`Sinkhorn`": vl.Sinkhorn(A=A),
    "`Linear`": vl.Linear(A=A),
    "`MultiHead` of these": vl.MultiHead([vl.Softmax(A=A), vl.L2(A, A), vl.Sinkhorn(A=A), vl.Linear(A=A)]),
    "`Sigmoid`": vl.Sigmoid(A=A),
    "`Exponential`": vl.Exponential(A=A),
    "`ReLU`": vl.ReLU(A=A),
    "`MultiHead` with one of these three": vl.MultiHead([vl.Softmax(A=A), vl.Sigmoid(A=A), vl.ReLU(A=A)]),
    "`Masked`, one law: as what is masked, here `Softmax`": vl.Masked(vl.Softmax(A=A)),
    "`Masked`, a `Sequence`": vl.Masked(vl.Softmax(A=A)),
    "`Hardmax`": vl.Hardmax(A=A),
}
BLOCKS = {
    'with `MLP(..., activation="identity")`': {"mlp": vl.MLP(A, activation="identity")},
    "with another `MLP`": {"mlp": vl.MLP(A)},
    'with `LayerNorm(placement="pre")`': {"layer_norm": vl.LayerNorm(placement="pre")},
    "with `LayerNorm()`, post-norm": {"layer_norm": vl.LayerNorm()},
}


def carried(name, solver):
    """Whether the solver takes this attention or block, from a Gaussian or a sequence of two."""
    gaussian, attention = vl.Gaussian([0.0, 0.0], A), ATTENTIONS.get(name, vl.Softmax(A=A))
    if "Exponential" in name and solver == "finite-volume":
        with pytest.raises(vl.InputError, match="initial: reaches to infinity"):
            prepare(vl.Problem(attention, gaussian, 1.0), solver)
        gaussian = vl.Box([0.0, 0.0], [1.0, 1.0])
    initial = vl.Sequence([gaussian, gaussian]) if "Sequence" in name else gaussian
    try:
        prepare(vl.Problem(attention, initial, 1.0, **BLOCKS.get(name, {})), solver)
    except vl.InputError:
        return "-"
    return "yes"


def test_manual_says_what_solvers_carry():
    names = [*ATTENTIONS, *BLOCKS]
    rows = [f"| {name} | {' | '.join(carried(name, solver) for solver in SOLVERS)} |" for name in names]
    lines = (ROOT / "docs/howto/choose-a-solver.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.endswith(("| yes |", "| - |"))] == rows
