"""The depth study: order one in the number of layers, mistakes, jumps of parameters."""

import json

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess import depth
from vlasov.postprocess.depth import depth_study

A = np.array([[0.9, 0.4], [-0.4, 0.6]])
PLANE = vl.Problem(vl.Softmax(A=A), vl.Box([-0.5, -1.0], [1.0, 1.0]), 1.0)
TEXT = vl.Sequence([vl.Box([-2.0, 0.0], [-1.0, 1.0]), vl.Box([1.0, 0.0], [2.0, 1.0])])
PROBLEMS = {
    "softmax": PLANE,
    "relu": vl.Problem(vl.ReLU(A=A / 4), PLANE.initial, 0.5),
    "masked": vl.Problem(vl.Masked(vl.Softmax(A=A)), TEXT, 0.5),
    "post-norm": vl.Problem(PLANE.attention, PLANE.initial, 1.0, layer_norm=vl.LayerNorm([0.8, 0.8])),
    "pre-norm": vl.Problem(
        PLANE.attention, vl.Box([0.5, -1.0], [2.0, 1.0]), 1.0, layer_norm=vl.LayerNorm(placement="pre")
    ),
    "mlp": vl.Problem(PLANE.attention, PLANE.initial, 1.0, mlp=vl.MLP(A, activation="tanh")),
    "post-norm and mlp": vl.Problem(
        PLANE.attention, PLANE.initial, 1.0, layer_norm=vl.LayerNorm(), mlp=vl.MLP(A, activation="gelu")
    ),
    "a moving parameter": vl.Problem(vl.Softmax(A=lambda t: (1 + t) * A), PLANE.initial, 1.0),
}


def study_notes(study):
    """Sentences below the table."""
    return depth.DepthStudy.kind.notes(study)


# Order one


@pytest.mark.quick
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_slope_is_minus_one(name):
    study = depth_study(PROBLEMS[name], depths=[6, 12, 24, 48, 96], n=24, replicas=3, p=2)
    slopes = study["slope"].isel(time=-1, p=0)
    assert np.abs(slopes.sel(quantity=["coupled", "wasserstein", "covariance_error"]) + 1).max() < 0.05
    assert (study["low"] <= study["slope"]).all()
    assert (study["slope"] <= study["high"]).all()
    assert (study["wasserstein"] <= study["coupled"] * (1 + 1e-9)).all()
    assert study["reference_error"].max() < 1e-2 * study["coupled"].min()


@pytest.mark.parametrize("beta", [[1.0, 0.5], [-1.0, -1.0]])
def test_layers_that_do_not_approach_the_flow_are_told(beta):
    """LN(D u) is not D u: however many layers there are, each moves tokens."""
    turning = vl.Problem(PLANE.attention, PLANE.initial, 1.0, layer_norm=vl.LayerNorm(beta))
    study = depth_study(turning, depths=[5, 11, 25], n=12, replicas=2)
    assert study["coupled"].isel(depth=-1).min() > 0.1
    assert np.isnan(study["expected"]).all()
    assert "not one positive number" in "\n".join(study_notes(study))


def test_errors_of_a_lone_token_are_those_of_euler():
    """x' = x: (1 + T/L)^L against e^T, for whatever p."""
    alone = vl.Problem(vl.Softmax(A=[[0.3]]), vl.Particles([[2.0]]), 1.5)
    study = depth_study(alone, depths=[3, 6, 12, 24], times=[0.5, 1.5])
    for k, t in enumerate((0.5, 1.5)):
        exact = [2 * (np.exp(t) - (1 + 1.5 / L) ** (t / 1.5 * L)) for L in (3, 6, 12, 24)]
        for name in ("coupled", "wasserstein"):
            assert np.abs(study[name].values[:, 0, k] - np.array(exact)[:, None]).max() < 1e-9
        assert np.abs(study["mean_error"].values[:, 0, k] - exact).max() < 1e-9
    assert study.sizes["replica"] == 1
    assert study["step"].values.tolist() == [0.5, 0.25, 0.125, 0.0625]


def test_covariances_of_gaussians_are_known():
    """Of the flow in closed form, of layers by their recursion; tokens by quadrature."""
    a = np.diag([0.3, -0.4])
    gaussian = vl.Problem(vl.Softmax(A=a), vl.Gaussian([0, 0], np.eye(2)), 0.5)
    study = depth_study(gaussian, depths=[4, 8], n=900, sampling="quadrature", exact_up_to=0)
    exact = np.diag(1 / (1 - 2 * 0.5 * np.diag(a)))
    for k, layers in enumerate((4, 8)):
        s = np.ones(2)
        for _ in range(layers):
            s = s * (1 + 0.5 / layers * np.diag(a) * s) ** 2
        error = np.linalg.norm(np.diag(s) - exact) / np.linalg.norm(exact)
        assert study["covariance_error"].values[k, 0, 0] == pytest.approx(error, rel=1e-7)
    assert np.isnan(study["wasserstein"]).all()


# The same bits


ARGUMENTS = {"depths": [3, 6, 12], "n": 20, "replicas": 3}


@pytest.fixture(scope="module")
def straight():
    return depth_study(PLANE, **ARGUMENTS)


def test_a_piece_does_not_depend_on_the_others(straight):
    alone = depth_study(PLANE, **(ARGUMENTS | {"depths": 12, "replicas": 1}))
    assert alone["coupled"].values[0, 0].tolist() == straight["coupled"].values[2, 0].tolist()


def test_a_flow_is_solved_once_for_each_sample(monkeypatch):
    solved, sample = [], depth._sample
    monkeypatch.setattr(depth, "_sample", lambda study, k: solved.append(k) or sample(study, k))
    depth_study(PLANE, **ARGUMENTS)
    assert sorted(solved) == [0, 1, 2]


# Mistakes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"depths": []}, r"depths: is empty; give at least one"),
        ({"depths": 0}, r"depths: is 0 but must be at least 1"),
        ({"depths": [6, 1.5]}, r"depths: 1.5 is not a whole number"),
        ({"depths": [True]}, r"depths: True is not a whole number"),
        ({"depths": 10**6}, r"depths: is 1000000 but must be at most 1e\+05"),
        ({"n": 0}, r"n: is 0 but must be at least 1"),
        ({"replicas": 0}, r"replicas: is 0 but must be at least 1"),
        ({"p": 0.5}, r"p: is 0.5 but must be at least 1"),
        ({"sampling": "sobl"}, r'sampling: "sobl" is not known; did you mean "sobol"\?'),
        ({"sampling": "quantile"}, r'sampling: "quantile" needs d = 1'),
        ({"times": [0.5], "depths": [4, 6, 9]}, r"times: 0.5 is inside a layer; the nearest .*, with 9 layers"),
        ({"times": [2.0]}, r"times: run from 2 to 2 but must lie in \[0, 1\]"),
        ({"seed": -1}, r"seed: is -1 but must be at least 0"),
        ({"tolerance": 1.0}, r"tolerance: is 1 but must be"),
        ({"exact_up_to": 10**4, "n": 10**4}, r"exact_up_to: is 10000 but exact transport .* n = 6324"),
        ({"tolerence": 1e-8}, r"tolerence: is not an option of depth_study; did you mean \"tolerance\"\?"),
        ({"scheduler": "nowhere"}, r'scheduler: is \'nowhere\'; give "threads"'),
        ({"output": "/nowhere/at/all"}, r'output: "/nowhere/at/all" cannot be made a folder \(No such file'),
    ],
)
def test_mistakes_are_named(options, sentence):
    with pytest.raises(vl.InputError, match="^" + sentence):
        depth_study(PLANE, **({"depths": [2, 4], "n": 4, "replicas": 1} | options))


def test_hardmax_has_no_flow():
    hardmax = vl.Problem(vl.Hardmax(A=A), PLANE.initial, 1.0)
    with pytest.raises(vl.InputError, match="velocities jump, so no solver follows its flow"):
        depth_study(hardmax, depths=[2])


def test_a_study_ends_before_tokens_blow_up():
    """x' = x^3: x = (1 - 2 t)^{-1/2}, which is infinite at t = 1/2; Euler's layers are made here."""
    blows = vl.Problem(vl.ReLU(A=[[1.0]]), vl.Particles([[1.0]]), 0.6)
    study = depth_study(blows)
    assert study["time"].values.tolist() == [0.125]
    for k, layers in enumerate(study["depth"].values):
        x = 1.0
        for _ in range(layers):
            x += 0.125 / layers * x**3
        assert study["coupled"].values[k, 0, 0, 0] == pytest.approx(0.75**-0.5 - x, rel=1e-6)
    assert np.abs(study["slope"].sel(quantity="coupled") + 1).max() < 0.05
    doubt = "the solution blows up at t = 0.5, so that the study ends at a quarter of that, t = 0.125"
    assert study.attrs["doubt"] == doubt
    with pytest.raises(vl.InputError, match=r"^times: run to 0.6, but .* blows up at t = 0.5; choose earlier"):
        depth_study(blows, depths=[2, 4], times=[0.3, 0.6])


# Jumps of parameters


JUMPING = {
    "attention": {"attention": vl.Softmax(A=vl.Piecewise([A, -A, A], [0.0, 0.3, 0.7, 1.0]))},
    "layer_norm": {"layer_norm": vl.LayerNorm(vl.Piecewise([[1, 1], [2, 2]], [0, 0.3, 1]), placement="pre")},
    "mlp": {"mlp": vl.MLP(vl.Piecewise([A, -A], [0.0, 0.3, 1.0]), activation="tanh")},
}


@pytest.mark.parametrize("part", JUMPING)
def test_layers_that_straddle_a_jump_are_refused(part):
    """3/10 of the layers come before the jump: of 20 layers six, of 6, 12, 24, 48 and 96 none is a whole number."""
    around = {"attention": PLANE.attention, "initial": vl.Box([0.5, -1.0], [2.0, 1.0]), "horizon": 1.0}
    problem, small = vl.Problem(**(around | JUMPING[part])), {"n": 4, "replicas": 1, "exact_up_to": 0}
    with pytest.raises(
        vl.InputError,
        match=r"^depths: are 6, 12 and 20, but with 6 and 12 layers a parameter jumps inside a layer, "
        r"at t = 0\.3 with 6; choose multiples of 10$",
    ):
        depth_study(problem, depths=[12, 20, 6], **small)
    study = depth_study(problem, **small)
    assert study["depth"].values.tolist() == [10, 20, 40, 80, 160]
    assert "with 6, 12, 24, 48 and 96 layers a parameter jumps" in study.attrs["doubt"]


def test_jumps_that_no_layers_meet_are_refused():
    never = vl.Problem(vl.Softmax(A=vl.Piecewise([A, -A], [0.0, 1 / np.pi, 1.0])), PLANE.initial, 1.0)
    with pytest.raises(vl.InputError, match=r"are between layers for no number up to 1,000; round them$"):
        depth_study(never, n=4)


def test_a_jump_at_an_end_is_inside_no_layer():
    for edges in ([0.0, 0.5, 1.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 2.0], [0.0, 1.3, 2.0]):
        problem = vl.Problem(vl.Softmax(A=vl.Piecewise([A, -A], edges)), PLANE.initial, 1.0)
        study = depth_study(problem, n=4, replicas=1, exact_up_to=0)
        assert study["depth"].values.tolist() == [6, 12, 24, 48, 96]
        assert "doubt" not in study.attrs


def test_forty_eight_layers_have_the_slope_of_the_theory():
    """Jumps at 1/4, 1/2 and 3/4: six layers would straddle two of them."""
    study = depth_study(vl.load_case("deep-layers").problem, n=32, replicas=2, exact_up_to=0)
    slopes = study["slope"].sel(quantity=["coupled", "mean_error", "covariance_error"])
    assert np.abs(slopes + 1).max() < 0.15
    assert (study["depth"].values % 4 == 0).all()
    assert "with 6 layers a parameter jumps" in study.attrs["doubt"]


def test_dataset_says_what_was_done(straight):
    assert straight.attrs["kind"] == "depth study"
    assert json.loads(straight.attrs["problem"])["attention"]["kind"] == "softmax"
    assert straight.attrs["tokens"] == 20
    assert all("long_name" in variable.attrs for variable in straight.data_vars.values())


def test_functions_of_time_stay_in_memory(tmp_path):
    with pytest.raises(vl.InputError, match="is a Python function"):
        depth_study(PROBLEMS["a moving parameter"], depths=2, n=4, output=tmp_path / "study")


def test_tokens_that_stick_at_the_origin_have_no_flow(monkeypatch):
    monkeypatch.setattr(depth, "_MOST_PAST_JUMPS", 20)
    around = {"layer_norm": vl.LayerNorm(placement="pre"), "mlp": vl.MLP([[-1.0]], activation="identity")}
    stuck = vl.Problem(vl.Softmax(A=[[1.0]], V=[[0.1]]), vl.Particles([[-0.01], [0.02]]), 2.0, **around)
    with pytest.raises(vl.SolverError, match=r"more than .*; pre-norm jumps at the origin, .* the solver \"layers\""):
        depth_study(stuck, depths=[4])
    with pytest.raises(vl.SolverError, match=r"stopped at t = 0\.0.* pre-norm jumps at the origin"):
        vl.solve(stuck, "particles", max_steps=2000)
