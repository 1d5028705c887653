"""What the solver refuses, in one sentence with the field, the value and the remedy; and how it ends when it must."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings, strategies as st

import vlasov as vl
from tests.solvers.finite_volume.common import run
from vlasov.errors import NonFiniteState
from vlasov.solvers.driver import prepare
from vlasov.solvers.finite_volume.options import FRAMES

PLANE = vl.Gaussian([0.0, 0.0], np.eye(2))
STABLE = vl.Softmax(A=-np.eye(2))
PROBLEM = vl.Problem(STABLE, PLANE, 0.1)
GROWING = vl.Problem(vl.Softmax(A=np.eye(2)), PLANE, 1.0)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("problem", "options", "sentence"),
    [
        (
            vl.Problem(vl.Softmax(A=np.eye(4)), vl.Gaussian(np.zeros(4), np.eye(4)), 1.0),
            {},
            'initial: has d = 4, but "finite-volume" needs d <= 3; use the solver "particles"',
        ),
        (
            vl.Problem(STABLE, vl.Gaussian([0, 0], [[1, 0], [0, 0]]), 1.0),
            {},
            "initial: a gaussian without variance in some direction: no density on a grid; use the solver",
        ),
        (
            vl.Problem(STABLE, vl.Particles([[0.0, 1.0], [1.0, 2.0]]), 1.0),
            {},
            "initial: particles without variance in some direction",
        ),
        (
            vl.Problem(vl.Linear(A=-np.eye(2)), PLANE, 1.0),
            {"frame": "rescaled"},
            'frame: is "rescaled", which needs a normalised attention',
        ),
        (GROWING, {"frame": "fixed"}, 'extent: needs extent=... with frame="fixed": the solution may blow up'),
        (GROWING, {"frame": "rescaled"}, 'extent: needs extent=... with frame="rescaled": the solution may blow up'),
        (PROBLEM, {"extent": 2.0}, "extent: leaves 0.089 of the initial mass outside of the grid; make it larger"),
        (PROBLEM, {"extent": [[1, 2], [1, 2]]}, "extent: leaves 0.98 of the initial mass outside of the grid"),
        (
            PROBLEM,
            {"extent": 100.0},
            "extent: makes cells as wide as 12.5 standard deviations; at most 1.5 can be resolved: leave it out, or "
            "give a grid of 24 x 24, or take 134 x 134 cells",
        ),
        (PROBLEM, {"extent": 2.0**63}, "extent: makes cells as wide as 1.15e+18 standard deviations; at most 1.5"),
        (
            vl.Problem(vl.Softmax(A=np.eye(2)), vl.Gaussian([0.0, 0.0], 0.1 * np.eye(2)), 3.0),
            {"frame": "fixed", "reconstruction": "upwind"},
            "cells: makes cells as wide as ",
        ),
        (PROBLEM, {"cells": 7}, "cells: is 7 but must be at least 8"),
        (PROBLEM, {"cells": 1.5}, "cells: 1.5 is not a whole number"),
        (PROBLEM, {"cells": "64"}, "cells: '64' is not a whole number"),
        (PROBLEM, {"cells": True}, "cells: True is not a whole number"),
        (PROBLEM, {"cells": [64]}, "cells: has 1 numbers but d = 2; give one for each axis"),
        (PROBLEM, {"cells": [64, 4]}, "cells[1]: is 4 but must be at least 8"),
        (PROBLEM, {"cells": 10**9}, "cells: is 1000000000 but a grid has at most 1e+08 cells"),
        (PROBLEM, {"cells": [10**5, 10**5]}, "cells: make 1e+10 cells in all; at most 1e+08"),
        (PROBLEM, {"extent": 0}, "extent: is 0 but must be a finite number > 0"),
        (PROBLEM, {"extent": np.nan}, "extent: is nan but must be a finite number > 0"),
        (PROBLEM, {"extent": "3"}, "extent: '3' is not a number"),
        (PROBLEM, {"extent": [8, 9, 10]}, "extent: has 3 entries but d = 2; give one for each axis"),
        (PROBLEM, {"extent": [[8, -8], 9]}, "extent[0]: is [8, -8]; the upper end must be the larger one"),
        (PROBLEM, {"extent": [8, [-8, 8, 9]]}, "extent[1]: is [-8, 8, 9] where a pair [lower, upper] is needed"),
        (PROBLEM, {"frame": "movin"}, 'frame: "movin" is not known; did you mean "moving"?'),
        (PROBLEM, {"reconstruction": "upwind-5"}, 'reconstruction: "upwind-5" is not known; did you mean "upwind5"?'),
        (PROBLEM, {"cell": 64}, 'cell: is not an option of the solver "finite-volume"; did you mean "cells"?'),
    ],
)
def test_one_sentence(problem, options, sentence):
    with pytest.raises(vl.InputError) as caught:
        run(problem, **{"cells": 16} | options)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_compact_data_do_not_blow_up_where_gaussians_do():
    """Their own tokens tell the extent of a fixed frame: |x'| <= R, where the Gaussian twin leaves all bounds."""
    result = run(vl.Problem(vl.Softmax(A=[[1.0]]), vl.Box([-1.0], [1.0]), 2.0), frame="fixed", cells=64)
    assert result.attrs["status"] == "completed"
    assert abs(result["mass"].values[-1] - 1) <= 1e-12


def test_the_name_of_the_solver():
    with pytest.raises(vl.InputError, match=r'did you mean "finite-volume"\?'):
        vl.solve(PROBLEM, "finite-volumes")


@pytest.mark.parametrize("extent", [1e308, 1e-300])
def test_an_absurd_extent(extent):
    with pytest.raises(vl.InputError, match=r"^extent"):
        run(PROBLEM, cells=16, extent=extent)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([*FRAMES, "upwind5", 16, 12.0, np.int64(16), np.array([9.0, 9.0]), np.float32(9), b"ab", 1j]),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=1),
    max_leaves=4,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(["cells", "reconstruction", "frame", "extent", "Cells"]), ANYTHING)
def test_whatever_a_user_gives_is_taken_or_refused_in_one_sentence(name, value):
    sentence = name
    try:
        prepare(PROBLEM, "finite-volume", options={name: value})
    except vl.InputError as refusal:
        sentence = str(refusal)
    assert sentence.startswith(name)
    assert "\n" not in sentence


# Early ends.

JUMP = vl.Piecewise([[[1.0]], [[1e308]]], [0.0, 0.3, 1.0])
OVERFLOWING = vl.Problem(vl.Softmax(A=[[0.0]], V=JUMP), vl.Gaussian([1.5], [[0.1]]), 1.0)


def fails(tmp_path, **options):
    with pytest.raises(NonFiniteState) as caught:
        run(OVERFLOWING, cells=64, output=tmp_path / "run.nc", times=[0.0, 0.15, 0.5, 1.0], **options)
    with xr.open_dataset(tmp_path / "run.partial.nc", engine="h5netcdf") as left:
        return caught.value, left.load()


@pytest.mark.parametrize("frame", ["moving", "fixed"])
def test_a_state_that_overflows_leaves_the_last_good_one_on_disk(frame, tmp_path):
    error, left = fails(tmp_path, frame=frame, extent=10.0)
    assert error.step > 1
    assert abs(error.time - 0.3) < 1e-9
    assert error.dt >= 0
    for part in (f"step {error.step} at t = 0.3", f"dt = {error.dt:.3g}"):
        assert part in str(error)
    assert str(tmp_path / "run.partial.nc") in "".join(error.__notes__)
    assert left["time"].values[:2].tolist() == [0.0, 0.15]
    assert abs(left["time"].values[-1] - 0.3) < 1e-9
    for name, variable in left.items():
        assert np.isfinite(variable).all() or name in ("blow_up_time", "error_estimate", "radius")  # unknown
    # The last state is the solution there: the mean grows like e^t.
    assert np.allclose(
        left["mean"].values[:, 0],
        left["mean"].values[0, 0] * np.exp(left["time"].values),
        rtol=1e-12 if frame == "moving" else 1e-2,
        atol=0.0,
    )


def test_a_run_that_failed_does_not_call_itself_completed(tmp_path):
    assert fails(tmp_path)[1].attrs["status"] == "stopped"


def test_a_rescaled_frame_that_overflows():
    with pytest.raises((vl.SolverError, vl.InputError)):
        run(OVERFLOWING, cells=64, frame="rescaled", extent=10.0)


@pytest.mark.parametrize(
    "frame",
    [
        "moving",
        "fixed",
    ],
)
def test_a_function_that_turns_bad_is_reported_with_its_parameter(frame):
    attention = vl.Softmax(A=lambda t: [[1.0 if t < 0.3 else np.nan]])
    problem = vl.Problem(attention, vl.Gaussian([1.0], [[0.1]]), 1.0)
    with pytest.raises(vl.SolverError, match=r"^A\(0\.3\d+\): entry \[0, 0\] is nan; every entry must be a finite"):
        run(problem, cells=64, frame=frame, extent=10.0)


def test_steps_that_overflow():
    jump = vl.Piecewise([[[1.0]], [[1e200]]], [0.0, 0.3, 1.0])
    with pytest.raises(vl.SolverError, match=r"step \d+ at t = 0\.3"):
        run(vl.Problem(vl.Softmax(A=[[0.0]], V=jump), vl.Gaussian([1.5], [[0.1]]), 1.0), cells=64)


@pytest.mark.parametrize("attention", [vl.Softmax(A=[[1.0]]), vl.Linear(A=[[1.0]])], ids=lambda a: a.kind)
def test_a_blow_up_before_the_first_output_time_leaves_the_last_state(attention, tmp_path):
    problem = vl.Problem(attention, vl.Gaussian([0.0], [[1.0]]), 1.0)
    result = run(problem, cells=64, times=[0.8, 0.9], output=tmp_path / "run.nc")
    assert result.attrs["status"] == "blow-up"
    assert abs(result.attrs["blow_up_time"] - 0.5) < 1e-8
    assert 0.499 < result["time"].values[0] < 0.5
    assert vl.open_run(tmp_path / "run.nc").identical(result)


@pytest.mark.parametrize(("horizon", "v"), [(1e-12, 1.0), (1e-12, 1e12), (1e8, 1e-8)])
def test_extreme_horizons(horizon, v):
    problem = vl.Problem(vl.Softmax(A=[[-0.5]], V=[[v]]), vl.Gaussian([0.0], [[0.1]]), horizon)
    result = run(problem, cells=64, times=[0.0, 0.5 * horizon, horizon])
    exact = 1 / (10 + v * result["time"].values)
    assert np.abs(result["covariance"].values[:, 0, 0] / exact - 1).max() < 1e-12
