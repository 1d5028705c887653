"""Runs of sigmoid, exponential and ReLU attention: blow-up times against closed forms, and a bound that holds."""

import numpy as np
import pytest
from scipy.integrate import quad

import vlasov as vl


def integral(slowness, start):
    """The time int dx / x' that a token takes from ``start`` to infinity."""
    return quad(slowness, start, np.inf, epsabs=1e-14, epsrel=1e-13)[0]


START = 1.2
ALONE = {  # x' of one token with V = A = 1, and the time of its blow-up
    "relu": (vl.ReLU(A=1.0), 1 / (2 * START**2)),
    "linear": (vl.Linear(A=1.0), 1 / (2 * START**2)),
    "exponential": (vl.Exponential(A=1.0), integral(lambda x: np.exp(-(x**2)) / x, START)),
}
PAIR = {  # two tokens at +-x: x' = x^3 / 2, x^3, and x sinh(x^2)
    "relu": (vl.ReLU(A=1.0), 1 / START**2),
    "linear": (vl.Linear(A=1.0), 1 / (2 * START**2)),
    "exponential": (vl.Exponential(A=1.0), integral(lambda x: 1 / (x * np.sinh(min(x**2, 700.0))), START)),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize(("problems", "points"), [(ALONE, [[START]]), (PAIR, [[START], [-START]])], ids=["one", "two"])
def test_tokens_blow_up_in_time(name, problems, points):
    attention, time = problems[name]
    run = vl.solve(vl.Problem(attention, vl.Particles(points), 2 * time), "particles", tolerance=1e-9)
    assert run.attrs["status"] == "blow-up"
    assert abs(run.attrs["blow_up_time"] - time) <= 1e-6 * time


def test_relu_blows_up_along_the_strongest_direction():
    """A token in the plane on an axis of A: x' = a x^3; the other axis, with a smaller one, does not matter."""
    attention = vl.ReLU(A=np.diag([2.0, 0.5]))
    run = vl.solve(vl.Problem(attention, vl.Particles([[START, 0.0]]), 1.0), "particles", tolerance=1e-9)
    assert abs(run.attrs["blow_up_time"] - 1 / (4 * START**2)) <= 1e-6


def test_a_token_ahead_of_its_blow_up_is_where_it_should_be():
    times = [0.0, 0.1, 0.2, 0.3]
    run = vl.solve(vl.Problem(vl.ReLU(A=1.0), vl.Particles([[START]]), 0.3), "particles", times=times, tolerance=1e-11)
    expected = START / np.sqrt(1 - 2 * START**2 * np.array(times))
    assert np.abs(run.position.values[:, 0, 0] / expected - 1).max() <= 1e-9
    # With V = -1 the same token comes to rest like 1 / sqrt(t).
    rest = vl.solve(vl.Problem(vl.ReLU(A=1.0, V=-1.0), vl.Particles([[START]]), 50.0), "particles", tolerance=1e-11)
    assert abs(rest["mean"].values[-1, 0] * np.sqrt(1 / START**2 + 100) - 1) <= 1e-8


A, V = np.array([[3.0, 1.0], [0.0, -2.0]]), np.array([[1.0, 0.5], [-0.5, 0.8]])


@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_sigmoid_stays_within_its_cone(bias):
    times, attention = [0.0, 1.0, 2.0], vl.Sigmoid(A=A, V=V, bias=bias)
    ball = vl.Ball(1.0, [0.2, 0.0])
    run = vl.solve(vl.Problem(attention, ball, 2.0), "particles", n=150, times=times, tolerance=1e-9)
    assert run.attrs["status"] == "completed"
    assert (run.radius.values <= 1.2 * np.exp(np.linalg.norm(V, 2) * np.array(times))).all()
    for time in range(3):
        cloud = vl.measure(run, time)
        speed = np.linalg.norm(attention.velocity(cloud, cloud.points), axis=1).max()
        assert speed <= np.linalg.norm(V, 2) * cloud.support_radius


def test_sigmoid_follows_one_token_exactly():
    """With A = 0 every velocity is sigma(b) V times the mean, which grows like e^{sigma(b) V t}."""
    run = vl.solve(
        vl.Problem(vl.Sigmoid(A=[[0.0]], bias=0.8), vl.Particles([1.0, 2.0]), 1.5), "particles", tolerance=1e-11
    )
    assert abs(run["mean"].values[-1, 0] / (1.5 * np.exp(1.5 / (1 + np.exp(-0.8)))) - 1) <= 1e-9


@pytest.mark.parametrize(
    "attention",
    [vl.Sigmoid(A=0.8, bias=0.3), vl.Exponential(A=0.6, V=-0.5), vl.ReLU(A=0.7, V=-0.8)],
    ids=lambda a: a.kind,
)
def test_finite_volumes_agree_with_quadrature(attention):
    """Moments on the line: Gauss nodes as particles, which move as the density does, and cells."""
    initial = vl.Gaussian(0.4, 0.3)
    particles = vl.solve(
        vl.Problem(attention, initial, 0.6), "particles", n=200, sampling="quadrature", tolerance=1e-10
    )
    cells = vl.solve(vl.Problem(attention, initial, 0.6), "finite-volume", cells=256)
    limit = 2e-4 if attention.kind == "relu" else 1e-6
    for name in ("mean", "covariance"):
        assert np.abs(particles[name].values[-1] - cells[name].values[-1]).max() <= limit
