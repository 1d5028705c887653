"""The growth of small changes against the dense fundamental matrix, finite differences, and laws that it obeys."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import vlasov as vl
from vlasov.postprocess.sensitivity import moments
from vlasov.postprocess.sensitivity.path import Path

A = np.array([[0.7, 0.5], [-0.4, 0.4]])
V = np.array([[0.7, -0.6], [0.8, 0.5]])


def _cloud(n, seed=0):
    random = np.random.default_rng(seed)
    return np.sign(random.normal(size=(n, 1))) * [0.9, 0.3] + 0.25 * random.normal(size=(n, 2))


def _velocity_and_jacobian(x, w, a, v):
    """Softmax attention and the dense derivative of X -> Gamma_X(X), from the definition."""
    n, d = x.shape
    kernel = np.exp(x @ a.T @ x.T) * w
    p = kernel / kernel.sum(axis=1, keepdims=True)
    m = p @ x
    away = x[None] - m[:, None]
    blocks = p[:, :, None, None] * (np.eye(d) + away[..., None] * (x @ a.T)[:, None, None, :])
    c = np.einsum("ij,ijk,ijl->ikl", p, away, away)
    blocks[np.arange(n), np.arange(n)] += c @ a
    return m @ v.T, np.einsum("kl,ijlm->ikjm", v, blocks).reshape(n * d, n * d)


def _dense(x, w, times, a=A, v=V, *, jump=None):
    """The fundamental matrix at each time, by SciPy; V changes sign at ``jump``."""
    n, d = x.shape

    def rhs(t, y):
        points, matrix = y[: n * d].reshape(n, d), y[n * d :].reshape(n * d, n * d)
        velocity, slope = _velocity_and_jacobian(points, w, a, v if jump is None or t < jump else -v)
        return np.concatenate([velocity.ravel(), (slope @ matrix).ravel()])

    y, found, now = np.concatenate([x.ravel(), np.eye(n * d).ravel()]), [], 0.0
    for t in sorted({*times, *([jump] if jump else [])}):
        inner = (lambda s, y, t=t: rhs(min(s, np.nextafter(t, 0)), y)) if jump else rhs
        y = solve_ivp(inner, (now, t), y, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
        now = t
        if t in times:
            found.append(y[n * d :].reshape(n * d, n * d))
    return found


@pytest.fixture(scope="module")
def of_tokens():
    x = _cloud(100)
    problem = vl.Problem(vl.Softmax(A=A, V=V), vl.Particles(x), 1.0)
    return x, vl.sensitivity(problem, times=[0.5, 1.0], tolerance=1e-10)


@pytest.mark.quick
def test_growth_is_the_norm_of_the_fundamental_matrix(of_tokens):
    x, found = of_tokens
    for matrix, t in zip(_dense(x, 1 / len(x), [0.5, 1.0]), [0.5, 1.0], strict=True):
        left, values, right = np.linalg.svd(matrix)
        at = found.sel(time=t)
        assert at["growth"].item() == pytest.approx(values[0], rel=1e-8)
        # Unit vectors of L^2(mu) have |h_i| of about one.
        assert abs(right[0] @ at["direction"].values.ravel()) / 10 == pytest.approx(1.0, abs=1e-6)
        assert abs(left[:, 0] @ at["response"].values.ravel()) / 10 == pytest.approx(1.0, abs=1e-6)
        share = 1 / np.sum(np.square(right[0].reshape(-1, 2)).sum(axis=1) ** 2)
        assert at["carriers"].item() == pytest.approx(share, rel=1e-4)
        assert at["participation"].item() == pytest.approx(share / 100, rel=1e-4)


@pytest.mark.quick
def test_the_chain_is_in_order(of_tokens):
    _, found = of_tokens
    growth, logarithmic, norm = (found[name].values for name in ("growth", "log_logarithmic_norm", "log_norm"))
    assert (np.log(growth) <= logarithmic * (1 + 1e-7)).all()
    assert (logarithmic <= norm * (1 + 1e-7)).all()
    assert (found["growth_error"].values < 1e-6).all()
    assert growth[0] == 1.0
    assert found.attrs["of"] == "tokens"


def _simpson(series):
    total = series[0] + series[-1] + 4 * series[1::2].sum() + 2 * series[2:-1:2].sum()
    return total / (len(series) - 1) / 3


def test_integrals_of_rates_against_dense_ones(of_tokens):
    """By Simpson's rule on states of another integrator."""
    x, found = of_tokens
    times = np.linspace(0.0, 1.0, 65)
    states = solve_ivp(
        lambda t, y: _velocity_and_jacobian(y.reshape(-1, 2), 0.01, A, V)[0].ravel(),
        (0, 1), x.ravel(), method="DOP853", rtol=1e-10, atol=1e-12, t_eval=times,
    ).y  # fmt: skip
    rates = []
    for state in states.T:
        slope = _velocity_and_jacobian(state.reshape(-1, 2), 0.01, A, V)[1]
        rates.append((np.linalg.eigvalsh(slope + slope.T)[-1] / 2, np.linalg.norm(slope, 2)))
    for name, series in zip(("log_logarithmic_norm", "log_norm"), np.array(rates).T, strict=True):
        fine, coarse = _simpson(series), _simpson(series[::2])
        apart = abs(found[name].values[-1] - fine)  # where eigenvalues cross, rules of high order err
        assert apart <= found["rates_error"].values[-1] + abs(fine - coarse) < 1e-3


@pytest.mark.quick
@pytest.mark.parametrize(
    "attention",
    [
        vl.Softmax(A=A, V=V),
        vl.L2(Q=[[0.6, 0.2], [0.1, 0.5]], K=[[0.5, 0.1], [-0.2, 0.6]], V=V),
        vl.Masked(vl.Softmax(A=A, V=V)),
    ],
)
def test_the_adjoint_is_that_of_the_discrete_flow(attention):
    """<p, M h> = <M^T p, h>, to rounding; and <p, h> is the same at every stage of the way."""
    x = _cloud(30)
    cloud = vl.Particles(x, None, np.linspace(0.1, 1, 30) if attention.causal else None)
    path = Path(cloud, vl.Problem(attention, cloud, 1.0).flow(), np.array([0.0, 0.4, 1.0]), 1e-8)
    random = np.random.default_rng(0)
    h, p = random.normal(size=(2, 30, 2))
    end = len(path.steps)
    there = path.forward(h, end)
    scale = np.linalg.norm(p) * np.linalg.norm(there)
    assert abs(np.sum(p * there) - np.sum(path.backward(p, end) * h)) <= 1e-13 * scale
    assert path.ends[-1] == end
    assert path.reached == [0.0, 0.4, 1.0]


def test_the_derivative_is_that_of_the_solver():
    """Central differences of runs by the particle solver."""
    x, h, e = _cloud(25), np.random.default_rng(3).normal(size=(25, 2)), 1e-5
    attention = vl.Softmax(A=A, V=V)

    def end(points):
        problem = vl.Problem(attention, vl.Particles(points), 0.7)
        return vl.solve(problem, "particles", times=[0.7], tolerance=1e-12)["position"].values[-1]

    cloud = vl.Particles(x)
    path = Path(cloud, vl.Problem(attention, cloud, 0.7).flow(), np.array([0.0, 0.7]), 1e-11)
    differences = (end(x + e * h) - end(x - e * h)) / (2 * e)
    np.testing.assert_allclose(path.forward(h, len(path.steps)), differences, atol=1e-8)


def test_parameters_that_jump():
    x = _cloud(20)
    attention = vl.Softmax(A=A, V=vl.Piecewise([V, -V], [0.0, 0.5, 1.0]))
    found = vl.sensitivity(vl.Problem(attention, vl.Particles(x), 1.0), times=[0.3, 1.0], tolerance=1e-10)
    for matrix, value in zip(_dense(x, 0.05, [0.3, 1.0], jump=0.5), found["growth"].values[1:], strict=True):
        assert value == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-8)


def test_weights_make_it_the_norm_of_the_measure():
    x, w = _cloud(40), np.random.default_rng(1).uniform(0.1, 1.0, 40)
    w /= w.sum()
    found = vl.sensitivity(vl.Problem(vl.Softmax(A=A, V=V), vl.Particles(x, w), 0.5), times=[0.5], tolerance=1e-10)
    root = np.repeat(np.sqrt(w), 2)
    matrix = _dense(x, w, [0.5])[0]
    assert found["growth"].values[-1] == pytest.approx(np.linalg.norm(root[:, None] * matrix / root, 2), rel=1e-8)


@pytest.mark.quick
def test_a_lone_token_and_linear_flows():
    """x' = V x: growth |e^{tV}|; and V = 1: the mean grows like e^t, whatever else happens."""
    from scipy.linalg import expm

    problem = vl.Problem(vl.Softmax(A=A, V=V), vl.Particles([[0.3, 0.1]]), 1.0)
    found = vl.sensitivity(problem, times=[1.0], tolerance=1e-11)
    assert found["growth"].values[-1] == pytest.approx(np.linalg.norm(expm(V), 2), rel=1e-9)
    still = vl.sensitivity(vl.Problem(vl.Softmax(A=0 * A, V=np.eye(2)), vl.Particles(_cloud(9)), 1.0), times=[1.0])
    assert still["growth"].values[-1] == pytest.approx(np.e, rel=1e-8)
    assert still["edge"].values[-1] == pytest.approx(1.0, abs=1e-12)


def test_mean_field_numbers_of_the_mixture():
    """By an independent prototype on 2,728 nodes, RK4 and its own sums; its edges by zero-weight probes."""
    problem = vl.load_case("mixture-2d").problem.until(1.5)
    found = vl.sensitivity(problem, times=[0.5, 1.0, 1.5], n=144, rates=False)
    growth, error, edge = (found[name].values[1:] for name in ("growth", "growth_error", "edge"))
    assert growth[0] == pytest.approx(1.925917, abs=2e-6)
    assert growth[1] == pytest.approx(3.70112, abs=2e-3)
    assert abs(growth[1] - 3.70112) <= error[1] + 1e-5  # it knows what so few nodes do not
    np.testing.assert_allclose(edge, [1.6335, 3.4387, 11.25], rtol=2e-4)
    assert np.abs(found["edge_place"].values[1:]).max() < 1e-2  # the unstable point between the clouds
    assert growth[2] == pytest.approx(edge[2], rel=1e-2)  # one torn token from then on
    assert found["carriers"].values[1] > 30 > 8 > found["carriers"].values[3]
    assert found.attrs["of"] == "limit"


def test_the_edge_is_what_neighbours_of_a_token_do():
    """Differences of the paths of probes without weight."""
    x, e = _cloud(30), 1e-5
    probes = np.array([[0.0, 0.0], [e, 0.0], [-e, 0.0], [0.0, e], [0.0, -e]])
    w = np.r_[np.ones(30), np.zeros(5)]
    problem = vl.Problem(vl.Softmax(A=A, V=V), vl.Particles(np.concatenate([x, probes]), w), 1.0)
    ends = vl.solve(problem, "particles", times=[1.0], tolerance=1e-12)["position"].values[-1, 30:]
    slope = np.stack([ends[1] - ends[2], ends[3] - ends[4]], axis=1) / (2 * e)
    found = vl.sensitivity(
        vl.Problem(vl.Softmax(A=A, V=V), vl.Particles(np.concatenate([x, probes[:1]]), w[:31]), 1.0), rates=False
    )
    place = found["edge_place"].values[-1]
    if np.array_equal(place, [0.0, 0.0]):
        assert found["edge"].values[-1] == pytest.approx(np.linalg.norm(slope, 2), rel=1e-7)
    assert found["edge"].values[-1] >= np.linalg.norm(slope, 2) * (1 - 1e-7)


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["softmax", "l2", "sinkhorn"])
def test_gaussians_move_as_nodes_do(kind):
    """An affine change of Gauss nodes changes their moments as the linearised equations of moments say."""
    attention = {
        "softmax": vl.Softmax(A=A, V=V),
        "l2": vl.L2(Q=[[0.6, 0.2], [0.1, 0.5]], K=[[0.5, 0.1], [-0.2, 0.6]], V=V),
        "sinkhorn": vl.Sinkhorn(A=A, V=V),
    }[kind]
    initial = vl.Gaussian([0.3, -0.1], [[0.2, 0.05], [0.05, 0.1]])
    problem, times = vl.Problem(attention, initial, 0.5), np.array([0.0, 0.5])
    nodes = initial.quadrature(14)
    path = Path(nodes, problem.flow(), times, 1e-11)
    values, vectors = np.linalg.eigh(initial.covariance)
    root = (vectors * np.sqrt(values)) @ vectors.T
    z = np.linalg.solve(root, (nodes.points - initial.mean).T).T
    change = np.array([[0.2, -0.4], [0.3, 0.1], [-0.2, 0.5]])  # a, and the transposed change of L
    h = path.forward(change[0] + z @ change[1:], len(path.steps))
    *_, (_, state, changes) = moments.tangents(problem, times, change[None])
    w, end = nodes.weights, path.outputs[-1]
    mean = w @ end
    np.testing.assert_allclose(w @ h, changes[0, 0], atol=1e-8)
    moved = np.einsum("n,nk,nl->kl", w, h, end - mean)
    turned = changes[0, 1:].T @ state[1:]
    np.testing.assert_allclose(moved + moved.T, turned + turned.T, atol=1e-8)


def test_bures_growth_is_that_of_distances():
    """W_2 of neighbouring Gaussians, by the exact reduction; close to a blow-up in closed form (1 - t)^{-3/2}."""
    attention, e = vl.Softmax(A=A, V=V), 1e-4
    initial = vl.Gaussian([0.3, -0.1], [[0.2, 0.05], [0.05, 0.1]])
    growth = moments.growth(vl.Problem(attention, initial, 0.8), np.array([0.0, 0.8]))[0][-1]
    random, largest = np.random.default_rng(0), 0.0
    base = vl.measure(vl.solve(vl.Problem(attention, initial, 0.8), "gaussian", times=[0.8], tolerance=1e-12))
    for _ in range(40):
        s, a = random.normal(size=(2, 2)), random.normal(size=2)
        map_ = np.eye(2) + e * (s + s.T)
        other = vl.Gaussian(initial.mean + e * a, map_ @ initial.covariance @ map_)
        end = vl.measure(vl.solve(vl.Problem(attention, other, 0.8), "gaussian", times=[0.8], tolerance=1e-12))
        ratio = vl.wasserstein(base, end, 2) / vl.wasserstein(initial, other, 2)
        assert ratio <= growth * (1 + 1e-3)
        largest = max(largest, ratio)
    assert largest >= 0.8 * growth
    blow_up = vl.load_case("gaussian-blow-up").problem
    # Sigma = (1 - t)^{-1} along the unstable direction: a change of its root grows like the 3/2-th power.
    assert moments.growth(blow_up, np.array([0.0, 0.75]))[0][-1] == pytest.approx(4.0**1.5, rel=1e-9)


@pytest.mark.quick
def test_a_run_is_asked_for_its_own_tokens():
    problem = vl.Problem(vl.Softmax(A=A, V=V), vl.Mixture([vl.Ball(0.2, [0.5, 0]), vl.Ball(0.2, [-0.5, 0])]), 0.5)
    run = vl.solve(problem, "particles", n=40, times=[0.0, 0.25, 0.5])
    found = vl.sensitivity(run, rates=False, check=False)
    assert found.attrs["of"] == "tokens"
    assert found["time"].values.tolist() == [0.0, 0.25, 0.5]
    np.testing.assert_array_equal(found["position"].values[0], run["position"].values[0])
    np.testing.assert_allclose(found["position"].values[-1], run["position"].values[-1], atol=1e-7)
    assert vl.sensitivity(run, n=30, rates=False, check=False).attrs["of"] == "limit"


def test_at_a_blow_up_times_end():
    problem = vl.load_case("relu-blow-up").problem
    found = vl.sensitivity(problem, n=12, rates=False)
    assert found.attrs["status"] == "blow-up"
    assert found["time"].values[-1] < found.attrs["blow_up_time"]


def test_post_norm_changes_stay_on_the_ellipsoid():
    """Kuramoto on the circle: growth by differences of angles."""
    problem = vl.load_case("kuramoto-circle").problem
    few = vl.Problem(
        problem.attention,
        vl.Particles(problem.initial.points[:12]),
        2.0,
        layer_norm=problem.layer_norm,
        mlp=problem.mlp,
    )
    found = vl.sensitivity(few, times=[2.0], tolerance=1e-10)
    x, e = problem.start.points[:12], 1e-5
    angle, radius = np.arctan2(x[:, 1], x[:, 0]), np.linalg.norm(x, axis=1)

    def end(angles):
        points = radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        run = vl.solve(few.changed(initial=vl.Particles(points)), "particles", times=[2.0], tolerance=1e-12)
        last = run["position"].values[-1]
        return np.arctan2(last[:, 1], last[:, 0])

    columns = []
    for k in range(12):
        step = e * np.eye(12)[k]
        turned = end(angle + step) - end(angle - step)
        columns.append((turned + np.pi) % (2 * np.pi) - np.pi)
    assert found["growth"].values[-1] == pytest.approx(np.linalg.norm(np.array(columns).T / (2 * e), 2), rel=1e-6)


@pytest.mark.parametrize(
    ("problem", "how", "sentence"),
    [
        ("x", {}, "problem: is 'x'; give a vl.Problem, or what vl.solve returned"),
        (None, {"n": 0}, "n: is 0 but must be at least 1"),
        (None, {"times": [0.5, 0.2]}, "times: must increase; sort them and leave out repetitions"),
        (None, {"times": [2.0]}, "times: run from 2 to 2 but must lie in [0, 1]"),
        (None, {"sampling": "sobel"}, 'sampling: "sobel" is not known; did you mean "sobol"?'),
    ],
)
def test_mistakes(problem, how, sentence):
    given = problem or vl.Problem(vl.Softmax(A=A, V=V), vl.Particles(_cloud(4)), 1.0)
    with pytest.raises(vl.InputError) as raised:
        vl.sensitivity(given, **how)
    assert str(raised.value) == sentence


def test_no_derivative_is_one_sentence():
    hard = vl.Problem(vl.Hardmax(A=A, V=V), vl.Particles(_cloud(4)), 1.0)
    with pytest.raises(vl.InputError, match="velocities jump"):
        vl.sensitivity(hard)
    layers = vl.solve(vl.Problem(vl.Softmax(A=A, V=V), vl.Particles(_cloud(4)), 1.0), "layers", depth=4)
    with pytest.raises(vl.InputError, match="is a run by layers"):
        vl.sensitivity(layers)
