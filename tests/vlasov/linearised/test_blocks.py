"""J h and J^T p of blocks: LayerNorm and MLP around attention, against differences, and J^T against J."""

from itertools import product

import numpy as np
import pytest
from numpy.linalg import norm
from scipy.special import iv

import vlasov as vl
from tests.vlasov.linearised import dense

NORMS = (None, "post", "pre")
ACTIVATIONS = (None, "gelu", "tanh", "relu", "identity")


def block(placement, activation, inner="softmax", d=3, n=6):
    rng = np.random.default_rng(1)
    A, V, x, w = *rng.normal(size=(2, d, d)), rng.normal(size=(n, d)), rng.uniform(0.2, 1.0, n)
    attention = vl.Sinkhorn(A=A / 3, V=V, tolerance=1e-12) if inner == "sinkhorn" else vl.Softmax(A=A, V=V)
    mlp = vl.MLP(rng.normal(size=(d, 4)), rng.normal(size=(4, d)), rng.normal(size=4), activation or "gelu")
    beta = np.array([0.7, -1.2, 1.0])[:d]
    layer_norm = vl.LayerNorm(beta, placement) if placement else None
    s = np.array([0.0, 0.5, 0.0, 1.0, 0.5, 1.0]) if inner == "masked" else None
    attention = vl.Masked(attention) if inner == "masked" else attention
    tokens = vl.Particles(x, w, s)
    problem = vl.Problem(attention, tokens, 1.0, layer_norm=layer_norm, mlp=mlp if activation else None)
    return problem.block, problem.start


@pytest.mark.parametrize("inner", ["softmax", "sinkhorn", "masked"])
@pytest.mark.parametrize(("placement", "activation"), [pair for pair in product(NORMS, ACTIVATIONS) if any(pair)])
def test_products_are_differences_of_the_velocity(placement, activation, inner):
    law, tokens = block(placement, activation, inner)
    x, (h, p) = tokens.points, np.random.default_rng(2).normal(size=(2, *tokens.points.shape))
    place = {} if tokens.s is None else {"s": tokens.s}
    found = dense.differences(lambda y: law.velocity(tokens.moved(y), y, tolerance=1e-13, **place), x, h)
    products = law.linearised(tokens)
    image = products.tangent(h)
    assert image == pytest.approx(found, rel=0, abs=1e-7 * norm(found))
    assert abs((p * image).sum() - (products.adjoint(p) * h).sum()) <= 1e-12 * norm(p) * norm(image)
    ours, back = dense.of(products, x.shape, 3)
    assert norm(ours - back.T, 2) <= products.error_bound < 1e-6


@pytest.mark.quick
def test_post_norm_moves_along_the_ellipsoid():
    """Velocities stay tangent: n(x)^T v(x) = 0 along it, so that (D n h)^T v + n^T J h = 0 with n = D^{-2} x."""
    law, tokens = block("post", "gelu")
    d = law.layer_norm.scale(3) ** -2
    x, h = tokens.points, np.random.default_rng(3).normal(size=tokens.points.shape)
    h -= x * d * ((h * x * d).sum(axis=1) / (x * d * x * d).sum(axis=1))[:, None]
    turned = (h * d * law.velocity(tokens, x)).sum(axis=1) + (x * d * law.linearised(tokens).tangent(h)).sum(axis=1)
    assert turned == pytest.approx(np.zeros(6), abs=1e-9)


@pytest.mark.quick
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_modes_on_the_circle_grow_as_they_should(k):
    """Even tokens on the unit circle, A = beta I: mode k grows at the rate k^2 I_k(beta) / (beta I_0(beta))."""
    beta, angles = 5.0, 2 * np.pi * np.arange(64) / 64
    tokens = vl.Particles(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    law = vl.Problem(vl.Softmax(A=beta * np.eye(2)), tokens, 1.0, layer_norm=vl.LayerNorm([0.5**0.5] * 2)).block
    products = law.linearised(tokens)
    along = np.stack([-np.sin(angles), np.cos(angles)], axis=1) * np.cos(k * angles)[:, None]
    rate = k * k * iv(k, beta) / (beta * iv(0, beta))
    assert products.tangent(along) == pytest.approx(rate * along, abs=1e-12)
    assert (along * products.adjoint(along)).sum() == pytest.approx(32 * rate, rel=1e-12)


@pytest.mark.quick
def test_pre_norm_does_not_feel_lengths():
    """Velocities depend on directions alone, J x_i e_i = 0."""
    law, tokens = block("pre", "tanh")
    x = tokens.points
    assert law.linearised(tokens).tangent(x * np.arange(6.0)[:, None]) == pytest.approx(0 * x, abs=1e-13)


def test_a_token_at_the_origin_is_refused():
    law, tokens = block("pre", None)
    with pytest.raises(vl.InputError, match="token 0 is at the origin"):
        law.linearised(vl.Particles(tokens.points * np.arange(6.0)[:, None]))
