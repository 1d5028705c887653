"""What the bounds of Fourier sums rest on: stencils, the series, and the errors of interpolation along one axis."""

import math
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from vlasov.compiled.workspace import Workspace
from vlasov.summing import fourier
from vlasov.summing.fourier import designs, stencils
from vlasov.summing.fourier.designs import DESIGNS, LEAST_SIZE
from vlasov.summing.fourier.plan import _GROWTH
from vlasov.summing.fourier.series import amplitudes, potential, series
from vlasov.summing.results import Kernel
from vlasov.tilting import Request

OFFSETS = np.linspace(-0.5, 0.5, 41)


def weights(order, kappa, derivative=0):
    """At the offsets, (offsets, p)."""
    table = stencils.table(order, kappa)
    powers = np.arange(order) if derivative == 0 else np.maximum(np.arange(order) - 1, 0)
    factors = np.ones(order) if derivative == 0 else np.arange(order)
    return (factors * OFFSETS[:, None] ** powers) @ table


@pytest.mark.parametrize(("order", "kappa"), [(8, 0.1228), (8, 0.6), (12, 0.2), (20, 0.335)])
def test_stencils_are_exact_for_their_frequencies_and_grow_no_more_than_assumed(order, kappa):
    nodes = np.arange(order) - (order - 1) / 2
    for frequency in stencils.FREQUENCIES[order]:
        angle = frequency * kappa
        exact = np.exp(1j * angle * OFFSETS)
        np.testing.assert_allclose(weights(order, kappa) @ np.exp(1j * angle * nodes), exact, atol=1e-13)
    np.testing.assert_allclose(weights(order, kappa).sum(axis=1), 1, atol=1e-13)
    np.testing.assert_allclose(weights(order, kappa) @ nodes, OFFSETS, atol=1e-13)
    for derivative, growth in enumerate(_GROWTH.get(order, ())):
        assert np.abs(weights(order, kappa, derivative)).sum(axis=1).max() <= growth


@pytest.mark.parametrize("reach", [0.5, 10.0, 300.0])
@pytest.mark.parametrize("error", [1e-5, 1e-12])
def test_the_series_keeps_its_error(reach, error):
    found = series(reach, error)
    assert found.error <= 1.02 * error
    frequencies, sizes = amplitudes(found)
    z = np.linspace(-reach, reach, 501)
    off = np.sin(np.multiply.outer(z, frequencies)) @ (sizes * frequencies) - np.tanh(z / 2) / 2
    assert np.abs(off).max() <= found.error + 1e-14 * (1 + reach)
    assert np.abs(np.diff(potential(z)) / (z[1] - z[0]) - np.tanh((z[1:] + z[:-1]) / 4) / 2).max() < reach**2 / 1e5


def axis_errors(design, size, rng):
    """Slope and value of ``designs`` on samples, for one size S: sources and targets at random, and near the ends."""
    order, kappa, coarse = design[:3]
    half = math.ceil(size / kappa)
    places = np.concatenate([rng.uniform(-1, 1, 8), 1 - rng.uniform(0, 12, 16) * kappa / size, [1.0]])
    places = np.clip(places, -1, 1) * size / kappa
    cells = np.clip(np.floor(places + half), 0, 2 * half - 1).astype(int)
    powers = (places + half - cells - 0.5)[:, None] ** np.arange(order)
    table = stencils.table(order, kappa)
    to_nodes, slopes = np.zeros((2, places.size, 2 * half + order - 1))
    np.put_along_axis(to_nodes, cells[:, None] + np.arange(order), powers @ table, axis=1)
    slope = powers[:, :-1] @ (np.arange(1, order)[:, None] * table[1:])
    np.put_along_axis(slopes, cells[:, None] + np.arange(order), slope / kappa, axis=1)
    even, odd = stencils.halves(order, kappa, coarse, 2 * half)
    folded = [np.concatenate([m[:, :0:-1] * sign, m], axis=1) for m, sign in ((even, 1), (odd, -1))]
    sources, targets, gradients = ([m @ rows.T for m in folded] for rows in (to_nodes, to_nodes, slopes))
    nodes, z = np.arange(len(even)) * (coarse or kappa), np.multiply.outer(places, places) * kappa**2 / size
    period = 2 * size + 25
    frequencies = np.arange(1, 10 * period / math.pi, 2) * math.pi / period
    phases = np.exp(1j * np.multiply.outer(np.linspace(-5, 5, 31), frequencies))
    amplitude = 2 * math.pi / period / np.sinh(math.pi * frequencies)
    errors = np.empty((2, frequencies.size, *z.shape), complex)
    for k, frequency in enumerate(frequencies):
        angle = frequency / size * np.multiply.outer(nodes, nodes)
        exact = np.exp(1j * frequency * z)
        held = np.cos(angle) @ sources[0], 1j * np.sin(angle) @ sources[1]
        value, slope = (rows[0].T @ held[0] + rows[1].T @ held[1] for rows in (targets, gradients))
        off = slope - 1j * frequency * places * kappa / size * exact, value - exact
        errors[:, k] = [amplitude[k] / frequency * off[0] / exact, amplitude[k] * off[1] / exact]
    slope, value = (np.tensordot(phases, part, 1) for part in errors)
    return np.abs(slope.real).max(), np.abs(value.imag).max()


def chosen():
    return [next(d for d in DESIGNS if d.order == order and d.kappa < kappa) for order, kappa in
            [(8, 0.5), (8, 0.24), (8, 0.125), (8, 0.07), (12, 0.26), (12, 0.16)]]  # fmt: skip


@pytest.mark.arithmetic
@pytest.mark.parametrize("design", chosen(), ids=lambda design: f"{design.order}-{design.kappa}")
def test_errors_along_an_axis_are_within_those_of_the_table(design):
    rng = np.random.default_rng(0)
    for size in (LEAST_SIZE, 6.0):
        slope, value = axis_errors(design, size, rng)
        assert slope <= designs._SAMPLED * design.slope
        assert value <= designs._SAMPLED * design.value
    assert slope > design.slope / 5  # and the table is not idle


def test_narrower_steps_err_less():
    for order in (8, 12):
        found = [design for design in DESIGNS if design.order == order and design.kappa > 0.13]
        for wide, narrow in pairwise(found):
            assert narrow.kappa < wide.kappa
            assert narrow.error(2) < wide.error(2)


@pytest.mark.parametrize(("d", "size", "bias"), [(1, 100.0, 0.0), (2, 30.0, 1.0), (3, 5.0, 0.0)])
def test_memory_is_as_planned(d, size, bias):
    rng, workspace, request = np.random.default_rng(0), Workspace(), Request(1e-9)
    points, weights = rng.uniform(-1, 1, (1000, d)), np.full(1000, 1e-3)
    plan = fourier.plan(points, weights, size * points, Kernel("sigmoid", bias), request)
    tracemalloc.start()
    fourier.evaluate(plan, points, weights, size * points, request, workspace)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert plan.memory / 10 < peak <= 1.1 * plan.memory
