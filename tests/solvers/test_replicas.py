"""Many clouds in one call: the order of the steps, the same bits however clouds are batched, adaptive runs."""

import numpy as np
import pytest

import vlasov as vl
from vlasov.flow import Flow
from vlasov.solvers.ode.dop853 import ORDER
from vlasov.solvers.replicas import TimeGrid, choose_steps, march, passive, systems

TURN = np.array([[0.7, 0.5], [-0.4, 0.4]])
SOFTMAX = vl.Softmax(A=TURN, V=[[0.7, -0.6], [0.8, 0.5]])
ATTENTIONS = {
    "softmax": SOFTMAX,
    "l2": vl.L2(TURN, np.eye(2), V=-np.eye(2)),
    "linear": vl.Linear(A=-0.5 * np.eye(2)),
    "multi-head": vl.MultiHead([SOFTMAX, vl.Softmax(A=np.eye(2), V=-np.eye(2))]),
    "piecewise": vl.Softmax(A=vl.Piecewise([TURN, -TURN], [0.0, 0.4, 1.0])),
}
BOX = vl.Box([-1.0, -0.5], [1.0, 0.5])


def clouds(b: int, n: int) -> np.ndarray:
    return np.stack([BOX.sample(n, "random", seed=seed).points for seed in range(b)])


def equal(n: int) -> np.ndarray:
    return np.full(n, 1 / n)


def grid(count: int) -> TimeGrid:
    return TimeGrid((0.0, 1.0), (0.0, 1.0), (count,))


def test_order_on_an_ode_with_a_closed_form():
    """x' = 2 x cos 2t, x = x_0 e^{sin 2t}."""

    def velocity(_, t, x, out):
        np.multiply(x, 2 * np.cos(2 * t), out=out)

    start = clouds(2, 5)
    errors = [np.abs(march(velocity, start, grid(k))[1] - start * np.exp(np.sin(2.0))).max() for k in (4, 8)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(ORDER, abs=0.15)
    assert errors[1] < 1e-10


@pytest.mark.parametrize("name", ATTENTIONS)
def test_fixed_steps_agree_with_an_adaptive_run(name):
    problem = vl.Problem(ATTENTIONS[name], vl.Particles(clouds(1, 40)[0]), 1.0)
    chosen = choose_steps(problem, problem.initial, (0.0, 0.3, 1.0), tolerance=1e-10)
    moved = march(systems(Flow(problem.attention, tolerance=1e-13), equal(40)), problem.initial.points[None], chosen)
    tight = vl.solve(problem, "particles", tolerance=1e-13, times=[0.0, 0.3, 1.0])
    assert np.abs(moved[:, 0] - tight["position"].values).max() < 1e-8


@pytest.mark.quick
@pytest.mark.parametrize("n", [16, 700])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_cloud_does_not_depend_on_its_batch(name, n):
    start, velocity = clouds(3, n), systems(Flow(ATTENTIONS[name], tolerance=1e-10), equal(n))
    together = march(velocity, start, grid(2))
    alone = [march(velocity, cloud[None], grid(2))[:, 0] for cloud in start]
    assert np.array_equal(together, np.stack(alone, axis=1))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_passive_tokens_follow_a_recorded_cloud(name):
    """Tokens that start where acting ones do stay with them, beside others and alone."""
    start, track = clouds(1, 30), []
    interacting = systems(Flow(ATTENTIONS[name], tolerance=1e-13), equal(30))

    def recorded(k, t, x, out):
        track.append(x[0].copy())
        interacting(k, t, x, out)

    moved = march(recorded, start, grid(3))
    follow = passive(Flow(ATTENTIONS[name], tolerance=1e-13), equal(30), np.stack(track))
    beside = np.concatenate([start[:, :7], clouds(2, 7)])
    followed = march(follow, beside, grid(3))
    assert np.allclose(followed[:, 0], moved[:, 0, :7], rtol=0, atol=1e-13)
    assert np.array_equal(followed[:, :1], march(follow, beside[:1], grid(3)))


def test_weights_count():
    """Two equal tokens at one place are one of twice the weight."""
    start = clouds(1, 10)
    double = np.concatenate([start, start[:, :5]], axis=1)
    weights = np.concatenate([np.full(5, 2.0), np.ones(5)]) / 15
    one = march(systems(Flow(SOFTMAX, tolerance=1e-13), weights), start, grid(4))[1, 0]
    other = march(systems(Flow(SOFTMAX, tolerance=1e-13), equal(15)), double, grid(4))[1, 0]
    assert np.allclose(one, other[:10], rtol=0, atol=1e-13)


def test_blow_up_is_an_error():
    with np.errstate(all="ignore"), pytest.raises(vl.SolverError, match="a cloud of 8 tokens is not finite at t = "):
        march(systems(Flow(vl.Linear(A=50 * np.eye(2)), tolerance=1e-10), equal(8)), 100 * clouds(2, 8), grid(30))
