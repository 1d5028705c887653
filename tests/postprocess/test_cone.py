"""Covariances stand where they belong in the cone and in the disc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from vlasov.postprocess.drawing.cone import cone, coordinates

Scene = Callable[[str], xr.Dataset]


def test_cone_coordinates() -> None:
    np.testing.assert_array_equal(coordinates(np.array([[3.0, 0.5], [0.5, 1.0]])), [2, 1, 4])


def test_cone_path_runs_from_an_open_to_a_filled_marker(scene: Scene) -> None:
    dataset = scene("gaussian-2")
    a, b, c = (dataset["covariance"].values[:, i, j] for i, j in ((0, 0), (1, 1), (0, 1)))
    ax: Any = cone(dataset).axes[0]
    *_, path, start, end = (np.array(line.get_data_3d()) for line in ax.get_lines())
    np.testing.assert_allclose(path, [a - b, 2 * c, a + b])
    np.testing.assert_array_equal(start, path[:, :1])
    np.testing.assert_array_equal(end, path[:, -1:])
    assert ax.get_zlim()[1] >= (a + b).max()
    disc: Any = cone(dataset, trace_one=True).axes[0]
    np.testing.assert_allclose(disc.get_lines()[-3].get_xydata(), np.stack([a - b, 2 * c], axis=1) / (a + b)[:, None])
    assert disc.get_lines()[-2].get_markerfacecolor() == "white"


def test_cone_takes_arrays_and_blow_ups_leave_it(scene: Scene) -> None:
    paths = [np.multiply.outer(np.linspace(1, k, 5), np.diag([1.0, 0.5])) for k in range(2, 12)]
    assert len(cone(paths).axes) == 1
    assert len(cone(paths[0], trace_one=True).axes) == 1
    ax: Any = cone(scene("blow-up-gaussian")).axes[0]
    assert ax.get_zlim()[1] < 100  # the last trace is 1e8
