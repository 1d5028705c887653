"""Mistakes in LayerNorm and MLP: one sentence each, with the field, the value and the remedy."""

import numpy as np
import pytest

import vlasov as vl

IDENTITY = np.eye(2)
POINTS = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
WIDE, TALL = np.ones((2, 3)), np.ones((3, 2))


def problem(points=POINTS, initial=None, **around):
    return vl.Problem(vl.Softmax(A=IDENTITY, V=IDENTITY), initial or vl.Particles(points), 1.0, **around)


def run(solver="particles", **around):
    options = {name: around.pop(name) for name in ("n", "sampling", "rescaled") if name in around}
    return vl.solve(problem(**around), solver, **options)


def table(**around):
    attention, initial = {"kind": "softmax", "A": [[1.0]]}, {"kind": "box", "lower": [1.0], "upper": [2.0]}
    return vl.Problem.from_dict({"attention": attention, "initial": initial, "horizon": 1.0} | around)


PRE = vl.LayerNorm(placement="pre")
CENTRED = vl.Box([-1.0, -1.0], [1.0, 1.0])
NO_ORIGIN = 'n: is 25, and "quadrature" then has a node at the origin; choose 36, or sampling="sobol"'

MISTAKES = {
    "a zero in beta": (lambda: vl.LayerNorm([1, 0]), "beta: entry 1 is zero"),
    "a NaN in beta": (lambda: vl.LayerNorm([1, np.nan]), "beta: entry [1] is nan"),
    "a matrix for beta": (lambda: vl.LayerNorm(IDENTITY), "beta: has shape (2, 2) where (n,) is needed"),
    "no entries in beta": (lambda: vl.LayerNorm([]), "beta: is empty"),
    "another length of beta": (
        lambda: problem(layer_norm=vl.LayerNorm([1, 1, 1])),
        "layer_norm.beta: has shape (3,) where (2,) is needed",
    ),
    "a zero in a layer": (
        lambda: vl.LayerNorm(vl.Piecewise([[1, 1], [0, 1]], [0, 0.5, 1])),
        "beta.values[1]: entry 0 is zero",
    ),
    "a zero at a later time": (
        lambda: run(layer_norm=vl.LayerNorm(lambda t: [1, 1 if t < 0.4 else 0])),
        "entry 1 is zero",
    ),
    "another placement": (
        lambda: vl.LayerNorm(placement="past"),
        'placement: "past" is not known; did you mean "post"?',
    ),
    "a token at the origin": (
        lambda: problem([[1, 0], [0, 0]], layer_norm=vl.LayerNorm()),
        "initial.points: token 1 is at the origin",
    ),
    "a token at the origin before": (
        lambda: problem([[1, 0], [0, 0]], layer_norm=PRE),
        "initial.points: token 1 is at the origin",
    ),
    "a node at the origin": (
        lambda: run(initial=CENTRED, layer_norm=vl.LayerNorm(), n=25, sampling="quadrature"),
        NO_ORIGIN,
    ),
    "a node at the origin before": (
        lambda: run(initial=CENTRED, layer_norm=PRE, n=25, sampling="quadrature"),
        NO_ORIGIN,
    ),
    "a point at the origin": (
        lambda: run(initial=vl.Gaussian([0, 0], 0 * IDENTITY), layer_norm=PRE),
        "initial: has tokens at the origin",
    ),
    "a dictionary": (
        lambda: problem(layer_norm={"beta": [1, 1]}),
        "layer_norm: is {'beta': [1, 1]}; give layer_norm as",
    ),
    "a class": (lambda: problem(mlp=vl.MLP), "mlp: is <class"),
    "a vector for W": (lambda: vl.MLP([1, 2]), "W: has shape (2,) where (n, m) is needed"),
    "no U": (lambda: vl.MLP(WIDE), "U: is missing, but W has shape (2, 3); give U with 3 rows"),
    "U that is not W's": (lambda: vl.MLP(WIDE, WIDE), "U: has shape (2, 3) where (3, 2) is needed"),
    "b that is not U's": (lambda: vl.MLP(WIDE, TALL, [1, 2]), "b: has shape (2,) where (3,) is needed"),
    "a matrix for b": (lambda: vl.MLP(WIDE, TALL, TALL), "b: has shape (3, 2) where (n,) is needed"),
    "another d": (lambda: problem(mlp=vl.MLP(np.eye(3))), "mlp.W: has 3 rows where 2 are needed"),
    "another activation": (
        lambda: vl.MLP(IDENTITY, activation="gleu"),
        'activation: "gleu" is not known; did you mean "gelu"?',
    ),
    "a function for it": (lambda: vl.MLP(IDENTITY, activation=np.tanh), "activation: "),
    "another shape later": (
        lambda: run(mlp=vl.MLP(lambda t: np.eye(2 if t < 0.3 else 3))),
        "has shape (3, 3) but had (2, 2) at t = 0",
    ),
    "a key of a table": (
        lambda: table(layer_norm={"gamma": [1]}),
        "layer_norm.gamma: is not a field of LayerNorm; choose one of: beta, placement",
    ),
    "a zero in a table": (lambda: table(layer_norm={"beta": [0]}), "layer_norm.beta: entry 0 is zero"),
    "no W in a table": (lambda: table(mlp={"U": [[1]]}), "mlp.W: is missing"),
    "Gaussians under post-norm": (
        lambda: run("gaussian", initial=vl.Gaussian([0, 0], IDENTITY), layer_norm=vl.LayerNorm()),
        "attention: is softmax with post-norm, under which Gaussians do not stay Gaussian; use the solver",
    ),
    "rescaling": (
        lambda: run(layer_norm=vl.LayerNorm(), rescaled=True),
        "rescaled: needs a normalised attention, where a single token obeys x' = V x, not softmax with post-norm",
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(mistake):
    make, sentence = MISTAKES[mistake]
    with pytest.raises(vl.InputError) as caught:
        make()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tokens_close_to_the_origin_have_a_direction():
    run = vl.solve(problem([[1e-310, 0.0], [3e-200, -4e-200]], layer_norm=vl.LayerNorm()), "particles", times=[0.0])
    exact = np.sqrt(2) * np.array([[1.0, 0.0], [0.6, -0.8]])
    assert np.abs(run["position"].values[0] - exact).max() < 1e-15
