"""A parameter of LayerNorm or MLP that goes wrong during a run is named with the part of the problem it belongs to."""

import numpy as np
import pytest

import vlasov as vl


@pytest.mark.quick
@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"mlp": vl.MLP(lambda t: np.eye(2) if t < 0.2 else np.eye(3))}, r"^mlp\.W\(.*has shape \(3, 3\)"),
        ({"mlp": vl.MLP(np.eye(2), b=lambda t: [1.0, 1.0 if t < 0.2 else np.nan])}, r"^mlp\.b\("),
        ({"layer_norm": vl.LayerNorm(lambda t: [1.0, 1.0 if t < 0.2 else np.inf])}, r"^layer_norm\.beta\("),
    ],
)
@pytest.mark.parametrize("solver", ["particles", "layers"])
def test_the_part_is_named(part, sentence, solver):
    tokens = vl.Particles(np.random.default_rng(0).normal(size=(4, 2)))
    problem = vl.Problem(vl.Softmax(A=np.eye(2)), tokens, 1.0, **part)
    with pytest.raises(vl.InputError, match=sentence):
        vl.solve(problem, solver)


@pytest.mark.quick
def test_a_beta_whose_square_is_no_number():
    for beta in (1e-300, 1e200):
        with pytest.raises(vl.InputError, match="whose square is no number; choose other units"):
            vl.LayerNorm([beta, 1.0])
    tokens = vl.Particles([[1.0, 0.5]])
    tiny = vl.LayerNorm([1e-300, 1.0], placement="pre")  # where nothing is squared
    vl.solve(vl.Problem(vl.Softmax(A=np.eye(2)), tokens, 0.1, layer_norm=tiny), "particles")
