"""Which times are shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from vlasov.postprocess.drawing.view import View, padded

Scene = Callable[[str], xr.Dataset]


def test_moments_are_even_in_time_where_nothing_moves(scene: Scene) -> None:
    np.testing.assert_array_equal(View(scene("nothing-moves")).instants(5), [0, 10, 20, 30, 40])


def test_moments_follow_the_motion_where_it_comes_early(scene: Scene) -> None:
    instants = View(scene("strong-collapse-2")).instants(4)
    assert (instants[0], instants[-1]) == (0, 40)
    assert 1 in instants  # after the first step almost all is over


def test_moments_stop_before_the_runaway(scene: Scene) -> None:
    view = View(scene("blow-up-2"))
    assert 0.9 < view.times[view.instants(4)[-1]] < 0.99
    assert view.times[view.instants([1 - 1e-8])[0]] > 0.999


def test_limits_have_a_width_even_around_a_point() -> None:
    np.testing.assert_allclose(padded(np.array([[1.0, 1.0], [2.0, 2.0]])), [[0.0, 2.0], [1.0, 3.0]])
    np.testing.assert_allclose(padded(np.array([[0.0, 0.0], [-1.0, 3.0]])), [[-2.0, 2.0], [-1.24, 3.24]])
    np.testing.assert_allclose(padded(np.zeros(2)), [-0.5, 0.5])


@pytest.mark.parametrize("name", ["mean", "covariance"])
def test_what_is_not_finite_is_not_drawn(scene: Scene, name: str) -> None:
    run = scene("nothing-moves").copy(deep=True)
    run[name][3:] = np.nan
    with pytest.raises(
        vl.InputError, match=rf"^dataset: has a {name} that is not finite at t = .*; keep the times before"
    ):
        View(run)
    assert View(run.isel(time=slice(3))).times.size == 3
