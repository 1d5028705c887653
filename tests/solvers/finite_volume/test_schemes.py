"""Tableaux: Butcher's order conditions, and what they make of y' = lambda y."""

import math

import numpy as np
import pytest

from vlasov.solvers.finite_volume.schemes import RK4, SSPRK3


def _arrays(tableau):
    a = np.zeros((tableau.stages, tableau.stages))
    for i, row in enumerate(tableau.a):
        a[i, : len(row)] = row
    return a, np.array(tableau.b), np.array(tableau.c)


@pytest.mark.quick
@pytest.mark.parametrize(("tableau", "order"), [(RK4, 4), (SSPRK3, 3)])
def test_order_conditions(tableau, order):
    a, b, c = _arrays(tableau)
    trees = {
        1: [(b.sum(), 1)],
        2: [(b @ c, 1 / 2)],
        3: [(b @ c**2, 1 / 3), (b @ a @ c, 1 / 6)],
        4: [(b @ c**3, 1 / 4), ((b * c) @ a @ c, 1 / 8), (b @ a @ c**2, 1 / 12), (b @ a @ a @ c, 1 / 24)],
    }
    for p in range(1, order + 1):
        for value, exact in trees[p]:
            assert value == pytest.approx(exact, rel=1e-14)
    assert a.sum(axis=1) == pytest.approx(c)
    assert [len(row) for row in tableau.a] == list(range(tableau.stages))


@pytest.mark.parametrize(("tableau", "order"), [(RK4, 4), (SSPRK3, 3)])
def test_stability_function_is_the_exponential_up_to_the_order(tableau, order):
    a, b, _ = _arrays(tableau)
    ones, power = np.ones(len(b)), np.eye(len(b))
    for p in range(1, order + 1):
        assert b @ power @ ones == pytest.approx(1 / math.factorial(p), rel=1e-14)
        power = power @ a


@pytest.mark.quick
def test_ssprk3_is_convex_in_euler_steps():
    """Shu and Osher's form: y2 = 3/4 y + 1/4 E(y1), y_new = 1/3 y + 2/3 E(y2), with E an Euler step of F(y) = -y^2."""

    def slope(y):
        return -(y**2)

    y, dt = 0.7, 0.3
    first = y + dt * slope(y)
    second = 0.75 * y + 0.25 * (first + dt * slope(first))
    shu_osher = y / 3 + 2 / 3 * (second + dt * slope(second))
    slopes: list[float] = []
    for row in SSPRK3.a:
        slopes.append(slope(y + dt * sum(x * k for x, k in zip(row, slopes, strict=True))))
    assert y + dt * sum(x * k for x, k in zip(SSPRK3.b, slopes, strict=True)) == pytest.approx(shu_osher, rel=1e-15)
