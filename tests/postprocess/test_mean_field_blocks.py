"""Mean-field studies of blocks: tokens on an ellipsoid approach their limit as others do."""

import numpy as np
import pytest

import vlasov as vl

A = [[0.6, 0.3], [-0.2, 0.5]]
GAUSSIAN = vl.Gaussian([1.0, 0.3], [[0.3, 0.05], [0.05, 0.2]])


@pytest.mark.parametrize(
    "around",
    [{"layer_norm": vl.LayerNorm([1.0, 0.8])}, {"mlp": vl.MLP([[0.5, -0.2], [0.1, 0.4]])}],
)
def test_coupled_errors_of_blocks_fall_like_the_root_of_n(around):
    problem = vl.Problem(vl.Softmax(A=A), GAUSSIAN, 0.5, **around)
    study = vl.mean_field_study(problem, n=[16, 64, 256], replicas=24, p=2, exact_up_to=1)
    slope = study["slope"].sel(quantity="coupled", p=2).isel(time=-1, sampling=0)
    low, high = (float(study[end].sel(quantity="coupled", p=2).isel(time=-1, sampling=0)) for end in ("low", "high"))
    assert low - 0.1 <= -0.5 <= high + 0.1, slope
    assert float(study["reference_error"].max()) < 1e-6
    begin = study["mean_error"].isel(time=0, sampling=0)  # beside the law that tokens are drawn from: LN#mu
    assert float((begin**2).mean("replica").isel(n=-1)) < 0.2 * float((begin**2).mean("replica").isel(n=0))


def test_an_ellipsoid_that_moves_is_refused():
    beta = vl.Piecewise([np.ones(2), 2 * np.ones(2)], [0.0, 0.3, 1.0])
    problem = vl.Problem(vl.Softmax(A=A), GAUSSIAN, 0.5, layer_norm=vl.LayerNorm(beta))
    with pytest.raises(vl.InputError, match="depends on time, which studies do not follow"):
        vl.mean_field_study(problem, n=[16, 64])
