"""Energies of runs: the identity holds, the picture shows them, and mistakes are one sentence."""

import json
import math

import numpy as np
import pytest
from matplotlib.figure import Figure

import vlasov as vl
from vlasov.balance import along
from vlasov.gaussian import bures_speed
from vlasov.postprocess import figures
from vlasov.postprocess.drawing import panels as picture
from vlasov.postprocess.panels import notes_of
from vlasov.solvers.dataset import save

A = np.array([[0.6, 0.3], [0.3, -0.4]])
KINDS = {"softmax": vl.Softmax(A=A, V=A), "sinkhorn": vl.Sinkhorn(A=A, V=A)}
TIMES = np.linspace(0.0, 0.6, 13)


def solved(kind, solver="particles", initial=None, times=TIMES, **options):
    points = 0.6 * np.random.default_rng(0).normal(size=(60, 2))
    problem = vl.Problem(KINDS[kind], initial or vl.Particles(points), float(times[-1]))
    return vl.solve(problem, solver, times=times, warn_above=math.inf, **options)


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_the_identity_holds_on_particles_to_1e8(kind):
    found = vl.energies(solved(kind, tolerance=1e-11))
    assert found.attrs["kind"] == "energies"
    assert float(found["quadrature_error"].max()) < 1e-8
    assert float(found["identity_error"].max()) < 1e-8
    assert (np.diff(found["energy"]) > 0).all()
    assert (found["energy_error"] < 1e-9).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_identity_shows_dynamics_that_are_wrong(kind):
    """Tokens that move as they should, but for 1e-3 of their velocity."""
    run = solved(kind, tolerance=1e-11)
    slow = run.assign_coords(time=run["time"] * (1 + 1e-3))
    assert 1e-6 < float(vl.energies(slow)["identity_error"].max()) < 1e-2


@pytest.mark.parametrize("nodes", ["Gauss", "Chebyshev"])
def test_the_identity_holds_between_few_times_where_they_are_chosen_well(nodes):
    inner = np.polynomial.legendre.leggauss(8)[0] if nodes == "Gauss" else np.cos(np.pi * np.arange(8, 0, -1) / 9)
    times = 0.5 * 0.6 * np.concatenate([[0.0], 1 + inner, [2.0]])
    found = vl.energies(solved("softmax", tolerance=1e-11, times=times))
    assert float(found["identity_error"][-1]) < 1e-8


def test_few_outputs_are_said_to_be_few():
    """The identity is off by the integral's error, and the estimate of that is larger."""
    found = vl.energies(solved("softmax", tolerance=1e-11, times=np.linspace(0, 0.6, 4)))
    assert 1e-7 < float(found["identity_error"][-1]) < float(found["quadrature_error"][-1]) < 0.1


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_gaussians_dissipate_by_closed_forms(kind):
    """And for Sinkhorn dF/dt is the square of the Bures speed, of central differences of the covariance."""
    h, initial = 1e-4, vl.Gaussian([0.3, -0.2], [[0.5, 0.1], [0.1, 0.4]])
    times = np.concatenate([TIMES, [0.6 + h, 0.6 + 2 * h]])
    run = solved(kind, "gaussian", initial, times, tolerance=1e-12)
    found = vl.energies(run)
    assert float(found["identity_error"].max()) < max(1e-8, float(found["quadrature_error"].max()))
    mean, covariance = run["mean"].values[-3:], run["covariance"].values[-3:]
    rates = (mean[2] - mean[0]) / (2 * h), (covariance[2] - covariance[0]) / (2 * h)
    speed = bures_speed(rates[0], covariance[1], rates[1])
    assert abs(float(found["speed"][-2]) / speed - 1) < 1e-6
    if kind == "sinkhorn":
        np.testing.assert_allclose(found["dissipation"], found["speed"] ** 2, rtol=1e-13)
        assert "log_energy" not in found
    else:
        assert (found["dissipation"] > 1.01 * found["speed"] ** 2).all(), "the metric is twisted by Z"
        np.testing.assert_allclose(np.log(found["energy"]), found["log_energy"], rtol=1e-13)


@pytest.mark.parametrize(("kind", "d"), [("softmax", 1), ("softmax", 2), ("sinkhorn", 1)])
def test_the_identity_holds_on_grids(kind, d):
    """In the plane on a grid for each of the two clouds; on the line on one for both."""
    a = A[:d, :d]
    attention = vl.Softmax(A=a, V=a) if kind == "softmax" else vl.Sinkhorn(A=a, V=a)
    clouds = [vl.Gaussian(np.array([c, c / 3])[:d], 0.08 * np.eye(d)) for c in (-0.7, 0.7)]
    problem, times = vl.Problem(attention, vl.Mixture(clouds), 0.3), np.linspace(0, 0.3, 7)
    run = vl.solve(problem, "finite-volume", times=times, cells=48 if d == 2 else 96, warn_above=math.inf)
    found = vl.energies(run)
    assert float(found["identity_error"].max()) < 1e-5
    nodes = vl.energies(vl.solve(problem, "particles", times=times, n=20**d, sampling="quadrature", tolerance=1e-10))
    np.testing.assert_allclose(found["energy"], nodes["energy"], rtol=1e-5)
    np.testing.assert_allclose(found["dissipation"], nodes["dissipation"], rtol=1e-4)


def test_energies_beyond_all_numbers_are_kept_as_logarithms():
    x = np.random.default_rng(1).uniform(-1, 1, (30, 2))
    a = 2e3 * np.eye(2)
    problem = vl.Problem(vl.Softmax(A=a, V=a), vl.Particles(x), 2e-4)
    found = vl.energies(vl.solve(problem, "particles", times=np.linspace(0, 2e-4, 21), tolerance=1e-11))
    assert np.isinf(found["energy"]).all()
    assert np.isfinite(found["log_energy"]).all()
    assert float(found["log_energy"][0]) > 709
    assert float((found["identity_error"] - found["quadrature_error"]).max() / found["log_energy"].max()) < 1e-8
    assert picture.draw(found).axes[0].get_ylabel() == r"$\mathrm{log}_{10}$ of the energy"


def test_a_gaussian_whose_energy_becomes_infinite():
    """Sigma = s_0 / (1 - 2 s_0 t) for A = 1: E is infinite from |A| Sigma = 1 on, half way to the blow-up."""
    problem = vl.Problem(vl.Softmax(A=1.0, V=1.0), vl.Gaussian(0.0, 0.5), 0.9)
    found = vl.energies(vl.solve(problem, "gaussian", times=[0.0, 0.4, 0.6, 0.9]))
    assert np.isinf(found["energy"].values).tolist() == [False, False, True, True]
    assert np.isnan(found["identity_error"].values).tolist() == [False, False, True, True]
    assert (found["speed"] > 0).all()
    assert "infinite from t = 0.6 on" in notes_of(found)[-1]
    picture.draw(found)


@pytest.mark.quick
def test_a_table_of_energies_is_a_file_and_a_picture(tmp_path):
    found = vl.energies(solved("softmax"))
    save(found, tmp_path / "energies.nc")
    again = vl.open_run(tmp_path / "energies.nc")
    assert again.identical(found)
    figure = picture.draw(again)
    energy, rate, off = figure.axes
    np.testing.assert_array_equal(energy.get_lines()[0].get_ydata(), found["energy"])
    np.testing.assert_array_equal(rate.get_lines()[0].get_ydata(), found["dissipation"])
    np.testing.assert_array_equal(rate.get_lines()[1].get_ydata(), found["speed"] ** 2)
    assert off.get_yscale() == "log"
    assert figures.save(figure, tmp_path / "energies.png").stat().st_size > 10_000
    assert isinstance(picture.draw(found.isel(time=[0])), Figure)


@pytest.mark.quick
def test_mistakes_are_named():
    run = solved("softmax", times=[0.0, 0.1])
    table = vl.energies(run)
    with pytest.raises(
        vl.InputError, match=r'^run: is a Dataset of kind "energies" where kind "run" is needed; give what vl'
    ):
        vl.energies(table)
    with pytest.raises(vl.InputError, match=r"^tolerance: is 2 but must be"):
        vl.energies(run, tolerance=2)
    with pytest.raises(vl.InputError, match=r"^run: has no output times left"):
        vl.energies(run.isel(time=[]))
    other = json.loads(run.attrs["problem"])
    other["attention"]["V"] = [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(vl.InputError, match=r"^problem\.attention\.V: is not A; energies need .* so give V = A$"):
        vl.energies(run.assign_attrs(problem=json.dumps(other)))


@pytest.mark.parametrize(("name", "part"), [("layer_norm", vl.LayerNorm()), ("mlp", vl.MLP(np.eye(2)))])
def test_what_else_moves_tokens_is_refused(name, part):
    problem = vl.Problem(KINDS["softmax"], vl.Particles(np.eye(2)), 1.0, **{name: part})
    with pytest.raises(vl.InputError, match=rf"^problem\.{name}: moves tokens, too, .*; leave it out$"):
        along(problem, [problem.initial], np.zeros(1))
