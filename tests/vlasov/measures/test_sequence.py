"""Sequences of laws, and tokens that have places."""

import numpy as np
import pytest

import vlasov as vl

GAUSSIAN, BOX = vl.Gaussian([1.0, 0.0], 0.2 * np.eye(2)), vl.Box([-1.0, 0.0], [1.0, 1.0])
TEXT = vl.Sequence([GAUSSIAN, BOX, GAUSSIAN], [0.0, 0.2, 0.7, 1.0])
LINE = vl.Sequence([vl.Gaussian([0.0], [[1.0]]), vl.Mixture([vl.Box([0.0], [2.0]), vl.Gaussian([5.0], [[0.1]])])])


@pytest.mark.quick
def test_in_what_is_not_about_s_it_is_the_mixture():
    mixture = vl.Mixture([GAUSSIAN, BOX, GAUSSIAN], [0.2, 0.5, 0.3])
    x = np.random.default_rng(0).normal(size=(5, 2))
    assert TEXT.mean == pytest.approx(mixture.mean, abs=1e-15)
    assert TEXT.covariance == pytest.approx(mixture.covariance, abs=1e-15)
    assert TEXT.density(x) == pytest.approx(mixture.density(x), abs=1e-15)
    assert TEXT.tilted(x).mean == pytest.approx(mixture.tilted(x).mean, abs=1e-14)
    edges = [np.linspace(-4, 4, 9)] * 2
    assert TEXT.on_grid(edges).values == pytest.approx(mixture.on_grid(edges).values, abs=1e-15)
    image = TEXT.image(2 * np.eye(2), [1.0, 1.0])
    assert isinstance(image, vl.Sequence)
    assert image.mean == pytest.approx(2 * mixture.mean + 1, abs=1e-14)
    assert np.array_equal(image.edges, TEXT.edges)


@pytest.mark.quick
@pytest.mark.parametrize("sequence", [TEXT, LINE])
@pytest.mark.parametrize("sampling", ["random", "sobol"])
def test_samples_have_the_law_of_their_part(sequence, sampling):
    cloud = sequence.sample(20_000, sampling, seed=1)
    assert (np.diff(cloud.s) >= 0).all()
    assert cloud.s == pytest.approx((np.arange(20_000) + 0.5) / 20_000, abs=0.015)  # uniform
    for part, low, high in zip(sequence.measures, sequence.edges, sequence.edges[1:], strict=False):
        inside = cloud.points[(low <= cloud.s) & (cloud.s < high)]
        assert len(inside) == pytest.approx(20_000 * (high - low), rel=0.05)
        assert inside.mean(axis=0) == pytest.approx(part.mean, abs=0.06)
        assert np.cov(inside.T).reshape(part.covariance.shape) == pytest.approx(part.covariance, rel=0.1, abs=0.03)


def test_quadrature_has_the_moments_of_each_prefix_at_the_ends_of_parts():
    rule = TEXT.quadrature(4)
    for place in TEXT.edges[1:]:
        seen, law = rule.prefix(place), TEXT.prefix(place)
        assert seen.mean == pytest.approx(law.mean, abs=1e-13)
        assert seen.covariance == pytest.approx(law.covariance, abs=1e-13)
    assert sorted(set(np.diff(rule.s[rule.s < 0.2]).round(12))) == pytest.approx([0.0, 0.05])


def test_prefixes_of_one_law_are_that_law():
    rule = vl.Sequence([GAUSSIAN]).sample(100, "quadrature")
    assert set(rule.s) == {0.5}
    assert np.array_equal(rule.points, GAUSSIAN.sample(100, "quadrature").points)
    assert vl.Sequence([GAUSSIAN]).prefix(0.3) is GAUSSIAN


def test_particles_keep_their_places():
    cloud = vl.Particles([[0.0], [1.0], [2.0]], [0.2, 0.0, 0.8], s=[0.1, 0.4, 0.3])
    drawn = cloud.sample(200, seed=3)
    assert set(zip(drawn.points[:, 0], drawn.s, strict=True)) == {(0.0, 0.1), (2.0, 0.3)}
    assert np.array_equal(drawn.points, vl.Particles(cloud.points, cloud.weights).sample(200, seed=3).points)
    assert np.array_equal(cloud.image([[2.0]], [1.0]).s, cloud.s)
    assert np.array_equal(cloud.moved(cloud.points + 1).s, cloud.s)
    assert cloud.sample(5, "quadrature") is cloud
    assert np.array_equal(cloud.prefix(0.3).points, [[0.0], [2.0]])
    assert cloud != vl.Particles(cloud.points, cloud.weights)
    assert not cloud.s.flags.writeable


MISTAKES = {
    "entry 1 is 1.2; places in a sequence lie in": lambda: vl.Particles([[0.0], [1.0]], s=[0.5, 1.2]),
    r"has shape \(1,\) where \(2,\) is needed": lambda: vl.Particles([[0.0], [1.0]], s=[0.5]),
    "s: entry .0. is nan": lambda: vl.Particles([[0.0], [1.0]], s=[np.nan, 0.5]),
    "edges: has 3 numbers for 1 measures": lambda: vl.Sequence([GAUSSIAN], [0, 0.5, 1]),
    "edges: is .* but must increase from 0 to 1": lambda: vl.Sequence([GAUSSIAN, BOX], [0, 1, 1]),
    "measures: is empty": lambda: vl.Sequence([]),
    "measures.0.: has places in a sequence of its own": lambda: vl.Sequence([TEXT]),
    "the order is Sequence": lambda: vl.Sequence([1.0]),
    "leaves no place for s": lambda: LINE.sample(5, "quantile"),
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_mistakes_get_a_sentence(sentence):
    with pytest.raises(vl.InputError, match=sentence):
        MISTAKES[sentence]()
