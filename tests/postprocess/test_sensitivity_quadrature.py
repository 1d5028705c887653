"""Integrals of rates with kinks, between nodes and next to the ends of steps, against exact ones."""

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess.sensitivity import growth, quadrature
from vlasov.postprocess.sensitivity.path import Path
from vlasov.postprocess.sensitivity.tangency import Tangency

NODES = np.polynomial.legendre.leggauss(3)[0]


def _kinked(place):
    """A rate with a kink, 0.3 + 0.2 t - 0.4 t^2 + 1.5 max(t - place, 0), and its integral to t."""
    rate = lambda t: 0.3 + 0.2 * t - 0.4 * t**2 + 1.5 * np.maximum(t - place, 0)  # noqa: E731
    integral = lambda t: 0.3 * t + 0.1 * t**2 - 0.4 * t**3 / 3 + 0.75 * np.maximum(t - place, 0) ** 2  # noqa: E731
    return rate, integral


@pytest.mark.quick
def test_a_kink_anywhere_is_within_the_error():
    ends = np.array([0.0, 0.3, 0.8, 1.0])
    lengths = np.diff(ends)
    at = ends[:-1, None] + lengths[:, None] * (1 + NODES) / 2
    seen_by_no_node = 0
    for place in np.linspace(0.0, 1.0, 1001):
        rate, integral = _kinked(place)
        off = np.abs(np.cumsum(quadrature.integrals(lengths, rate(at))) - integral(ends[1:]))
        told = np.cumsum(quadrature.errors(lengths, rate(at), rate(0.0), rate(1.0)))
        assert (off <= told + 1e-14).all(), place
        seen_by_no_node += bool(np.abs(ends - place).min() < 0.02 and off[-1] > 1e-6)
    assert seen_by_no_node > 50


@pytest.mark.quick
def test_smooth_rates_have_next_to_no_error():
    lengths, starts = np.full(10, 0.1), np.arange(10) / 10
    at = starts[:, None] + lengths[:, None] * (1 + NODES) / 2
    told = quadrature.errors(lengths, np.exp(at), 1.0, np.e).sum()
    assert abs(quadrature.integrals(lengths, np.exp(at)).sum() - (np.e - 1)) < told < 1e-3


@pytest.mark.quick
@pytest.mark.parametrize("share", [-0.05, 0.05, 0.5])
def test_a_crossing_of_eigenvalues_next_to_the_end_of_a_step(share):
    """x' = V(t) x of a lone token that b does not move: lambda = max(1, b(t)), which cross at a step's end."""
    lone = vl.Particles([[1.0, 0.0]])

    def problem(crossing):
        attention = vl.Softmax(A=np.eye(2), V=lambda t: np.diag([1.0, 1.0 + 5 * (t - crossing)]))
        return vl.Problem(attention, lone, 1.0)

    steps = Path(lone, problem(2.0).flow(), np.array([0.0, 1.0]), 1e-9).steps
    assert len(steps) > 2
    for step in steps[1:]:
        crossing = step.t + share * step.h
        path = Path(lone, problem(crossing).flow(), np.array([0.0, 1.0]), 1e-9)
        found = growth.rates(path, Tangency(problem(crossing)), 1e-6, limit=False)
        off = abs(found.logarithmic[-1] - (1.0 + 2.5 * (1 - crossing) ** 2))
        assert 1e-6 < off <= found.error[-1] < 0.2
