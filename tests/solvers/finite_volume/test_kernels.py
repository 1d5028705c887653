"""Finite volumes against NumPy, against exact integrals, and against the laws that they keep."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from vlasov.solvers.finite_volume.fluxes import SPARE, Fluxes
from vlasov.solvers.finite_volume.schemes import SCHEMES

SHAPES = [(1,), (2,), (9,), (1, 1), (1, 4), (3, 1), (2, 2), (8, 7), (1, 1, 1), (2, 1, 3), (4, 2, 1), (5, 6, 7)]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(5)


# ---- NumPy's version ------------------------------------------------------------------------------------------------


def upwind5(a, b, c, d, e):
    return (2 * a - 13 * b + 47 * c + 27 * d - 3 * e) / 60


def weno5(a, b, c, d, e):
    thirds = [(2 * a - 7 * b + 11 * c) / 6, (-b + 5 * c + 2 * d) / 6, (2 * c + 5 * d - e) / 6]
    rough = [
        13 / 12 * (a - 2 * b + c) ** 2 + (a - 4 * b + 3 * c) ** 2 / 4,
        13 / 12 * (b - 2 * c + d) ** 2 + (b - d) ** 2 / 4,
        13 / 12 * (c - 2 * d + e) ** 2 + (3 * c - 4 * d + e) ** 2 / 4,
    ]
    least = 1e-14 * sum(x**2 for x in (a, b, c, d, e)) + 1e-300
    weights = [g * (1 + (abs(rough[0] - rough[2]) / (r + least)) ** 2) for g, r in zip((1, 6, 3), rough, strict=True)]
    return sum(w * q for w, q in zip(weights, thirds, strict=True)) / sum(weights)


def muscl(a, b, c, d, e):
    slopes = np.array([2 * (c - b), 2 * (d - c), (d - b) / 2])
    same = (slopes > 0).all(axis=0) | (slopes < 0).all(axis=0)
    return c + np.where(same, np.sign(slopes[2]) * np.abs(slopes).min(axis=0), 0) / 2


def upwind(a, b, c, d, e):
    return c


RECONSTRUCTIONS = {"upwind5": upwind5, "weno5": weno5, "muscl": muscl, "upwind": upwind}


def around(values, axis, width):
    pad = [(0, 0)] * values.ndim
    pad[axis] = (width, width)
    return np.pad(values, pad)


def numpy_flux(scheme, f, w, axis):
    stencil = np.lib.stride_tricks.sliding_window_view(around(f, axis, 3), 6, axis=axis)
    q = np.moveaxis(stencil, -1, 0)
    face = RECONSTRUCTIONS[scheme.compiled.py_func.__name__]
    value = np.where(w >= 0, face(*q[:5]), face(*q[:0:-1]))
    flux = w * value
    for other in range(f.ndim):
        if scheme.corrected and other != axis and f.shape[other] > 1:
            wide = around(value, other, 1)
            n = f.shape[other]
            change = np.take(wide, range(2, n + 2), other) - np.take(wide, range(n), other)
            flux += np.gradient(w, axis=other) * change / 24
    return flux


def numpy_limited(f, fluxes, ratios):
    """A loop over faces, with Python's numbers."""
    fluxes = [flux.copy() for flux in fluxes]
    outflow = np.zeros(f.shape)
    for axis, flux in enumerate(fluxes):
        moved = np.moveaxis(flux, axis, 0)
        moved[0], moved[-1] = moved[0].clip(None, 0), moved[-1].clip(0)
        outflow += ratios[axis] * np.moveaxis(moved[1:].clip(0) - moved[:-1].clip(None, 0), 0, axis)
    allowed = np.where(outflow > f, f / np.where(outflow > 0, outflow, 1), 1)
    new, left = f.copy(), 0.0
    for axis, flux in enumerate(fluxes):
        for index in np.ndindex(flux.shape):
            upper = tuple(index)
            lower = tuple(i - (k == axis) for k, i in enumerate(index))
            inside = (lower[axis] >= 0, upper[axis] < f.shape[axis])
            source = lower if flux[index] > 0 else upper
            moved_mass = ratios[axis] * flux[index] * (allowed[source] if flux[index] != 0 else 0)
            if inside[0]:
                new[lower] -= moved_mass
            if inside[1]:
                new[upper] += moved_mass
            if not inside[0]:
                left -= moved_mass
            if not inside[1]:
                left += moved_mass
    return new, left, int((outflow > f).sum())


def face_coordinates(fluxes, axis):
    """Centres of the faces normal to an axis."""
    lines = [
        low + h * (np.arange(n + (k == axis)) + 0.5 * (k != axis))
        for k, (low, h, n) in enumerate(zip(fluxes.lower, fluxes.widths, fluxes.cells, strict=True))
    ]
    return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)


def on_faces(fluxes):
    """The velocities that an object holds, without the axes that the kernels add."""
    d = len(fluxes.cells)
    return [w.reshape(w.shape[3 - d :]) for w in fluxes._velocities[3 - d :]]


def kept(fluxes, stage):
    d = len(fluxes.cells)
    return [F[stage].reshape(F.shape[4 - d :]).copy() for F in fluxes._fluxes[3 - d :]]


def random_problem(cells, name="upwind5", seed=0):
    rng = np.random.default_rng(seed)
    d = len(cells)
    fluxes = Fluxes(SCHEMES[name], rng.normal(size=d), rng.uniform(0.5, 2, size=d), cells)
    fluxes.remember(0, rng.normal(size=(*(n + 1 for n in cells), d)))
    fluxes.velocities([1.0], np.zeros(d), np.zeros((d, d)))
    return fluxes, rng.uniform(0, 1, size=cells)


def full_step(fluxes, f, dt):
    state = np.empty_like(f)
    fluxes.flux(0, f)
    for number in range(1, fluxes.scheme.tableau.stages):
        fluxes.flux(number, fluxes.stage(number, f, dt, state))
    new = np.empty_like(f)
    return new, fluxes.finish(f, dt, new)


# ---- velocities -----------------------------------------------------------------------------------------------------


def polynomial_mean(fluxes, axis, powers):
    """Mean of prod_k z_k^powers[k] over faces normal to ``axis``."""
    mean = 1.0
    for k, (low, h, n) in enumerate(zip(fluxes.lower, fluxes.widths, fluxes.cells, strict=True)):
        z, p = low + h * np.arange(n + 1), powers[k]
        line = z**p if k == axis else np.diff(z ** (p + 1)) / (p + 1) / h
        mean = np.multiply.outer(mean, line)
    return mean


@pytest.mark.parametrize("cells", [(3,), (3, 5), (4, 3, 6)])
@pytest.mark.parametrize("powers", [(3, 3, 3), (1, 2, 0), (0, 3, 1)])
def test_face_means_are_exact_for_cubics(cells, powers):
    d = len(cells)
    fluxes = Fluxes(SCHEMES["upwind5"], np.linspace(-1, 0.3, d), np.linspace(0.2, 0.4, d), cells)
    lines = [low + h * np.arange(n + 1) for low, h, n in zip(fluxes.lower, fluxes.widths, cells, strict=True)]
    value = np.prod([z ** powers[k] for k, z in enumerate(np.meshgrid(*lines, indexing="ij"))], axis=0)
    fluxes.remember(0, np.stack([(k + 1) * value for k in range(d)], axis=-1))
    fluxes.velocities([1.0], np.zeros(d), np.zeros((d, d)))
    for k, w in enumerate(on_faces(fluxes)):
        np.testing.assert_allclose(w, (k + 1) * polynomial_mean(fluxes, k, powers), rtol=0, atol=1e-14)


@pytest.mark.parametrize("cells", SHAPES)
def test_affine_velocities_are_exact_on_any_grid_and_can_be_subtracted(cells):
    fluxes, _ = random_problem(cells)
    rng = np.random.default_rng(1)
    d = len(cells)
    constant, slopes = rng.normal(size=d), rng.normal(size=(d, d))
    lines = [low + h * np.arange(n + 1) for low, h, n in zip(fluxes.lower, fluxes.widths, cells, strict=True)]
    nodes = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)
    fluxes.remember(0, constant + nodes @ slopes.T)
    fluxes.velocities([1.0], np.zeros(d), np.zeros((d, d)))
    for k, w in enumerate(on_faces(fluxes)):
        np.testing.assert_allclose(w, constant[k] + face_coordinates(fluxes, k) @ slopes[k], atol=1e-13)
    fluxes.velocities([1.0], constant, slopes)
    for w in on_faces(fluxes):
        np.testing.assert_allclose(w, 0, atol=1e-13)


@pytest.mark.parametrize("cells", [(5,), (4, 5), (3, 4, 5)])
def test_levels_are_weighted(cells):
    fluxes, _ = random_problem(cells)
    rng = np.random.default_rng(2)
    d, levels = len(cells), []
    for level in range(SPARE + 1):
        fluxes.remember(level, rng.normal(size=(*(n + 1 for n in cells), d)))
        fluxes.velocities(np.arange(SPARE + 1) == level, np.zeros(d), np.zeros((d, d)))
        levels.append([w.copy() for w in on_faces(fluxes)])
    for weights in ([0.5, -1.0, 2.0, 0.3, 0.0], [0.0, 1.0, 0.0, -2.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [3.0]):
        fluxes.velocities(weights, np.zeros(d), np.zeros((d, d)))
        for k, w in enumerate(on_faces(fluxes)):
            expected = sum(c * level[k] for c, level in zip(weights, levels, strict=False))
            np.testing.assert_allclose(w, expected, atol=1e-14)


def test_a_level_of_weight_zero_is_not_read():
    fluxes, _ = random_problem((4, 5))
    fluxes.remember(1, np.full((5, 6, 2), np.nan))
    fluxes.velocities([1.0, 0.0], np.zeros(2), np.zeros((2, 2)))
    assert all(np.isfinite(w).all() for w in on_faces(fluxes))


@pytest.mark.parametrize("cells", SHAPES)
def test_rate(cells):
    fluxes, f = random_problem(cells)
    total = np.zeros(cells)
    for k, w in enumerate(on_faces(fluxes)):
        pairs = np.abs(np.lib.stride_tricks.sliding_window_view(w, 2, axis=k)).max(axis=-1)
        total += pairs / fluxes.widths[k]
    assert fluxes.rate(f, -1.0) == pytest.approx(total.max(), rel=1e-14)
    expected = np.where(f > 0.5, total, 0).max()
    assert fluxes.rate(f, 0.5) == pytest.approx(expected, rel=1e-14)


def test_rate_does_not_hide_a_nan():
    fluxes, f = random_problem((6, 7))
    fluxes._velocities[2][0, 2, 3] = np.nan
    assert math.isnan(fluxes.rate(f, 0.0))


# ---- fluxes ---------------------------------------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("cells", SHAPES)
def test_fluxes_are_those_of_numpy(cells, name):
    fluxes, f = random_problem(cells, name)
    fluxes.flux(0, f)
    for axis, (flux, w) in enumerate(zip(kept(fluxes, 0), on_faces(fluxes), strict=True)):
        np.testing.assert_allclose(flux, numpy_flux(fluxes.scheme, f, w, axis), atol=1e-14)


@pytest.mark.parametrize("name", SCHEMES)
def test_schemes_commute_with_multiplication(name):
    fluxes, f = random_problem((7, 8), name)
    fluxes.flux(0, f)
    before = kept(fluxes, 0)
    fluxes.flux(0, f * 2.0**-300)
    for a, b in zip(before, kept(fluxes, 0), strict=True):
        np.testing.assert_allclose(b * 2.0**300, a, atol=1e-14)


def cell_means(function, lower, h, cells):
    """Means over cells by Gauss-Legendre quadrature; ``function`` takes coordinates along each axis."""
    lines = [low + w * (np.arange(n)[:, None] + 0.5 + NODES / 2) for low, w, n in zip(lower, h, cells, strict=True)]
    values = function(*np.meshgrid(*(line.ravel() for line in lines), indexing="ij"))
    for k in range(len(cells)):
        shape = (*values.shape[:k], cells[k], len(NODES), *values.shape[k + 1 :])
        values = np.tensordot(values.reshape(shape), WEIGHTS / 2, axes=(k + 1, 0))
    return values


def bump(*z):
    return np.exp(-sum((x - 0.1 * k) ** 2 for k, x in enumerate(z)) * 2)


def wind(*z):
    """Velocities that change sign, and all transversal derivatives."""
    return [np.sin(sum(z) * 0.7 + 0.4 * z[k] + k) for k in range(len(z))]


def divergence_error(name, cells):
    """L1 error of the mean divergence of f u over cells."""
    d = len(cells)
    lower, h = [-4.5] * d, [9 / n for n in cells]
    fluxes = Fluxes(SCHEMES[name], lower, h, cells)
    nodes = np.meshgrid(*[np.linspace(-4.5, 4.5, n + 1) for n in cells], indexing="ij")
    fluxes.remember(0, np.stack(wind(*nodes), axis=-1))
    fluxes.velocities([1.0], np.zeros(d), np.zeros((d, d)))
    f = cell_means(bump, lower, h, cells)
    fluxes.flux(0, f)
    error = 0.0
    for k, flux in enumerate(kept(fluxes, 0)):
        exact = []
        for z in np.linspace(-4.5, 4.5, cells[k] + 1):
            # A face is a cell of the other axes.
            others = [i for i in range(d) if i != k]

            def current(*rest, z=z, k=k):
                point = list(rest)
                point.insert(k, np.full(np.shape(rest[0]), z) if rest else np.array(z))
                return wind(*point)[k] * bump(*point)

            low, width, count = ([x[i] for i in others] for x in (lower, h, cells))
            exact.append(cell_means(current, low, width, count) if others else current())
        error = error + np.diff(flux - np.stack(exact, axis=k), axis=k) / h[k]
    return np.abs(error).mean()


def slope(name, shapes):
    errors = [divergence_error(name, cells) for cells in shapes]
    return np.polyfit(np.log([cells[0] for cells in shapes]), -np.log(errors), 1)[0], errors[-1]


@pytest.mark.parametrize(
    ("name", "cells", "most"),
    [("upwind5", 512, 1e-8), ("weno5", 512, 1e-8), ("muscl", 2048, 1e-4), ("upwind", 2048, 1e-2)],
)
def test_order_on_the_line(name, cells, most):
    order, error = slope(name, [(cells * k // 8,) for k in (3, 4, 6, 8)])
    assert order == pytest.approx(SCHEMES[name].order, abs=0.15)
    assert error < most


@pytest.mark.parametrize("name", ["upwind5", "weno5"])
def test_corrected_order_in_the_plane(name):
    order, error = slope(name, [(64, 64), (96, 96), (128, 128)])
    assert 3.85 < order < 5.15
    assert error < 1e-4


def test_corrected_order_in_space():
    order, _ = slope("upwind5", [(24, 24, 24), (32, 32, 32), (44, 44, 44)])
    assert 3.85 < order < 5.3


# ---- steps ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["upwind5", "muscl"])
@pytest.mark.parametrize("cells", [(7,), (5, 6), (3, 4, 5)])
def test_stages_follow_the_tableau(cells, name):
    fluxes, f = random_problem(cells, name)
    rng = np.random.default_rng(3)
    tableau = fluxes.scheme.tableau
    for s in range(tableau.stages):
        fluxes.flux(s, rng.normal(size=cells))
    divergences = [
        sum(np.diff(flux, axis=k) / fluxes.widths[k] for k, flux in enumerate(kept(fluxes, s)))
        for s in range(tableau.stages)
    ]
    for number in range(1, tableau.stages):
        expected = f - 0.3 * sum(a * x for a, x in zip(tableau.a[number], divergences[:number], strict=True))
        np.testing.assert_allclose(fluxes.stage(number, f, 0.3, np.empty(cells)), expected, atol=1e-14)


@pytest.mark.parametrize("dt", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("cells", SHAPES)
def test_limited_update_is_that_of_a_loop(cells, dt):
    fluxes, f = random_problem(cells)
    f[np.random.default_rng(4).random(cells) < 0.2] = 0
    b = fluxes.scheme.tableau.b
    for s in range(len(b)):
        fluxes.flux(s, f * (1 + s))
    stages = [kept(fluxes, s) for s in range(len(b))]
    totals = [sum(x * stage[k] for x, stage in zip(b, stages, strict=True)) for k in range(len(cells))]
    expected, left, limited = numpy_limited(f, totals, dt / fluxes.widths)
    new = np.empty(cells)
    finished = fluxes.finish(f, dt, new)
    np.testing.assert_allclose(new, expected, rtol=1e-12, atol=1e-14)
    assert finished.outflow == pytest.approx(left, rel=1e-13, abs=1e-14)
    assert finished.limited == limited


@settings(max_examples=60, deadline=None)
@given(
    cells=st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple),
    name=st.sampled_from(sorted(SCHEMES)),
    courant=st.sampled_from([0.5, 5.0, 50.0]),
    seed=st.integers(0, 2**16),
)
def test_positive_and_conservative_at_any_time_step(cells, name, courant, seed):
    fluxes, f = random_problem(cells, name, seed)
    rng = np.random.default_rng(seed)
    f *= 10.0 ** rng.integers(-200, 3, size=cells) * (rng.random(cells) < 0.7)
    new, finished = full_step(fluxes, f, courant / fluxes.rate(f, -1.0))
    assert (new >= 0).all()
    assert not ((new > 0) & (new < 1e-300)).any()
    assert math.fsum([*new.ravel(), finished.outflow, *-f.ravel()]) == pytest.approx(0, abs=1e-15 * f.sum())


def test_a_large_grid_conserves_mass_over_steps():
    fluxes, f = random_problem((40, 50))
    mass, out = math.fsum(f.ravel()), 0.0
    for _ in range(20):
        f, finished = full_step(fluxes, f, 3 / fluxes.rate(f, 0.0))
        out += finished.outflow
    assert math.fsum(f.ravel()) + out == pytest.approx(mass, rel=2e-15)


def test_smooth_data_are_not_limited_and_the_update_can_be_made_in_place():
    cells = (48, 40)
    fluxes = Fluxes(SCHEMES["upwind5"], [-4, -4], [8 / n for n in cells], cells)
    nodes = np.meshgrid(*[np.linspace(-4, 4, n + 1) for n in cells], indexing="ij")
    fluxes.remember(0, np.stack([-nodes[1], nodes[0]], axis=-1))
    fluxes.velocities([1.0], np.zeros(2), np.zeros((2, 2)))
    f = cell_means(bump, [-4, -4], [8 / n for n in cells], cells)
    new, _ = full_step(fluxes, f, 0.01)
    again = f.copy()
    fluxes.flux(0, f)
    for number in range(1, 4):
        fluxes.flux(number, fluxes.stage(number, f, 0.01, np.empty(cells)))
    divergence = sum(
        np.diff(sum(b * kept(fluxes, s)[k] for s, b in enumerate(fluxes.scheme.tableau.b)), axis=k) / fluxes.widths[k]
        for k in range(2)
    )
    fluxes.finish(again, 0.01, again)
    np.testing.assert_array_equal(again, new)
    # The limiter holds back less than 1e-13 of the mass, in the tails.
    np.testing.assert_allclose(new, f - 0.01 * divergence, atol=1e-12)


@pytest.mark.parametrize("cells", [(6,), (5, 6), (3, 4, 5)])
def test_what_would_become_denormal_is_set_to_zero(cells):
    fluxes, f = random_problem(cells, "upwind")
    dt = 0.3 / fluxes.rate(f, 0.0)
    normal, _ = full_step(fluxes, f, dt)
    small, _ = full_step(fluxes, f * 3e-300, dt)
    kept_mass = normal * 3e-300 > 1e-300
    assert 0 < kept_mass.sum() < f.size
    np.testing.assert_allclose(small, np.where(kept_mass, normal, 0) * 3e-300, rtol=1e-13, atol=0)


def test_a_nan_is_not_clipped_away():
    fluxes, f = random_problem((6, 6))
    f[2, 3] = np.nan
    assert np.isnan(full_step(fluxes, f, 0.1)[0]).any()


# ---- symmetries and threads -----------------------------------------------------------------------------------------


def step_of(cells, name, lower, widths, nodal, f):
    fluxes = Fluxes(SCHEMES[name], lower, widths, cells)
    fluxes.remember(0, np.ascontiguousarray(nodal))
    d = len(cells)
    fluxes.velocities([1.0], np.zeros(d), np.zeros((d, d)))
    return full_step(fluxes, np.ascontiguousarray(f), 0.05)[0]


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("cells", [(9,), (6, 7), (4, 5, 6)])
def test_reflections_and_permutations_of_axes(cells, name):
    rng = np.random.default_rng(5)
    d = len(cells)
    lower, widths = rng.normal(size=d), rng.uniform(0.5, 1, size=d)
    nodal, f = rng.normal(size=(*(n + 1 for n in cells), d)), rng.uniform(size=cells)
    expected = step_of(cells, name, lower, widths, nodal, f)
    for k in range(d):
        flipped = np.flip(nodal, k) * np.where(np.arange(d) == k, -1, 1)
        reflected = step_of(cells, name, lower, widths, flipped, np.flip(f, k))
        np.testing.assert_allclose(np.flip(reflected, k), expected, atol=2e-15)
    turn = list(np.roll(range(d), 1))
    turned = step_of(
        tuple(cells[k] for k in turn), name, lower[turn], widths[turn],
        nodal.transpose(*turn, d)[..., turn], f.transpose(turn),
    )  # fmt: skip
    np.testing.assert_allclose(turned, expected.transpose(turn), atol=2e-15)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("cells", [(1,), (50,), (2, 9), (23, 21), (1, 7, 5), (9, 2, 11), (9, 8, 7)])
def test_bits_do_not_depend_on_threads(cells, name, monkeypatch):
    def run(threads):
        monkeypatch.setattr(Fluxes, "_threads", lambda self: threads)
        fluxes, f = random_problem(cells, name)
        rate, nodes = fluxes.rate(f, 0.1), fluxes.to_nodes(f).copy()
        new, finished = full_step(fluxes, f, 2 / rate)
        return new, nodes, rate, *finished

    one = run(1)
    for threads in (2, 3):
        for a, b in zip(one, run(threads), strict=True):
            np.testing.assert_array_equal(a, b)


# ---- density at nodes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [(9,), (8, 9), (7, 8, 9)])
def test_densities_at_nodes_are_exact_for_quintics_inside(cells):
    d = len(cells)
    fluxes = Fluxes(SCHEMES["upwind5"], [-1.0] * d, [2 / n for n in cells], cells)

    def quintic(*z):
        return 40 + math.prod(x**5 - x**2 + 0.3 for x in z)

    nodal = fluxes.to_nodes(cell_means(quintic, fluxes.lower, fluxes.widths, cells))
    assert nodal.shape == tuple(n + 1 for n in cells)
    inside = (slice(3, -3),) * d
    exact = quintic(*np.meshgrid(*[np.linspace(-1, 1, n + 1) for n in cells], indexing="ij"))
    np.testing.assert_allclose(nodal[inside], exact[inside], rtol=1e-13)


@pytest.mark.parametrize("cells", SHAPES)
def test_densities_at_nodes_are_those_of_numpy_and_not_negative(cells):
    fluxes, f = random_problem(cells)
    expected = f
    for k in range(len(cells)):
        windows = np.lib.stride_tricks.sliding_window_view(around(expected, k, 3), 6, axis=k)
        expected = windows @ np.array([1, -8, 37, 37, -8, 1]) / 60
    np.testing.assert_allclose(fluxes.to_nodes(f), expected.clip(0), atol=1e-14)
