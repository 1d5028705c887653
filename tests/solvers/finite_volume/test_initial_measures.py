"""Every measure can be the initial one: its mass and mean are kept by the grid, and the run goes through."""

import numpy as np
import pytest

import vlasov as vl
from tests.references import error
from tests.solvers.finite_volume.common import run
from vlasov.solvers.finite_volume.options import FRAMES

CELLS = {1: 64, 2: 48, 3: 24}


def attention(d):
    return vl.Softmax(A=-0.5 * np.eye(d) + 0.2 * np.eye(d, k=1), V=0.7 * np.eye(d) - 0.3 * np.eye(d, k=-1))


def measures(d):
    one, rng = np.ones(d), np.random.default_rng(d)
    edges = [np.linspace(-1.0, 1.5, 6)] * d
    values = rng.uniform(0.1, 1.0, (5,) * d)
    return {
        "gaussian": vl.Gaussian(0.1 * one, 0.4 * np.eye(d)),
        "mixture": vl.Mixture([vl.Gaussian(0.5 * one, 0.2 * np.eye(d)), vl.Box(-one, 0.3 * one)], [0.3, 0.7]),
        "box": vl.Box(-one, 0.5 * one),
        "ball": vl.Ball(1.0, 0.1 * one),
        "ring": vl.Ring(0.5, 1.0, 0.1 * one),
        "particles": vl.Particles(rng.normal(size=(200, d)), rng.uniform(0.5, 1.0, 200)),
        "density": vl.Density(values / (values.sum() * 0.5**d), edges),
    }


@pytest.mark.parametrize("name", measures(1))
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_mass_and_mean(d, frame, name):
    initial = measures(d)[name]
    result = run(vl.Problem(attention(d), initial, 0.2), cells=CELLS[d], frame=frame, times=[0.0, 0.2])
    mass, mean = result["mass"].values, result["mean"].values
    assert abs(mass[0] - 1.0) <= 1e-13
    assert abs(mass[1] + result.attrs["outflow"] - 1.0) <= 1e-13
    assert np.abs(mean[0] - initial.mean).max() <= 1e-12
    # Of a few rough averages the solver takes the steps, whose variance is larger by h^2/6 than a smooth density's.
    steps = 0.25 / 6 * np.eye(d) if name == "density" else 0.0
    assert error(result["covariance"].values[0], initial.covariance + steps) <= 1e-12
    assert result.attrs["status"] == "completed"
    state = vl.measure(result, 0)
    assert isinstance(state, vl.Density)
    # Cells that a jump cuts know the mean up to h^2/4.
    width = max(np.diff(axis)[0] for axis in state.edges) * np.linalg.norm(state.matrix, 2)
    assert np.abs(state.mean - mean[0]).max() <= width**2 / 4


def test_a_run_goes_on_from_what_another_left():
    start = vl.Gaussian([0.1, 0.2], [[0.3, 0.1], [0.1, 0.2]])
    whole = run(vl.Problem(attention(2), start, 0.4), cells=64)
    errors = []
    for cells in (64, 128):
        half = vl.measure(run(vl.Problem(attention(2), start, 0.2), cells=cells))
        rest = run(vl.Problem(attention(2), half, 0.2), cells=cells)
        errors.append(error(rest["covariance"].values[-1], whole["covariance"].values[-1]))
    assert errors[0] <= 1e-7  # the density is put on another grid, with order 5 or more
    assert errors[1] <= 1e-11
    for frame in ("fixed", "rescaled"):
        with pytest.raises(vl.InputError, match=r"^initial: a density in a sheared frame .* use frame=\"moving\""):
            run(vl.Problem(attention(2), half, 0.2), cells=64, frame=frame)


def test_a_density_of_another_mass_is_divided_by_it_with_a_warning():
    """Pixels are the problem of a density with mass 1; files hold that problem, and say no more."""
    pixels, edges = np.array([[10, 20], [30, 240]], dtype=np.uint8), [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]
    sentence = "^initial has mass 300 and is divided by it, since a solution has mass 1; give values divided by 300 if"
    with pytest.warns(UserWarning, match=sentence) as caught:
        problem = vl.Problem(attention(2), vl.Density(pixels, edges), 0.1)
    assert caught[0].filename == __file__
    normalised = vl.Problem(attention(2), vl.Density(pixels / 300, edges), 0.1)  # of which nothing is said
    assert problem == normalised
    assert vl.Problem.from_json(problem.to_json()) == problem  # and nothing of a problem in a file
    assert np.allclose(vl.solve(problem, "particles", times=[0.1])["mass"], 1.0, rtol=1e-13, atol=0.0)
    result = run(problem, cells=32, frame="fixed", times=[0.0])
    assert np.allclose(result["mass"], 1.0, rtol=1e-13, atol=0.0)
    lossy = vl.Density(0.995 * pixels / 300, edges)  # as finite volumes leave it
    assert vl.Problem(attention(2), lossy, 0.1).initial is lossy
