"""What CONTRIBUTING promises: an attention and a measure of one's own in thirty lines, for all solvers that can."""

import inspect
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.linalg import expm

import vlasov as vl
from vlasov.attention import Attention
from vlasov.cli.app import app
from vlasov.measures import Measure
from vlasov.measures.quadrature import legendre
from vlasov.tilting import Field


@dataclass(frozen=True, eq=False)
class Shifted(Attention, kind="shifted"):
    """Gamma_mu(x) + s: tokens that drift."""

    attention: Attention
    shift: np.ndarray

    def heads_at(self, t=0.0):
        return None

    @property
    def equivariant(self):
        return self.attention.equivariant

    @property
    def shape(self):
        return self.attention.shape

    @property
    def parameters(self):
        return self.attention.parameters

    def values(self, t=0.0):
        return self.attention.values(t)

    def evaluate(self, measure, x, *arguments, **keywords):
        field = self.attention.evaluate(measure, x, *arguments, **keywords)
        return field._replace(values=np.add(field.values, self.shift, out=field.values))

    def jacobian(self, measure, x, t=0.0):
        return self.attention.jacobian(measure, x, t)

    def affine(self, gaussian, t=0.0):
        b, slope = self.attention.affine(gaussian, t)
        return b + self.shift, slope


@dataclass(frozen=True, eq=False)
class Triangle(Measure, kind="triangle"):
    """The density 1 - |x| on [-1, 1]."""

    dimension, support_radius = 1, 1.0
    mean, covariance = np.zeros(1), np.eye(1) / 6
    support_box = -np.ones(1), np.ones(1)

    def density(self, x):
        return np.maximum(1 - np.abs(self.at(x)[:, 0]), 0.0)

    def from_cube(self, u):
        return np.where(u < 0.5, np.sqrt(2 * u) - 1, 1 - np.sqrt(2 * (1 - u)))

    def cumulative(self, x):
        tail = (1 - np.minimum(np.abs(x), 1.0)) ** 2 / 2
        return np.where(x < 0, tail, 1 - tail)

    def quadrature(self, nodes):
        unit, weights = legendre(nodes)
        x = np.concatenate([(unit - 1) / 2, (unit + 1) / 2])
        return vl.Particles(x[:, None], np.tile(weights / 2, 2) * 2 * self.density(x[:, None]))


A, V = np.array([[0.6, 0.3], [-0.2, 0.5]]), np.array([[-0.4, 0.3], [-0.3, -0.5]])
SHIFT = np.array([0.7, -0.2])


@pytest.mark.quick
@pytest.mark.parametrize("toy", [Shifted, Triangle])
def test_thirty_lines(toy):
    lines = [line for line in inspect.getsource(toy).split("\n")[2:] if line.strip()]
    assert len(lines) <= 30


@pytest.mark.parametrize(
    ("solver", "options", "allowed"),
    [
        ("gaussian", {}, 1e-9),
        ("particles", {"n": 900, "sampling": "quadrature"}, 1e-7),
        ("finite-volume", {"cells": 64}, 1e-7),
        ("finite-volume", {"cells": 96, "frame": "fixed", "extent": 8.0}, 1e-3),
    ],
)
def test_all_solvers_take_an_attention_of_ones_own(solver, options, allowed):
    """Without tilts the mean obeys alpha' = V alpha + s; with them all solvers agree with the Gaussian's."""
    start = vl.Gaussian([1.0, -0.5], [[0.5, 0.1], [0.1, 0.3]])
    plain = vl.Problem(Shifted(vl.Softmax(A=np.zeros((2, 2)), V=V), SHIFT), start, 1.0)
    steady = np.linalg.solve(V, -SHIFT)
    end = vl.solve(plain, solver, times=[1.0], **options)
    assert end["mean"].values[0] == pytest.approx(steady + expm(V) @ (start.mean - steady), abs=allowed)
    tilted = replace(plain, attention=Shifted(vl.Softmax(A=A, V=V), SHIFT))
    ours, exact = vl.solve(tilted, solver, times=[1.0], **options), vl.solve(tilted, "gaussian", times=[1.0])
    assert ours["mean"].values == pytest.approx(exact["mean"].values, abs=allowed)
    assert ours["covariance"].values == pytest.approx(exact["covariance"].values, abs=allowed)


def test_all_solvers_take_a_measure_of_ones_own():
    problem = vl.Problem(vl.Softmax(A=[[1.5]], V=[[-1.0]]), Triangle(), 1.0)
    fine = vl.solve(problem, "particles", n=64, sampling="quadrature", times=[1.0])
    for n, sampling, allowed in ((4000, "quantile", 1e-5), (4096, "sobol", 1e-3)):
        ours = vl.solve(problem, "particles", n=n, sampling=sampling, times=[1.0])
        assert float(ours["covariance"][0, 0, 0]) == pytest.approx(float(fine["covariance"][0, 0, 0]), abs=allowed)
    ours = vl.solve(problem, "finite-volume", frame="fixed", cells=512, times=[1.0])
    assert float(ours["covariance"][0, 0, 0]) == pytest.approx(float(fine["covariance"][0, 0, 0]), abs=1e-4)
    with pytest.raises(vl.InputError, match="is a triangle, but"):
        vl.solve(problem, "gaussian")


@pytest.mark.quick
def test_measures_of_ones_own_can_be_tilted():
    """The tilted mean of the triangle is that of its quadrature, and log Z = 2 log(sinh(xi/2) / (xi/2))."""
    xi = np.array([[0.5], [-3.0], [20.0]])
    exact = 2 * np.log(np.sinh(xi[:, 0] / 2) / (xi[:, 0] / 2))
    assert Triangle().tilted(xi).log_mass == pytest.approx(exact, rel=1e-12)
    assert Triangle().tilted(xi).mean[:, 0] == pytest.approx(1 / np.tanh(xi[:, 0] / 2) - 2 / xi[:, 0], rel=1e-12)


class Contracting(Shifted, kind="contracting"):
    """-x, in memory of its own, whatever memory it is given."""

    def evaluate(self, measure, x, *arguments, **keywords):
        return Field(-x, "closed form", 0.0)


def test_an_attention_of_ones_own_need_not_write_where_it_is_told():
    points = np.array([[1.0, 2.0], [-0.5, 0.25]])
    problem = vl.Problem(Contracting(vl.Softmax(A=A, V=V), SHIFT), vl.Particles(points), 1.0)
    assert problem.flow().velocity(problem.initial, points, 0.0, out=(out := np.full((2, 2), np.nan))).values is out
    end = vl.solve(problem, "particles", times=[1.0])
    assert end["position"].values[0] == pytest.approx(np.exp(-1) * points, rel=1e-7)


WITHOUT = r"^attention: is {}, which says no derivative; its class must have linearised\(\)$"


def test_an_attention_of_ones_own_without_derivative_is_refused_by_sensitivity(tmp_path, monkeypatch):
    """Alone, as one of several heads, within a block, and of a run: before any work."""
    own, start = Shifted(vl.Softmax(A=A, V=V), SHIFT), vl.Gaussian([1.0, -0.5], 0.3 * np.eye(2))
    problem = vl.Problem(own, start, 0.2)
    cloud = vl.solve(problem, "particles", n=16, sampling="quadrature", times=[0.0, 0.2])
    heads = problem.changed(attention=vl.MultiHead([vl.Softmax(A=A), own]))
    masked = vl.Problem(vl.Masked(vl.MultiHead([vl.Softmax(A=A), own])), vl.Particles([[1.0, 0.0]], s=[0.5]), 0.2)
    for asked in (problem, cloud, heads, problem.changed(mlp=vl.MLP(np.eye(2))), masked):
        with pytest.raises(vl.InputError, match=WITHOUT.format("shifted")):
            vl.sensitivity(asked)
    (tmp_path / "own.toml").write_text(
        """
        title = "Own"
        description = "An attention of one's own."
        paper = "none"
        horizon = 0.2
        attention = {kind = "shifted", shift = [0.7, -0.2], attention = {kind = "softmax", A = [[0.6, 0.3], [0, 0.5]]}}
        initial = {kind = "gaussian", mean = [1, 0], covariance = [[1, 0], [0, 1]]}
        solvers = {particles = {n = 16}}
        """
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(vl.InputError, match=WITHOUT.format("shifted")):
        app(["sensitivity", "own.toml"], standalone_mode=False)
    assert [path.name for path in tmp_path.iterdir()] == ["own.toml"]


def test_a_comparison_tells_of_an_attention_without_derivative():
    problem = vl.Problem(Shifted(vl.Softmax(A=A, V=V), SHIFT), vl.Gaussian([1.0, -0.5], 0.3 * np.eye(2)), 0.2)
    runs = [vl.solve(problem, "particles", n=n, sampling="quadrature", times=[0.0, 0.2]) for n in (16, 25)]
    found = vl.compare(*runs, local=True)
    assert np.isfinite(found["wasserstein"]).all()
    assert np.isnan(found["optimal_growth"]).all()
    assert "is shifted, which says no derivative; its class must have linearised()" in found.attrs["doubt"]
