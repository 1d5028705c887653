"""The solver "layers" against a plain NumPy Transformer, recursions of moments, its own estimates, and mistakes."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import vlasov as vl

RANDOM = np.random.default_rng(14)
D, HIDDEN, N, L = 3, 5, 40, 12
WEIGHTS = {name: RANDOM.normal(size=shape) / 2 for name, shape in {
    "Q": (2, 2, D), "K": (2, 2, D), "V": (2, 2, D), "O": (2, D, 2), "W": (D, HIDDEN), "U": (HIDDEN, D), "b": (HIDDEN,)
}.items()}  # fmt: skip
BETA = np.array([1.0, -0.5, 2.0])
TOKENS = RANDOM.normal(size=(N, D))
PLACES = RANDOM.permutation(N) / N
LINE = vl.Problem(vl.Softmax(A=[[0.7]]), vl.Box(-1, 1), 1.0)


# A plain Transformer block


def softmax(tokens, masked):
    """Multi-head attention of all tokens, (n, d)."""
    heads = []
    for q, k, v, o in zip(*(WEIGHTS[name] for name in "QKVO"), strict=True):
        scores = (tokens @ q.T) @ (tokens @ k.T).T
        if masked:
            scores = np.where(PLACES[None, :] <= PLACES[:, None], scores, -np.inf)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        heads.append((scores / scores.sum(axis=1, keepdims=True)) @ (tokens @ v.T) @ o.T)
    return sum(heads)


ACTIVATIONS = {
    "gelu": lambda z: z * np.vectorize(lambda u: 0.5 * math.erfc(-u / math.sqrt(2)))(z),
    "relu": lambda z: np.maximum(z, 0.0),
    "tanh": np.tanh,
}


def perceptron(tokens, activation):
    return ACTIVATIONS[activation](tokens @ WEIGHTS["U"].T + WEIGHTS["b"]) @ WEIGHTS["W"].T


def normal(tokens):
    return BETA * math.sqrt(D) * tokens / np.linalg.norm(tokens, axis=1, keepdims=True)


def transformer(tokens, layers, h, placement, activation, masked):
    """The tokens after each layer."""
    laws = [lambda x: softmax(x, masked)] + [lambda x: perceptron(x, activation)] * (activation is not None)
    states = [normal(tokens) if placement == "post" else tokens]
    for _ in range(layers):
        x = states[-1]
        for law in laws:
            x = x + h * law(normal(x) if placement == "pre" else x)
            x = normal(x) if placement == "post" else x
        states.append(x)
    return np.stack(states)


def problem(placement=None, activation=None, masked=False, horizon=float(L)):
    heads = [vl.Softmax(*(WEIGHTS[name][head] for name in "QKV")) for head in range(2)]
    attention = vl.MultiHead(heads, WEIGHTS["O"])
    return vl.Problem(
        vl.Masked(attention) if masked else attention,
        vl.Particles(TOKENS, s=PLACES if masked else None),
        horizon,
        layer_norm=placement and vl.LayerNorm(BETA, placement),
        mlp=activation and vl.MLP(*(WEIGHTS[name] for name in "WUb"), activation),
    )


@pytest.mark.quick
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("activation", ["gelu", "relu", "tanh", None])
@pytest.mark.parametrize("placement", ["post", "pre"])
def test_twelve_layers_of_step_one_are_those_of_numpy(placement, activation, masked):
    run = vl.solve(problem(placement, activation, masked), "layers", step=1)
    expected = transformer(TOKENS, L, 1.0, placement, activation, masked)
    away = np.abs(run["position"].values - expected).max(axis=(1, 2)) / np.abs(expected).max(axis=(1, 2))
    assert away.max() < 1e-12
    assert run["layer"].values.tolist() == list(range(L + 1))
    assert run.attrs["error_estimate"] < 1e-9


def test_depth_divides_the_horizon():
    run = vl.solve(problem(activation="tanh", horizon=0.75), "layers", depth=7, times=[0.75])
    expected = transformer(TOKENS, 7, 0.75 / 7, None, "tanh", False)[-1]
    assert np.abs(run["position"].values[0] - expected).max() < 1e-13
    assert (run["layer"].item(), run.attrs["steps"], run.attrs["layer_step"]) == (7, 7, 0.75 / 7)


def test_forty_eight_layers_where_nothing_is_said():
    run = vl.solve(LINE, "layers", n=16)
    assert run.attrs["steps"] == 48
    assert run["layer"].values.tolist() == list(range(49))
    assert json.loads(run.attrs["options"])["depth"] == 48


def test_outputs_of_many_layers_are_spread_evenly():
    run = vl.solve(LINE, "layers", n=4, depth=1000)
    assert run["layer"].values.tolist() == list(range(0, 1001, 10))
    assert vl.solve(LINE, "layers", n=4, depth=150)["layer"].size == 101


# Parameters in time


def test_each_layer_has_its_own_parameters():
    """Also where the ends of layers and of pieces are not the same numbers: 1/3 of 0.3 and of 0.7."""
    for horizon in (0.3, 0.7, 1.0):
        slopes = [2.0, -1.0, 0.5, 3.0, 1.0, -2.0, 0.25]
        V = vl.Piecewise([[[v]] for v in slopes], np.linspace(0, horizon, 8))
        moving = vl.Problem(vl.Softmax(A=[[0.0]], V=V), vl.Particles([[1.0]]), horizon)
        for asked in ({"depth": 7}, {"step": horizon / 7}):
            run = vl.solve(moving, "layers", **asked)
            factors = np.cumprod([1 + horizon / 7 * v for v in slopes])
            assert np.abs(run["mean"].values[1:, 0] - factors).max() < 1e-12


def test_a_layer_feels_its_left_end():
    moving = vl.Problem(vl.Softmax(A=[[0.0]], V=lambda t: [[t]]), vl.Particles([[1.0]]), 2.0)
    assert vl.solve(moving, "layers", step=1)["mean"].values[-1].item() == 2.0  # (1 + 0) (1 + 1)
    jumps = vl.Problem(vl.Softmax(A=[[0.0]], V=vl.Piecewise([[[1.0]], [[3.0]]], [0, 0.9, 2])), moving.initial, 2.0)
    assert vl.solve(jumps, "layers", depth=2)["mean"].values[-1].item() == 8.0
    with pytest.raises(
        vl.InputError, match=r"^step: is 1, but a parameter jumps at t = 0.9, inside a layer, and param"
    ):
        vl.solve(jumps, "layers", step=1)


# How wrong it is


@pytest.mark.quick
def test_gaussians_follow_the_recursion_of_their_moments():
    """Sigma <- (I + h V Sigma A) Sigma (I + h V Sigma A)^T, by NumPy; and nodes carry it."""
    A, V, mean, cov = (
        np.array([[1.0, -2.0], [2.0, 1.0]]),
        np.diag([0.5, -1.0]),
        np.array([0.5, 0.1]),
        np.diag([0.2, 0.1]),
    )
    gaussian = vl.Problem(vl.Softmax(A=A, V=V), vl.Gaussian(mean, cov), 1.0)
    run = vl.solve(gaussian, "layers", depth=10, n=900, sampling="quadrature")
    sampled = vl.solve(gaussian, "layers", depth=10, n=256, warn_above=math.inf)
    for _ in range(10):
        slope = np.eye(2) + 0.1 * V @ cov @ A
        mean, cov = mean + 0.1 * V @ (mean + cov @ A @ mean), slope @ cov @ slope.T
    assert np.abs(run["covariance"].values[-1] - cov).max() < 1e-10
    assert np.abs(run["mean"].values[-1] - mean).max() < 1e-10
    assert run.attrs["error_estimate"] < 1e-10
    away = np.linalg.norm(sampled["covariance"].values[-1] - cov) / np.linalg.norm(cov)
    assert sampled["covariance_error"].values[-1] == pytest.approx(away, rel=1e-6)


def test_an_affine_mlp_is_a_layer_of_the_recursion():
    W, b = np.array([[0.0, 1.0], [-0.5, 0.0]]), np.array([1.0, -1.0])
    block = vl.Problem(
        vl.Softmax(A=np.eye(2)), vl.Gaussian([0, 0], 0.3 * np.eye(2)), 1.0,
        mlp=vl.MLP(W, b=b, activation="identity"),
    )  # fmt: skip
    run = vl.solve(block, "layers", depth=5, n=900, sampling="quadrature")
    assert run.attrs["error_estimate"] < 1e-10
    mean, cov = np.zeros(2), 0.3 * np.eye(2)
    for _ in range(5):
        mean, slope = mean + 0.2 * (mean + cov @ mean), np.eye(2) + 0.2 * cov
        cov = slope @ cov @ slope.T
        U = np.eye(2) + 0.2 * W
        mean, cov = U @ mean + 0.2 * W @ b, U @ cov @ U.T
    assert np.abs(run["covariance"].values[-1] - cov).max() < 1e-10


@pytest.mark.parametrize("law", ["softmax", "relu", "sinkhorn", "masked", "post", "pre"])
def test_errors_of_sampling_are_known(law):
    """Against many Gauss nodes through the same layers."""
    A = np.array([[0.8, 0.3], [-0.3, 0.5]])
    attention = {"relu": vl.ReLU(A=A), "sinkhorn": vl.Sinkhorn(A=A)}.get(law, vl.Softmax(A=A))
    initial = vl.Box([0.2, -0.5], [1.0, 0.5])
    if law == "masked":
        attention, initial = vl.Masked(attention), vl.Sequence([initial, vl.Box([-1, 0], [0, 1])])
    norm = vl.LayerNorm(placement=law) if law in ("post", "pre") else None
    stated = vl.Problem(attention, initial, 0.5, layer_norm=norm)
    run = vl.solve(stated, "layers", depth=4, n=200, times=[0.5], sampling="random", warn_above=math.inf)
    count = 2048 if law == "masked" else 3600
    best = vl.solve(
        stated, "layers", depth=4, n=count, times=[0.5], warn_above=math.inf,
        sampling="sobol" if law == "masked" else "quadrature",
    )  # fmt: skip
    error = np.linalg.norm(run["covariance"][0] - best["covariance"][0]) / np.linalg.norm(best["covariance"][0])
    assert error > 1e-3
    assert run["covariance_error"].item() == pytest.approx(error, rel=0.2)


def test_rounding_is_known_where_layers_amplify_it():
    """Two tokens whose mean grows by -2.3 in each layer, while they stay as close as they are: by fractions."""
    points = [0.3, 0.3 + 1e-9]
    drift = vl.Problem(vl.Softmax(A=[[0.0]], V=[[-3.3]]), vl.Particles(np.array(points)[:, None]), 20.0)
    run = vl.solve(drift, "layers", step=1, warn_above=math.inf)
    exact = float((Fraction(points[1]) - Fraction(points[0])) ** 2 / 4)
    errors = np.abs(run["covariance"].values[:, 0, 0] - exact) / exact
    assert errors[-1] > 1e-2
    assert (errors <= 3 * run["covariance_error"].values).all()
    assert "rounding errors grow over 20 layers" in run.attrs["advice"]
    straight = vl.Problem(vl.Softmax(A=[[0.3]]), vl.Particles([[0.5], [1.5]]), 1.0)
    assert vl.solve(straight, "layers", depth=6).attrs["error_estimate"] < 1e-13


def test_many_tokens_take_linear_sums():
    A = np.array([[1.0, 0.5], [0.0, 1.0]])
    crowd = vl.Problem(vl.Softmax(A=A), vl.Box([-1, -1], [1, 1]), 1.0)
    fast, exact = (
        vl.solve(crowd, "layers", depth=3, n=3000, times=[1.0], method=method) for method in ("laplace", "all-pairs")
    )
    assert fast.attrs["method"] == "laplace"
    assert np.abs(fast["position"] - exact["position"]).max().item() < 1e-9


# What cannot be


def test_overflow_names_layer_and_time_and_keeps_the_last_good_state(tmp_path):
    explosive = vl.Problem(vl.ReLU(A=[[1.0]]), vl.Particles([[2.0]]), 60.0)
    with pytest.raises(vl.SolverError, match=r"^layer \d+ of 60, from t = \d+: .* not finite") as failed:
        vl.solve(explosive, "layers", step=1, output=tmp_path / "run.nc")
    kept = vl.open_run(tmp_path / "run.partial.nc")
    layer = int(str(failed.value).split()[1])
    assert kept.attrs["status"] == "stopped"
    assert kept["layer"].values.tolist() == list(range(layer))
    assert np.isfinite(kept["covariance"]).all()
    assert kept["position"].values[3].item() == 2.0 + 8 + 1000 + (1010.0**3)  # x <- x + x^3


def test_a_token_that_meets_the_origin_is_named():
    still = vl.Problem(
        vl.Softmax(A=[[0.0]], V=[[-1.0]]), vl.Particles([[1.0], [1.0]]), 2.0, layer_norm=vl.LayerNorm(placement="pre")
    )
    with pytest.raises(vl.SolverError, match=r"^layer 2 of 2, from t = 1: x: token 0 is at the origin"):
        vl.solve(still, "layers", step=1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"depth": 0}, r"depth: is 0 but must be at least 1"),
        ({"depth": 1.5}, r"depth: 1.5 is not a whole number"),
        ({"depth": True}, r"depth: True is not a whole number"),
        ({"depth": 10**6}, r"depth: is 1000000 but must be at most 1e\+05"),
        ({"step": 0.3}, r"step: is 0.3, but the horizon 1 is no whole multiple of it; take a horizon of 0.9 or 1.2"),
        ({"step": 3}, r"step: is 3, but the horizon 1 is no whole multiple of it; take a horizon of 3 or 6, or a step"),
        ({"step": 1e-9}, r"step: is 1e-09, of which the horizon has 1e\+09; at most 100,000 layers"),
        ({"step": 0}, r"step: is 0 but must be"),
        ({"step": True}, r"step: True is not a number"),
        ({"depth": 4, "step": 0.25}, r"depth: stands beside step; give either"),
        ({"depth": 4, "times": [0.3]}, r"times: 0.3 is inside a layer; the nearest after one are 0.25 and 0.5"),
        ({"depth": 4, "times": [0.5, 0.5 + 1e-12]}, r"times: are closer together than layers"),
        ({"method": "all-pairs-float32"}, r'method: "all-pairs-float32" is not known'),
        ({"sampling": "quantil"}, r'sampling: "quantil" is not known; did you mean "quantile"'),
        ({"tolerance": 1e-8}, r'tolerance: is not an option of the solver "layers"'),
    ],
)
def test_mistakes_are_named(options, sentence):
    with pytest.raises(vl.InputError, match="^" + sentence):
        vl.solve(LINE, "layers", **options)


def test_asked_times_may_be_a_rounding_error_off():
    times = np.linspace(0, 1, 7)
    run = vl.solve(LINE, "layers", n=8, depth=6, times=times)
    assert run["time"].values.tolist() == times.tolist()
    assert run["layer"].values.tolist() == list(range(7))
