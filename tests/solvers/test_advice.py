"""Where particles and "gaussian" are notably wrong they name the cause and a remedy, and the remedy works."""

import warnings

import numpy as np
import pytest

import vlasov as vl
from vlasov.errors import SlowRunWarning
from vlasov.solvers import advice
from vlasov.solvers.progress import silent
from vlasov.solvers.record import Record
from vlasov.solvers.references import selection

MIXTURE = vl.Mixture([vl.Gaussian([1.0, 0.0], 0.2 * np.eye(2)), vl.Gaussian([-1.0, 0.3], 0.1 * np.eye(2))])


def solved(initial, solver="particles", *, V=0.5, horizon=1.0, **options):
    problem = vl.Problem(vl.Softmax(A=[[0.3, 0.8], [-0.4, 0.2]], V=V * np.eye(2)), initial, horizon)
    return vl.solve(problem, solver, times=np.linspace(0.0, horizon, 3), warn_above=np.inf, **options)


def test_too_few_tokens_and_as_many_as_their_rate_says():
    few = solved(MIXTURE, n=30, tolerance=1e-6)
    assert "30 tokens (sobol) stand for the initial measure no better, off by 0." in few.attrs["advice"]
    needed = int(few.attrs["advice"].split("by their rate n=")[1].split(" ")[0].replace(",", ""))
    enough = solved(MIXTURE, n=needed, tolerance=1e-6)
    assert enough.attrs["error_estimate"] < 0.01 < few.attrs["error_estimate"]
    assert enough.attrs["advice"] == ""


def test_gaussians_have_an_exact_solver():
    gaussian = vl.Gaussian([0.3, 0.0], np.diag([1.0, 0.5]))
    assert 'the solver "gaussian" is exact here' in solved(gaussian, n=30, tolerance=1e-6).attrs["advice"]


def test_steps_that_an_unstable_mean_amplifies():
    tokens = vl.Particles(np.random.default_rng(0).normal(size=(10, 2)) + 1.0)
    run = solved(tokens, V=5.0, horizon=3.0, tolerance=5e-3)
    assert "errors of steps of tolerance 0.005 are amplified; by proportion tolerance=" in run.attrs["advice"]
    better = float(run.attrs["advice"].split("tolerance=")[1].split(" ")[0])
    assert solved(tokens, V=5.0, horizon=3.0, tolerance=better).attrs["error_estimate"] < 0.01


@pytest.mark.parametrize("most", [2, 7, 9])
def test_few_tokens_stand_for_all_in_thousands_of_dimensions(most):
    cloud = vl.Particles(np.arange(40.0).reshape(20, 2))
    some = selection(cloud, most)
    assert 2 <= len(some) <= most
    assert abs(some.weights.sum() - 1) < 1e-12
    assert (some.points == cloud.points[[0, -1]][:, None]).all(axis=2).any(), "one of the farthest"


@pytest.mark.parametrize("error", [1e200, 1e306])
def test_errors_whose_powers_are_no_numbers(error):
    record = Record(np.array([0.0, 1.0]), silent)
    record.reached.extend([0.0, 1.0])
    record.tell({"mean_error": np.array([0.0, error])})
    assert "no number of tokens that anyone would move will do" in advice.of_sampling(record, 100, "random", "")
    assert "no tolerance will do" in advice.of_steps(record, 1e-12, error)


def test_one_node_on_each_axis_is_no_quadrature():
    problem = vl.Problem(vl.Softmax(A=np.eye(16)), vl.Gaussian(np.zeros(16), np.eye(16)), 1.0)
    with pytest.raises(
        vl.InputError, match=r"^n: is 512, but \"quadrature\" in d = 16 begins with 2\^16 = 65,536 nodes"
    ):
        vl.solve(problem, "particles", n=512, sampling="quadrature")


def test_slow_steps_are_foretold():
    cloud = vl.Particles.equally_weighted(np.zeros((65_536, 16)))
    sentence = r"^65,536 tokens in d = 16 are 4e\+09 pairs: 4 s on one thread for each sum, of which a step needs 12;"
    with warnings.catch_warnings():
        warnings.simplefilter("error", SlowRunWarning)
        with pytest.raises(SlowRunWarning, match=sentence):
            vl.solve(vl.Problem(vl.Softmax(A=np.eye(16)), cloud, 1.0), "particles")


def test_first_tokens_under_a_mask_are_mended_by_no_number_of_tokens():
    """The first one sees itself alone, x' = x |x|^2 under linear attention; nodes at one place see their law."""
    text = vl.Sequence([vl.Box([-2.0, -0.5], [-1.0, 0.5]), vl.Box([1.0, -0.5], [2.0, 0.5])])
    problem = vl.Problem(vl.Masked(vl.Linear(A=np.eye(2))), text, 0.2)
    sampled, nodes = (
        vl.solve(problem, "particles", n=300, sampling=sampling, times=[0.0, 0.1], warn_above=np.inf)
        for sampling in ("sobol", "quadrature")
    )
    assert "the first of them see few others, and without normalisation they leave at any n" in sampled.attrs["advice"]
    assert 'sampling="quadrature" shows each place all of its law' in sampled.attrs["advice"]
    assert [run.attrs["status"] for run in (sampled, nodes)] == ["blow-up", "completed"]
