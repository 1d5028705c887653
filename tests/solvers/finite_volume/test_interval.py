"""A uniform interval, beside Gauss nodes that move: its moments, its ends, its jumps. No idea of a grid is spared here.

The density on the grid has jumps and a hull with markers, its domain is full and doubles, and the parameter jumps.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import vlasov as vl
from tests.solvers.finite_volume.common import run
from vlasov.cli.printing import print_run
from vlasov.postprocess.figures import plot
from vlasov.postprocess.report import trust
from vlasov.solvers.accuracy import doubt
from vlasov.solvers.finite_volume.density_error import density_note

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
JUMP, END = 0.8, 1.6
TIMES = np.linspace(0.0, END, 9)


def interval(strengths, v=0.9):
    """The tilt is strengths[0] up to the jump, then strengths[1]."""
    tilts = vl.Piecewise([[[strength]] for strength in strengths], [0.0, JUMP, 2.0])
    return vl.Problem(vl.Softmax(A=tilts, V=[[v]]), vl.Box([-1.0], [1.2]), END)


def tokens(strengths, times, followed, v=0.9):
    """Where Gauss nodes of [-1, 1.2], and further tokens without weight, are at the times: x' = v m(a x)."""
    x, count, rows = np.concatenate([0.1 + 1.1 * NODES, followed]), NODES.size, []
    for a, start, end in ((strengths[0], 0.0, JUMP), (strengths[1], JUMP, END)):

        def rhs(_, x, a=a):
            exponents = a * np.outer(x, x[:count])
            shares = WEIGHTS * np.exp(exponents - exponents.max(axis=1, keepdims=True))
            return v * shares @ x[:count] / shares.sum(axis=1)

        kept = [t for t in times if start < t <= end or t == start == 0.0]
        found = solve_ivp(rhs, (start, end), x, "DOP853", sorted({*kept, end}), rtol=1e-11, atol=1e-13).y.T
        rows += list(found[: len(kept)])
        x = found[-1]
    return np.array(rows)


@pytest.mark.parametrize("strengths", [(0.4, 2.5), (1.5, 2.5)])
def test_moments_and_ends_between_steps(strengths):
    x = tokens(strengths, TIMES, [-1.0, 1.2])
    found = run(interval(strengths), cells=96, extent=1.74, times=TIMES, warn_above=np.inf)
    assert found.attrs["doublings"] == 1
    mean = x[:, :-2] @ WEIGHTS / 2
    variance = (x[:, :-2] - mean[:, None]) ** 2 @ WEIGHTS / 2
    assert np.abs(found["mean"].values[:, 0] - mean).max() <= 1e-2 * np.sqrt(variance[-1])
    np.testing.assert_allclose(found["covariance"][:, 0, 0], variance, rtol=1e-2)
    np.testing.assert_allclose(found["radius"], np.abs(x[:, -2:]).max(axis=1), rtol=3e-3)
    off = np.abs(found["covariance"].values[:, 0, 0] - variance) / variance
    assert (off <= 1.1 * found["covariance_error"] + 1e-12).all()


def test_the_ends_move_as_exactly_as_steps_do():
    """In few long steps, whatever the outputs: markers take the stages that the density takes."""
    strengths = (1.0, 1.0)
    x = tokens(strengths, TIMES, [-1.0, 1.2], v=0.5)
    found = run(interval(strengths, v=0.5), cells=128, times=TIMES)
    assert found.attrs["steps"] < 12
    np.testing.assert_allclose(found["radius"], np.abs(x[:, -2:]).max(axis=1), rtol=1e-3)


@pytest.mark.quick
@pytest.mark.parametrize(("scheme", "least", "most"), [("upwind5", 0.01, 0.05), ("weno5", -0.05, 0.005)])
def test_a_run_says_that_it_does_not_know_its_density_at_jumps(scheme, least, most):
    """Beside the density between characteristics, which keep the mass between them: upwind5 overshoots."""
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Box([-1.0], [1.2]), END)
    between = np.linspace(-1.0, 1.2, 1001)
    end = tokens((1.0, 1.0), [END], between, v=1.0)[-1, NODES.size :]
    found = run(problem, cells=256, reconstruction=scheme, warn_above=np.inf)
    state = vl.measure(found)
    exact = np.diff(between) / np.diff(end) / 2.2
    excess = state.values.max() / state.matrix[0, 0] / exact.max() - 1
    assert least < excess < most
    assert "density_error" not in found
    note = found.attrs["density_note"]
    assert note.startswith("its density jumps")
    assert ("upwind5 may overshoot" in note) == (excess > 0.01)
    said = " ".join(text.get_text() for text in plot(found, kind="overview").texts)
    assert note in " ".join(said.split())
    assert note in trust.section(found)
    assert note not in doubt(found)


def test_a_run_prints_its_note(capsys):
    found = run(interval((0.4, 0.4)), cells=32, warn_above=np.inf)
    print_run(found, Path("run.nc"))
    assert f"  note: {found.attrs['density_note']}\n" in capsys.readouterr().out


@pytest.mark.quick
@pytest.mark.parametrize(
    ("measure", "jumps"),
    [
        (vl.Gaussian([0.0], [[0.5]]), False),
        (vl.Mixture([vl.Gaussian([0.0], [[0.01]]), vl.Box([1.0], [3.0])], [0.7, 0.3]), True),
        (vl.Mixture([vl.Gaussian([0.0], [[0.5]]), vl.Box([1.0], [3.0])], [1.0, 0.0]), False),
        (vl.Sequence([vl.Gaussian([0.0], [[0.5]]), vl.Gaussian([1.0], [[0.5]])]), False),
        (vl.Sequence([vl.Gaussian([0.0], [[0.5]]), vl.Box([1.0], [3.0])]), True),
        (vl.Particles([[0.0], [1.0]]), False),
    ],
)
def test_which_densities_jump(measure, jumps):
    assert bool(density_note(measure, "upwind5")) == jumps


@pytest.mark.parametrize("second", [vl.Gaussian([1.0], [[0.5]]), vl.Box([1.0], [3.0])])
def test_texts_and_smooth_runs_have_a_note_where_laws_jump(second):
    text = vl.Sequence([vl.Gaussian([0.0], [[0.5]]), second])
    problem = vl.Problem(vl.Masked(vl.Softmax(A=[[0.3]])), text, 0.1)
    found = run(problem, cells=24, slices=2, warn_above=np.inf)
    assert bool(found.attrs["density_note"]) == isinstance(second, vl.Box)


def test_where_the_density_is_smooth_the_note_is_empty():
    found = run(vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian([0.0], [[0.5]]), 0.5), cells=64)
    assert found.attrs["density_note"] == ""
    assert "density_error" in found
