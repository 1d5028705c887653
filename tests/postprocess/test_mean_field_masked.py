"""The mean-field study of masked attention: paths of the limit, place by place, and rates."""

import numpy as np
import pytest

import vlasov as vl
from tests import references
from vlasov import patience
from vlasov.postprocess.mean_field import limit as limits, mean_field_study
from vlasov.postprocess.mean_field.choice import Choice
from vlasov.postprocess.mean_field.show import notes
from vlasov.postprocess.studies.slopes import expected_slope
from vlasov.solvers.replicas import TimeGrid

EDGE, HORIZON = 0.4, 0.5
STEPS = TimeGrid((0.0, HORIZON), (0.0, HORIZON), (3,))
LAWS = [vl.Box(-1.0, 0.0), vl.Box(1.0, 2.0)]
TEXT = vl.Sequence(LAWS, [0.0, EDGE, 1.0])
MASKED = vl.Masked(vl.Softmax(A=[[0.8]], V=[[-0.7]]))


def limit_of(attention, initial=TEXT, nodes=12):
    problem = vl.Problem(attention, initial, HORIZON)
    return limits.solve(problem, Choice("quadrature", nodes, STEPS), tolerance=1e-9)


def test_paths_in_a_text_of_linear_attention():
    limit, places = limit_of(vl.Masked(vl.Linear(A=[[0.7]], V=[[-0.9]]))), np.array([0.0, 0.2, 0.403, 0.45, 0.7, 1.0])
    s, g, (_, second) = references.linear_text(-0.63, EDGE, [(-0.5, 1 / 3), (1.5, 7 / 3)], HORIZON)
    factors = np.interp(places, s, g)
    x = np.where(places < EDGE, -0.5, 1.5)
    found = limit.flow(x[None, :, None], places[None])[-1, 0, :, 0]
    assert found == pytest.approx(factors * x, abs=2e-6)
    assert limit.covariances[-1, 0, 0] + limit.means[-1, 0] ** 2 == pytest.approx(second, abs=2e-6)


def test_heads_without_masks_see_the_whole_text():
    """A head of no value changes nothing; masks over both halves of a head are one mask over it."""
    x, places = np.linspace(-1, 2, 6)[None, :, None], np.array([[0.1, 0.3, 0.41, 0.6, 0.8, 1.0]])
    one = limit_of(MASKED, nodes=6).flow(x, places)
    blind = vl.MultiHead([MASKED, vl.Softmax(A=[[0.5]], V=[[0.0]])])
    assert limit_of(blind, nodes=6).flow(x, places) == pytest.approx(one, abs=1e-8)
    seeing = vl.MultiHead([vl.Masked(vl.Softmax(A=[[0.8]], V=[[0.0]])), vl.Softmax(A=[[0.5]], V=[[0.6]])])
    exact = limit_of(vl.Softmax(A=[[0.5]], V=[[0.6]]), vl.Mixture(LAWS, [EDGE, 1 - EDGE]))
    assert limit_of(seeing, nodes=6).flow(x, places)[-1] == pytest.approx(exact.flow(x)[-1], abs=1e-7)


def test_velocities_are_exact_where_the_law_is_known():
    """At time zero, however few nodes follow it."""
    laws = [vl.Gaussian(-1.0, 0.3), vl.Gaussian(1.0, 0.2)]
    limit = limit_of(vl.Masked(vl.Softmax(A=[[3.0]], V=[[-1.0]])), vl.Sequence(laws, [0.0, EDGE, 1.0]), nodes=4)
    x, masses = 3 * limit.probes[:, 0], []
    for share, mean, variance in ((EDGE, -1.0, 0.3), (1 - EDGE, 1.0, 0.2)):  # Z and m of a tilted Gaussian
        masses.append((share * np.exp(x * mean + variance * x * x / 2), mean + variance * x))
    exact = -sum(mass * center for mass, center in masses) / sum(mass for mass, _ in masses)
    assert limit.velocities[0, :, 0] == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("initial", [TEXT, vl.Particles([[0.1], [0.7]], s=[0.2, 0.6])], ids=["text", "tokens"])
def test_a_limit_that_takes_long_says_so(initial, monkeypatch):
    monkeypatch.setattr(patience, "LONG", 0.0)
    sinkhorn = vl.Problem(vl.Masked(vl.Sinkhorn(A=[[0.8]])), initial, HORIZON)
    with pytest.warns(vl.SlowRunWarning, match="the limit of the study takes long: .* so far; lower n, loosen the"):
        limit = limits.solve(sinkhorn, Choice("quadrature", 2, STEPS), tolerance=1e-4)
    limit.patience.told = False
    with pytest.warns(vl.SlowRunWarning, match="takes long"):  # those that move beside it
        limit.flow(np.zeros((1, 2, 1)), np.array([[0.3, 0.9]]))


def test_tokens_that_are_given_are_their_own_limit():
    cloud = vl.Particles([[-1.0], [0.5], [0.7], [1.2]], s=[0.0, 0.3, 0.3, 0.9])
    limit = limit_of(MASKED, cloud)
    run = vl.solve(vl.Problem(MASKED, cloud, HORIZON), "particles", times=[0.0, HORIZON], tolerance=1e-9)
    assert limit.flow(cloud.points[None], cloud.s[None])[-1, 0] == pytest.approx(run["position"].values[-1], abs=1e-8)


def test_rates_in_a_text():
    found = mean_field_study(vl.Problem(MASKED, TEXT, 0.2), n=[16, 128], replicas=12, p=[1, 2], tolerance=1e-4)
    ends = found.sel(quantity="coupled", p=1).isel(sampling=0, time=-1)
    assert float(ends["slope"]) == pytest.approx(-0.5, abs=0.15)
    assert float(ends["low"]) <= -0.5 <= float(ends["high"])
    assert found["reference_error"].max() < 0.05 * found["coupled"].isel(time=-1).min()
    assert found["expected"].sel(quantity="coupled").values.tolist() == [[-0.5, -0.5]]
    assert np.isfinite(found["wasserstein"]).all()
    for bound in ("a_priori_bound", "a_posteriori_estimate"):  # theirs is another distance
        assert np.isnan(found[bound]).all()
    assert "laws of x alone" in found.attrs["measured"]
    assert "Masked: tokens with places s" in "\n".join(notes(found))


def test_a_product_law_has_the_limit_without_the_mask():
    law = vl.Gaussian([0.3, -0.1], [[0.1, 0.02], [0.02, 0.05]])
    attention = vl.Softmax(A=[[0.6, 0.2], [0.0, 0.6]])
    masked = mean_field_study(vl.Problem(vl.Masked(attention), law, HORIZON), n=[16, 128], replicas=12, p=1)
    plain = mean_field_study(vl.Problem(attention, law, HORIZON), n=[4], replicas=1, p=1)
    assert masked.attrs["reference"] == "gaussian"
    for name in ("limit_mean", "limit_covariance"):
        assert masked[name].values == pytest.approx(plain[name].values, abs=1e-12)
    ends = masked.sel(quantity="coupled").isel(sampling=0, time=-1, p=0)
    assert float(ends["low"]) <= -0.5 <= float(ends["high"])


def test_a_replica_in_a_text_does_not_depend_on_the_others(tmp_path):
    problem, how = vl.Problem(MASKED, TEXT, 0.2), {"p": 1, "tolerance": 1e-3, "times": [0.2]}
    straight = mean_field_study(problem, n=[8, 16], replicas=3, sampling=["random", "sobol"], **how)
    alone = mean_field_study(problem, n=[16], replicas=1, sampling="sobol", output=tmp_path / "study", **how)
    kept = straight["coupled"].sel(sampling="sobol", n=16, replica=0).values
    assert alone["coupled"].values[0, 0, 0].tolist() == kept.tolist()
    again = mean_field_study(problem, n=[16], replicas=1, sampling="sobol", output=tmp_path / "study", **how)
    assert again.drop_attrs().identical(alone.drop_attrs())


@pytest.mark.quick
def test_what_the_first_tokens_leave_of_a_rate():
    def slopes(sampling, quantity, *orders):
        return [expected_slope(quantity, sampling, 1, p=p, masked=True) for p in orders]

    assert slopes("random", "coupled", 1, 2, 4) == [-0.5, -0.5, -0.25]
    assert slopes("sobol", "coupled", 1, 2) == [-1.0, -0.5]
    assert np.isnan(slopes("random", "wasserstein", 4)).all()
    assert slopes("random", "mean_error", 4) == [-0.5]


@pytest.mark.parametrize(
    ("initial", "options", "sentence"),
    [
        (TEXT, {"reference": "finite-volume"}, 'reference: "finite-volume" does not know how slices of a text err'),
        (TEXT, {"reference": "quantile"}, 'reference: "quantile" leaves no place for s'),
        (TEXT, {"sampling": "quantile"}, 'sampling: "quantile" leaves no place for s'),
        (TEXT, {"reference": "gaussian"}, 'reference: "gaussian" needs a Gaussian initial measure'),
        (
            vl.Sequence([LAWS[0], LAWS[1].on_grid([np.linspace(1, 2, 9)])]),
            {},
            r"initial: measures\[1\] is a density on a grid, of which no finer nodes are known",
        ),
    ],
)
def test_limits_that_nobody_knows(initial, options, sentence):
    with pytest.raises(vl.InputError, match=sentence):
        mean_field_study(vl.Problem(MASKED, initial, 0.2), n=[8], replicas=1, **options)
