"""The growth of small changes against the dense fundamental matrix, finite differences, and laws that it obeys."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import vlasov as vl
from vlasov.postprocess.sensitivity import growth as growths

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
    still = vl.sensitivity(
        vl.Problem(vl.Softmax(A=0 * A, V=np.eye(2)), vl.Particles(_cloud(9)), 1.0), times=[1.0], tolerance=1e-8
    )
    assert still["growth"].values[-1] == pytest.approx(np.e, rel=1e-8)


@pytest.mark.parametrize("t", [1.5, 4.0])
@pytest.mark.parametrize("initial", [vl.Box([-1, -1], [1, 1]), vl.Particles([[1, 0], [-1, 0], [0, 1], [0, -1]])])
def test_growth_where_tokens_rest(initial, t):
    """A = 0 and a mean of zero: nothing moves, and a shift grows by |e^{tV}|."""
    from scipy.linalg import expm

    values = np.array([[1.0, 2.0], [-0.5, 1.5]])
    problem = vl.Problem(vl.Softmax(A=np.zeros((2, 2)), V=values), initial, t)
    _is_right(
        vl.sensitivity(problem, times=[t], n=9 if isinstance(initial, vl.Box) else None, rates=False), expm(t * values)
    )


def test_growth_where_tokens_hardly_move():
    """Two tokens so close to zero that scores vanish: their mean grows like e^t."""
    problem = vl.Problem(vl.Softmax(A=[[1.0]], V=[[1.0]]), vl.Particles([[1e-6], [-1e-6]]), 5.0)
    _is_right(vl.sensitivity(problem, times=[5.0], rates=False), np.exp([[5.0]]))


def test_the_error_holds_where_tokens_move():
    """Both looks take nearly the same few steps, so that their difference alone does not tell the error."""
    random = np.random.default_rng(2)
    x, (a, v) = random.normal(size=(6, 2)), random.normal(size=(2, 2, 2))
    problem = vl.Problem(vl.Softmax(A=a, V=v), vl.Particles(x), 1.0)
    _is_right(vl.sensitivity(problem, times=[1.0], rates=False), _dense(x, 1 / 6, [1.0], a, v)[0])


def _is_right(found, matrix):
    """The error holds, and is no excuse."""
    growth, error, exact = found["growth"].values[-1], found["growth_error"].values[-1], np.linalg.norm(matrix, 2)
    assert abs(growth - exact) <= error <= 1e-4 * exact


def test_mean_field_numbers_of_the_mixture():
    """By an independent prototype on 2,728 nodes, RK4 and its own sums."""
    problem = vl.load_case("mixture-2d").problem.until(1.5)
    found = vl.sensitivity(problem, times=[0.5, 1.0, 1.5], n=144, rates=False)
    growth, error = (found[name].values[1:] for name in ("growth", "growth_error"))
    assert growth[0] == pytest.approx(1.925917, abs=2e-6)
    assert growth[1] == pytest.approx(3.70112, abs=2e-3)
    assert abs(growth[1] - 3.70112) <= error[1] + 1e-5  # it knows what so few nodes do not
    # From then on a token at the unstable point between the clouds is torn, 11.25 times, where there is no node.
    assert np.isnan([growth[2], error[2]]).all()
    assert found["carriers"].values[1] > 30 > 8 > found["carriers"].values[3]
    assert "at t = 1.5 growth is not known: fewer than 8 nodes carry it" in found.attrs["doubt"]
    assert found.attrs["of"] == "limit"


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


def test_a_gaussian_that_blows_up_ends_there_and_one_with_wide_tails_has_no_growth_in_the_limit():
    problem = vl.Problem(vl.Softmax(A=[[0.5]]), vl.Gaussian([0.0], [[1.0]]), 2.0)  # blows up at t = 1
    found = vl.sensitivity(problem, times=[0.2, 1.5], rates=False, check=False)
    assert (found.attrs["status"], found["time"].values.tolist()) == ("blow-up", [0.0, 0.2])
    assert abs(found.attrs["blow_up_time"] - 1) < 1e-9
    assert np.isnan(found["growth_error"].values[1])  # nobody has looked again
    wide = vl.Problem(vl.Softmax(A=np.diag([1.0, -2.0])), vl.Gaussian([0.2, 0.1], np.diag([0.5, 1.0])), 0.2)
    found = vl.sensitivity(wide, times=[0.1], n=64, rates=False)
    assert np.isnan(found["growth"].values[1])
    assert "growth is not known: J may be unbounded" in found.attrs["doubt"]


def test_a_gaussian_that_becomes_wide_has_no_growth_from_then_on():
    """Sigma' = 2 A Sigma^2 by V = 1: A Sigma = 0.3 / (1 - 0.6 t) exceeds 0.707 from t = 0.96 on."""
    problem = vl.Problem(vl.Softmax(A=[[0.3]]), vl.Gaussian([0.0], [[1.0]]), 1.1)
    found = vl.sensitivity(problem, times=[0.5, 0.95, 0.97, 1.1], n=64, rates=False)
    assert np.isnan(found["growth"].values).tolist() == [False, False, False, True, True]
    assert np.isnan(found["growth_error"].values).tolist() == [False, False, False, True, True]
    assert "from t = 0.97 on growth is not known: J may be unbounded" in found.attrs["doubt"]


def test_times_before_those_of_a_run_are_refused():
    problem = vl.Problem(vl.Softmax(A=A, V=V), vl.Particles(_cloud(4)), 0.5)
    run = vl.solve(problem, "particles", times=[0.2, 0.4])
    with pytest.raises(vl.InputError, match=r"^times: begin at 0.1, before the run does, at 0.2; leave it out$"):
        vl.sensitivity(run, times=[0.1, 0.4])


@pytest.mark.parametrize(
    ("problem", "how", "sentence"),
    [
        (
            3,
            {},
            "problem: is 3 where a vlasov Problem is needed, or a case: its name, its .toml file or a vl.Case",
        ),
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


def test_integrals_of_rates_have_the_errors_of_lanczos_on_top(of_tokens, monkeypatch):
    """Ritz values lie below: of some that are told to be 0.01 too low, the integrals are right, and 0.01 t is told."""
    x, exact = of_tokens
    for name in ("largest_singular", "largest_eigenvalue"):
        real = getattr(growths, name)

        def low(*given, real=real, **how):
            found = real(*given, **how)
            return found._replace(value=found.value - 0.01, error=found.error + 0.01)

        monkeypatch.setattr(growths, name, low)
    found = vl.sensitivity(vl.Problem(vl.Softmax(A=A, V=V), vl.Particles(x), 1.0), times=[0.5, 1.0], tolerance=1e-10)
    for name in ("log_logarithmic_norm", "log_norm"):
        np.testing.assert_allclose(found[name].values, exact[name].values, atol=1e-5)
    assert (found["rates_error"].values >= [0.0, 0.005, 0.01]).all()


def test_lanczos_that_has_not_converged_is_a_doubt(of_tokens, monkeypatch):
    problem = vl.Problem(vl.Softmax(A=A, V=V), vl.Particles(of_tokens[0]), 1.0)
    for name, words in (("largest_singular", "for the growth"), ("largest_eigenvalue", "for the rates")):
        real = getattr(growths, name)
        with monkeypatch.context() as patched:
            patched.setattr(growths, name, lambda *a, real=real, **k: real(*a, **k)._replace(converged=False))
            doubt = vl.sensitivity(problem, times=[0.5], check=False).attrs["doubt"]
        assert f"Lanczos' iteration {words} has not converged" in doubt
