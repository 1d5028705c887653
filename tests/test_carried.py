"""README's table of what solver carries what attention is what the code says."""

from pathlib import Path

import numpy as np
import pytest

import vlasov as vl
from vlasov.solvers.driver import prepare

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
}


def carried(name, solver):
    """Whether the solver takes this attention, from a Gaussian or a sequence of two."""
    gaussian = vl.Gaussian([0.0, 0.0], A)
    if "Exponential" in name and solver == "finite-volume":
        with pytest.raises(vl.InputError, match="initial: reaches to infinity"):
            prepare(vl.Problem(ATTENTIONS[name], gaussian, 1.0), solver)
        gaussian = vl.Box([0.0, 0.0], [1.0, 1.0])
    initial = vl.Sequence([gaussian, gaussian]) if "Sequence" in name else gaussian
    try:
        prepare(vl.Problem(ATTENTIONS[name], initial, 1.0), solver)
    except vl.InputError:
        return "-"
    return "yes"


def test_readme_says_what_solvers_carry():
    solvers = ("gaussian", "particles", "finite-volume")
    rows = [f"| {name} | {' | '.join(carried(name, solver) for solver in solvers)} |" for name in ATTENTIONS]
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("| `")] == rows
