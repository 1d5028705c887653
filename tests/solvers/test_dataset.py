"""The output schema: what every Dataset holds, on disk as in memory, and how it turns back into measures."""

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from datetime import datetime
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from vlasov.solvers import dataset as schema, problem_of
from vlasov.solvers.files import damage

# As in the design document: written once more here on purpose.
MOMENTS = {
    "mean": ("time", "component"),
    "covariance": ("time", "component", "component_b"),
    "radius": ("time",),
    "mass": ("time",),
    "mean_error": ("time",),
    "covariance_error": ("time",),
}
SCALARS: dict[str, tuple[str, ...]] = {"blow_up_time": (), "error_estimate": (), "steps": ()}
LABELS = {"component": ("component",), "component_b": ("component_b",)}
TOKENS = {"position": ("time", "particle", "component"), "weight": ("particle",)}
PLACES = {"s": ("particle",)}
LAYERS = {"layer": ("time",)}
RESCALED = {"rescaling": ("time", "component", "component_b")}
EULERIAN = {
    "density_error": ("time",),
    "density": ("time", "xi", "eta", "zeta"),
    "frame_origin": ("time", "component"),
    "frame_matrix": ("time", "component", "component_b"),
    "xi": ("xi",),
    "eta": ("eta",),
    "zeta": ("zeta",),
}
PARTS = {"part_weight": ("part",), "part_s": ("part",)}
ATTRIBUTES = (
    "Conventions kind title case problem solver options status blow_up_time method error_estimate wall_seconds "
    "vlasov_version created citation advice"
).split()

PROBLEMS = {
    "softmax": vl.Problem(vl.Softmax(A=[[-0.3, 1 / 3], [0.1, -0.7]]), vl.Gaussian([0.1, 0.2], 0.3 * np.eye(2)), 1.0),
    "l2 with layers": vl.Problem(
        vl.L2(
            vl.Piecewise([np.eye(2), 0.1 * np.ones((2, 2))], [0.0, 1 / 3, 0.9]),
            K=np.pi * np.eye(2),
            V=[[0, 1], [-1, 0]],
        ),
        vl.Mixture([vl.Gaussian([0.1, 1e-17], 0.3 * np.eye(2)), vl.Ring(0.1, 0.7, [0.3, 1e5 / 3])], [0.1, 0.7]),
        2 / 3,
        name='a name with ümläuts, "quotes" and\nlines',
    ),
    "multi-head on the line": vl.Problem(
        vl.MultiHead([vl.Linear(A=[[-0.1]]), vl.Softmax(Q=[[0.2]], K=[[0.3]])], [[[0.7]], [[np.e]]]),
        vl.Particles([0.1, 0.2, 0.7], [1, 2, 4]),
        0.1,
    ),
    "density": vl.Problem(
        vl.Softmax(A=[[0.1, 0], [0, 0.2]]),
        vl.Density([[1.0, 2.0], [0.78, 1 / 7]], [[0.0, 0.3, 1.0], [-1.0, 0.1, 0.2]]),
        0.1,
    ),
}
PLAIN = PROBLEMS["softmax"]


def particles(problem=PLAIN, **options):
    drawn = {} if isinstance(problem.initial, vl.Particles) else {"n": 9}
    return vl.solve(problem, "particles", **drawn | {"times": [0.0, problem.horizon / 3, problem.horizon]} | options)


RUNS = {
    "gaussian": (lambda **o: vl.solve(PLAIN, "gaussian", times=[0.0, 0.3, 1.0], **o), MOMENTS),
    "particles": (lambda **o: particles(**o), MOMENTS | TOKENS),
    "rescaled": (lambda **o: particles(rescaled=True, **o), MOMENTS | TOKENS | RESCALED),
    "layers": (lambda **o: vl.solve(PLAIN, "layers", depth=5, n=9, **o), MOMENTS | TOKENS | LAYERS),
    "blow-up": (
        lambda **o: vl.solve(vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian([0.0], [[1.0]]), 1.0), "gaussian", **o),
        MOMENTS,
    ),
}


def check_variables(result):
    """Names, units, double precision but for counts, labels of components, and scalars that are attributes too."""
    for name, variable in result.variables.items():
        assert variable.attrs["long_name"]
        if name not in LABELS:
            assert variable.attrs["units"] == "1"
            assert variable.dtype == (np.int64 if name in ("steps", "layer") else np.float64)
    for name in LABELS:
        assert result[name].values.tolist() == ["x_1", "x_2", "x_3"][: result.sizes["component"]]
    for name in SCALARS:
        np.testing.assert_array_equal(result[name], result.attrs[name])


@pytest.mark.quick
@pytest.mark.parametrize("name", RUNS)
def test_variables_attributes_and_words(name):
    make, variables = RUNS[name]
    result = make(case="the case")
    assert {key: variable.dims for key, variable in result.data_vars.items()} == variables | SCALARS
    assert set(result.coords) == {"time", *LABELS}
    check_variables(result)
    attrs = result.attrs
    assert set(ATTRIBUTES) <= set(attrs)
    assert attrs["Conventions"] == "CF-1.11 vlasov-1"
    assert attrs["case"] == "the case"
    assert attrs["solver"] == (
        "layers" if "layer" in variables else "particles" if "position" in variables else "gaussian"
    )
    assert attrs["status"] == ("blow-up" if name == "blow-up" else "completed")
    assert np.isnan(attrs["blow_up_time"]) == (name != "blow-up")
    assert attrs["vlasov_version"] == vl.__version__
    assert abs((datetime.now().astimezone() - datetime.fromisoformat(attrs["created"])).total_seconds()) < 60
    assert "arXiv:2501.18322" in attrs["citation"]
    assert attrs["title"]
    assert json.loads(attrs["options"])["depth" if name == "layers" else "tolerance"] > 0
    assert result["radius"].isnull().all() == ("position" not in variables)
    assert (abs(result["mass"] - 1) < 1e-14).all()


@pytest.mark.parametrize("name", RUNS)
def test_a_file_read_by_xarray_alone_is_worth_the_same(name, tmp_path):
    make, _ = RUNS[name]
    path = tmp_path / "run.nc"
    result = make(output=path)
    with xr.open_dataset(path, engine="h5netcdf") as alone:
        assert alone.load().identical(result)
    assert vl.open_run(path).identical(result)
    assert vl.open_run(str(path)).identical(result)
    assert list(tmp_path.iterdir()) == [path], "no temporary file is left"


@pytest.mark.quick
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_problem_is_rebuilt_bit_for_bit(name, tmp_path):
    problem = PROBLEMS[name]
    particles(problem, output=tmp_path / "run.nc", tolerance=1e-3)
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as alone:
        rebuilt = problem_of(alone)
    assert rebuilt == problem
    assert rebuilt.to_json() == problem.to_json()
    assert rebuilt.name == problem.name
    again = particles(rebuilt, tolerance=1e-3)
    assert again["position"].equals(vl.open_run(tmp_path / "run.nc")["position"])


def test_a_problem_longer_than_an_attribute_of_hdf5_fits(tmp_path):
    points = np.random.default_rng(0).normal(size=(3000, 2))
    problem = vl.Problem(vl.Linear(A=-np.eye(2)), vl.Particles(points), 0.01)
    particles(problem, output=tmp_path / "run.nc", tolerance=1e-3)
    found = vl.open_run(tmp_path / "run.nc")
    assert len(found.attrs["problem"]) > 2**16
    assert problem_of(found) == problem


def test_the_problem_of_a_function_is_not_kept():
    result = vl.solve(vl.Problem(vl.Softmax(A=lambda t: [[t]]), vl.Gaussian(0.0, 0.1), 1.0), "gaussian")
    with pytest.raises(vl.InputError, match=r"^problem: is empty: a parameter was a Python function"):
        problem_of(result)


def test_moments_are_those_of_the_positions():
    result = particles(PROBLEMS["l2 with layers"], n=25, sampling="random")
    weight, position = result["weight"].values, result["position"].values
    for i in range(3):
        mean = np.average(position[i], axis=0, weights=weight)
        assert np.allclose(result["mean"][i], mean, rtol=1e-12, atol=0.0)
        spread = np.cov(position[i].T, aweights=weight, ddof=0)
        assert np.allclose(result["covariance"][i], spread, rtol=1e-9, atol=0.0)
        assert np.isclose(result["radius"][i], np.linalg.norm(position[i], axis=1).max(), rtol=1e-14, atol=0.0)


# Densities.

ON_A_GRID = {
    1: vl.Problem(vl.Softmax(A=[[-0.3]]), vl.Gaussian([0.2], [[0.3]]), 1.0),
    2: PLAIN,
    3: vl.Problem(vl.Softmax(A=-0.3 * np.eye(3)), vl.Gaussian([0.1, 0.2, 0.3], 0.3 * np.eye(3)), 1.0),
}


def finite_volume(d, **options):
    times = [0.0, 1 / 3, 1.0]
    return vl.solve(ON_A_GRID[d], "finite-volume", **{"cells": {1: 64, 2: 48, 3: 32}[d], "times": times} | options)


@pytest.mark.parametrize("d", ON_A_GRID)
def test_a_run_on_a_grid(d, tmp_path):
    path = tmp_path / "run.nc"
    result = finite_volume(d, output=path, case="the case")
    axes = ("xi", "eta", "zeta")[:d]
    expected = MOMENTS | {name: EULERIAN[name] for name in ("density", "frame_origin", "frame_matrix", "density_error")}
    expected["density"] = ("time", *axes)
    assert {key: variable.dims for key, variable in result.data_vars.items()} == expected | SCALARS
    assert {key: variable.dims for key, variable in result.coords.items()} == {
        name: EULERIAN.get(name, (name,)) for name in ("time", *axes, *LABELS)
    }
    check_variables(result)
    assert result["radius"].isnull().all()  # a Gaussian's support is not bounded
    assert all(np.isfinite(result[name]).all() for name in expected if name != "radius")
    attrs = result.attrs
    assert set(ATTRIBUTES) <= set(attrs)
    assert {"outflow", "doublings", "limited_cells", "advice"} <= set(attrs)
    assert (attrs["solver"], attrs["status"], attrs["case"]) == ("finite-volume", "completed", "the case")
    assert (abs(result["mass"] - 1) < 1e-13).all()
    options = json.loads(attrs["options"])
    assert set(options) == {"cells", "reconstruction", "frame", "extent", "slices", "max_steps"}
    assert options["cells"] == list(result["density"].shape[1:])
    for axis, (lower, upper), count in zip(axes, options["extent"], options["cells"], strict=True):
        edges = np.linspace(lower, upper, count + 1)
        assert np.allclose(result[axis], (edges[1:] + edges[:-1]) / 2, rtol=1e-13, atol=1e-13)
    with xr.open_dataset(path, engine="h5netcdf") as alone:
        assert alone.load().identical(result)
        assert problem_of(alone) == ON_A_GRID[d]
    assert vl.open_run(path).identical(result)
    # Given back as options, what was chosen makes the same run.
    again = vl.solve(problem_of(result), "finite-volume", times=result["time"].values, **options)
    assert again["density"].equals(result["density"])


@pytest.mark.parametrize("d", ON_A_GRID)
def test_a_state_on_a_grid_is_a_density(d, tmp_path):
    finite_volume(d, output=tmp_path / "run.nc")
    result = vl.open_run(tmp_path / "run.nc")
    exact = vl.solve(ON_A_GRID[d], "gaussian", tolerance=1e-12, times=result["time"].values)
    for index, time in enumerate(result["time"].values):
        state = vl.measure(result, index)
        assert isinstance(state, vl.Density)
        assert vl.measure(result, float(time)) == state
        assert np.array_equal(state.values, result["density"].values[index])
        for moment in ("mean", "covariance"):
            assert np.allclose(getattr(state, moment), exact[moment].values[index], rtol=1e-9, atol=1e-10)
        assert abs(state.mass - 1) < 1e-13


@pytest.mark.parametrize("convention", ["vlasov-1", "CF-1.8, vlasov-1"])
def test_files_from_before_the_axes_were_named_are_read(convention, tmp_path):
    """Their axes are x and y, components have no labels, and blow_up_time and the like are attributes alone."""
    result = finite_volume(2)
    older = result.rename(xi="x", eta="y").drop_vars([*SCALARS, *LABELS]).assign_attrs(Conventions=convention)
    assert vl.measure(older) == vl.measure(result)
    older.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    read = vl.open_run(tmp_path / "run.nc")
    assert vl.measure(read) == vl.measure(result)
    xr.testing.assert_identical(read["density"], result["density"])
    xr.testing.assert_allclose(vl.on_grid(read, 20), vl.on_grid(result, 20), rtol=0)
    assert vl.on_grid(read, 20).dims == ("time", "x", "y")


# A state as a measure again.


@pytest.mark.quick
def test_a_state_by_index_and_by_time():
    result = vl.solve(PLAIN, "gaussian", times=[0.0, 0.25, 1.0])
    for index, time in ((0, 0.0), (1, 0.25), (2, 1.0)):
        state = vl.measure(result, index)
        assert isinstance(state, vl.Gaussian)
        assert np.array_equal(state.mean, result["mean"].values[index])
        assert np.array_equal(state.covariance, result["covariance"].values[index])
        for way in (index - 3, time, np.int64(index), np.float64(time), np.float32(time), time * (1 + 1e-12)):
            assert vl.measure(result, way) == state
    assert vl.measure(result) == vl.measure(result, 1.0)


def test_a_state_of_tokens_keeps_positions_and_weights():
    result = particles(PROBLEMS["multi-head on the line"])
    state = vl.measure(result, 1)
    assert isinstance(state, vl.Particles)
    assert np.array_equal(state.points, result["position"].values[1])
    assert np.array_equal(state.weights, result["weight"].values)


@pytest.mark.parametrize(
    ("time", "sentence"),
    [
        (3, "time: is 3 but the run has 3 output times"),
        (-4, "time: is -4 but the run has 3 output times"),
        (0.3, "time: 0.3 is not an output time; the nearest are 0.0 and 0.25"),
        (1.5, "time: 1.5 is not an output time"),
        (-1.0, "time: -1 is not an output time"),
        (np.nan, "time: is nan but must be a finite number"),
        (np.inf, "time: is inf but must be a finite number"),
        ("end", "time: 'end' is not a number"),
        (None, "time: None is not a number"),
        (True, "time: True is not a number"),
        ([0.5], "time: [0.5] is not a number"),
    ],
)
def test_a_time_that_is_none_of_the_output_times(time, sentence):
    result = vl.solve(PLAIN, "gaussian", times=[0.0, 0.25, 1.0])
    with pytest.raises(vl.InputError) as caught:
        vl.measure(result, time)
    assert str(caught.value).startswith(sentence)


def test_times_are_told_apart_on_the_scale_of_the_run():
    problem = vl.Problem(PLAIN.attention, PLAIN.initial, 1e-12)
    result = vl.solve(problem, "gaussian", times=[0.0, 1e-13, 1e-12])
    assert vl.measure(result, 1e-13) == vl.measure(result, 1)
    with pytest.raises(vl.InputError, match=r"2e-13 is not an output time"):
        vl.measure(result, 2e-13)


@pytest.mark.parametrize("thing", [xr.Dataset(), xr.Dataset(attrs={"Conventions": "CF-1.8"}), None, 3, {"time": [0]}])
def test_a_measure_of_something_else(thing):
    with pytest.raises(
        vl.InputError, match=r"^dataset: is no Dataset that vlasov made where kind .run. is needed; give what vl\.solve"
    ):
        vl.measure(thing)


# Reading.


def text_file(path):
    path.write_text("time,mean\n0,1\n")


def empty_file(path):
    path.touch()


def truncated(path):
    vl.solve(PLAIN, "gaussian", output=path)
    path.write_bytes(path.read_bytes()[:5000])


def overwritten(path):
    vl.solve(PLAIN, "gaussian", output=path)
    content = bytearray(path.read_bytes())
    content[100:] = bytes(len(content) - 100)
    path.write_bytes(bytes(content))


def flipped(path):
    vl.solve(PLAIN, "gaussian", output=path)
    content = bytearray(path.read_bytes())
    content[-200] ^= 1  # a digit of a mean, or so: HDF5 sees nothing wrong
    path.write_bytes(bytes(content))


def without_json(path):
    vl.solve(PLAIN, "gaussian").assign_attrs(problem="{").to_netcdf(path, engine="h5netcdf")


def foreign(path):
    xr.Dataset({"a": ("x", [1.0])}, attrs={"Conventions": "CF-1.8"}).to_netcdf(path, engine="h5netcdf")


def of_a_later_schema(path):
    run = vl.solve(PLAIN, "gaussian").assign_attrs(Conventions="CF-1.13 vlasov-2", vlasov_version="3.0.0")
    run.to_netcdf(path, engine="h5netcdf")


def plain_hdf5(path):
    with h5py.File(path, "w") as file:
        file["a"] = 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (text_file, "is not a netCDF file"),
        (empty_file, "is not a netCDF file"),
        (truncated, "is damaged: 5,000 of its "),
        (overwritten, "is damaged: its checksum is not that of its content"),
        (flipped, "is damaged: its checksum is not that of its content"),
        (without_json, "is damaged: its problem is not JSON"),
        (foreign, "was not written by vlasov"),
        (plain_hdf5, "was not written by vlasov"),
        (
            of_a_later_schema,
            'is of a newer vlasov: its schema is "vlasov-2", and version 0.1.0 reads "vlasov-1"; update ',
        ),
        (Path.mkdir, "is not a file"),
        (lambda path: None, "is not a file"),
    ],
)
def test_a_path_without_a_run(make, words, tmp_path):
    path = tmp_path / "run.nc"
    make(path)
    with pytest.raises(vl.InputError) as caught:
        vl.open_run(path)
    sentence = str(caught.value)
    del caught
    gc.collect()  # nothing is said behind the exception's back: pytest makes an error of it
    assert sentence.startswith(f'path: "{path}" {words}')
    assert "\n" not in sentence


def test_a_newer_run_is_refused_however_it_was_read():
    newer = vl.solve(PLAIN, "gaussian", times=[0.0]).assign_attrs(Conventions="CF-1.11 vlasov-12")
    with pytest.raises(vl.InputError, match=r'^dataset: is of a newer vlasov: its schema is "vlasov-12", .*; update '):
        vl.measure(newer)
    assert vl.measure(newer.assign_attrs(Conventions="vlasov-1 vlasov-2")).kind == "gaussian", "it says that it is both"


@pytest.mark.parametrize("solver", ["gaussian", "particles", "finite-volume", "layers"])
def test_a_run_without_advice_says_so(solver, tmp_path):
    options = {"finite-volume": {"cells": 16}, "gaussian": {}}.get(solver, {"n": 64, "sampling": "quadrature"})
    run = vl.solve(PLAIN, solver, times=[0.0], output=tmp_path / "run.nc", warn_above=np.inf, **options)
    assert run.attrs["advice"] == vl.open_run(tmp_path / "run.nc").attrs["advice"] == ""
    del run.attrs["advice"]
    run.to_netcdf(tmp_path / "older.nc", engine="h5netcdf")
    assert vl.open_run(tmp_path / "older.nc").attrs["advice"] == ""


@pytest.mark.parametrize("path", [None, 3, b"run.nc", ["run.nc"]])
def test_a_path_that_is_none(path):
    with pytest.raises(vl.InputError, match=r"^path: is .* where the path of a file is needed"):
        vl.open_run(path)


def test_a_path_that_no_file_can_have():
    for path in ("x" * 300 + ".nc", "null\0.nc"):
        with pytest.raises(vl.InputError, match=r"is not a file; give a \.nc file"):
            vl.open_run(path)


def test_every_flipped_byte_is_seen(tmp_path):
    path = tmp_path / "run.nc"
    vl.solve(PLAIN, "gaussian", times=[0.0, 1.0], output=path)
    content = path.read_bytes()
    tail = range(len(content) - 80, len(content), 7)  # the checksum, and what marks it
    for place in [*np.random.default_rng(0).integers(len(content), size=60), *tail]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(bytes(damaged))
        with pytest.raises(vl.InputError, match=r"is damaged|is not a netCDF file"):
            vl.open_run(path)


@pytest.mark.parametrize("protected", [True, False])
def test_bytes_cut_or_added_are_seen(protected, tmp_path):
    """All that are cut from files with a checksum, as many as the checksum has too; and of files without."""
    path = tmp_path / "run.nc"
    result = vl.solve(PLAIN, "gaussian", times=[0.0, 1.0], output=path)
    if not protected:
        result.to_netcdf(path, engine="h5netcdf")
    content = path.read_bytes()
    for count in (*range(1, 65), 79, 80, 81, 500, len(content) - 64, len(content) - 1):
        path.write_bytes(content[:-count])
        with pytest.raises(vl.InputError, match=r"is damaged: |is not a netCDF file"):
            vl.open_run(path)
    for more in (b"\0", b"\n", b"x" * 64, content[-80:], b"\nvlasov sha256 " + 64 * b"0" + b"\n"):
        path.write_bytes(content + more)
        with pytest.raises(vl.InputError, match="its checksum is not that of its content"):
            vl.open_run(path)
    path.write_bytes(content)
    assert vl.open_run(path).identical(result)


def test_files_without_a_checksum_are_read(tmp_path):
    """What xarray writes claims none, also of a file that had one."""
    result = vl.solve(PLAIN, "gaussian", output=tmp_path / "run.nc")
    result.to_netcdf(tmp_path / "old.nc", engine="h5netcdf")
    assert vl.open_run(tmp_path / "old.nc").identical(result)
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as opened:
        opened.isel(time=[0, 5]).to_netcdf(tmp_path / "some.nc", engine="h5netcdf")
    assert vl.open_run(tmp_path / "some.nc").identical(result.isel(time=[0, 5]))


def test_the_checksum_is_where_files_say_that_they_end(tmp_path):
    """HDF5 itself is the judge: also of files of its later versions, which begin otherwise."""
    for version in ("earliest", "v108", "v110", "latest"):
        path = tmp_path / f"{version}.nc"
        with h5py.File(path, "w", libver=version) as file:
            file["a"] = np.arange(1000.0)
        content = path.read_bytes()
        assert damage(path) == ""
        path.write_bytes(content[:-1])
        assert damage(path) == f"{len(content) - 1:,} of its {len(content):,} bytes are there"
        path.write_bytes(content + b"x")
        assert damage(path) == "its checksum is not that of its content"


CROOKED = {
    "a time without its axis": (lambda run: run.isel(time=0), "keep them, as in run.isel(time=[0])"),
    "no time": (lambda run: run.drop_vars("time"), 'has no "time"'),
    "no moments": (lambda run: run.drop_vars("mean"), 'has no "mean"'),
    "text": (lambda run: run.assign(covariance=run["covariance"].astype(str)), 'its "covariance" holds no numbers'),
    "complex": (lambda run: run.assign(mean=run["mean"] * 1j), 'its "mean" holds no numbers'),
    "a number for a problem": (lambda run: run.assign_attrs(problem=3), 'its "problem" is 3 where a text is needed'),
    "times that are none": (lambda run: run.assign_coords(time=run["time"] * np.nan), "output times do not increase"),
    "times in reverse": (lambda run: run.isel(time=[1, 0]), "its output times do not increase; sort them"),
    "no weights": (lambda run: particles().drop_vars("weight"), 'has no "weight"'),
    "negative weights": (lambda run: particles().pipe(lambda r: r.assign(weight=-r["weight"])), "weights are negative"),
    "positions of text": (
        lambda run: particles().pipe(lambda r: r.assign(position=r["position"].astype(str))),
        'its "position" holds no numbers',
    ),
    "no output times": (lambda run: run.isel(time=[]), "has no output times left"),
}


@pytest.mark.parametrize("name", CROOKED)
def test_a_crooked_dataset_is_one_sentence(name):
    spoil, words = CROOKED[name]
    with pytest.raises(vl.InputError) as caught:
        vl.measure(spoil(vl.solve(PLAIN, "gaussian", times=[0.0, 1.0])))
    assert words in str(caught.value)


# Writing.


FULL_DISK = """
import os, resource
import vlasov as vl
problem = vl.Problem(vl.Linear(A=[[-1.0]]), vl.Gaussian(0.0, 1.0), 1.0)
run = vl.solve(problem, "particles", n=3000, tolerance=1e-3, output="run.nc")
size = os.path.getsize("run.nc")
os.remove("run.nc")
for most in (1000, 100_000, size - 3000, size - 100, size - 1):
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, -1))
    try:
        vl.solvers.dataset.save(run, vl.solvers.files.Path("run.nc"))
    except vl.SolverError as error:
        print(error)
"""


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path):
    """From the first byte to the last of the checksum; HDF5 would end the process, some also when it exits."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == 5 * '"run.nc" could not be written: File too large\n'
    assert not list(tmp_path.iterdir())


def test_a_file_is_written_without_a_second_copy_in_memory(tmp_path):
    run = particles()
    schema.save(run, tmp_path / "run.nc")  # imports take memory too
    large = run.assign(large=("place", np.random.default_rng(0).random(10**6)))
    tracemalloc.start()
    try:
        schema.save(large, tmp_path / "run.nc")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert vl.open_run(tmp_path / "run.nc").identical(large)
    assert peak < large["large"].nbytes / 2


def test_an_existing_file_is_replaced_not_rewritten(tmp_path):
    path, other_name = tmp_path / "run.nc", tmp_path / "link"
    path.write_text("old")
    os.link(path, other_name)
    result = vl.solve(PLAIN, "gaussian", output=path, overwrite=True)
    assert vl.open_run(path).identical(result)
    assert other_name.read_text() == "old", "who reads the old file goes on reading it"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("bad")])
def test_an_interrupted_write_leaves_the_old_file_and_no_other(error, tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    before = vl.solve(PLAIN, "gaussian", output=path)
    write = xr.Dataset.dump_to_store

    def interrupted(self, *args, **kwargs):
        write(self, *args, **kwargs)
        raise error

    monkeypatch.setattr(xr.Dataset, "dump_to_store", interrupted)
    expected = vl.SolverError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected, match=r"No space left on device" if isinstance(error, OSError) else None):
        particles(output=path, overwrite=True)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [path]
    assert vl.open_run(path).identical(before)


def test_a_file_obeys_the_users_mask(tmp_path):
    old = os.umask(0o027)
    try:
        vl.solve(PLAIN, "gaussian", output=tmp_path / "run.nc")
    finally:
        os.umask(old)
    assert (tmp_path / "run.nc").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("run.zip", 'output: "{}" must end in .nc'),
        ("run", 'output: "{}" must end in .nc'),
        ("missing/run.nc", 'output: the folder "{parent}" does not exist; create it first'),
        ("folder.nc", 'output: "{}" is a folder; give the name of a file'),
        ("file/run.nc", 'output: the folder "{parent}" does not exist; create it first'),
        ("x" * 300 + ".nc", 'output: "{}" cannot be written (File name too long)'),
        ("null\0.nc", 'output: "{}" cannot be written ('),  # in Python's words
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(output, sentence, tmp_path, monkeypatch):
    (tmp_path / "folder.nc").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr("vlasov.solvers.gaussian.run", lambda *_: pytest.fail("it runs"))
    path = tmp_path / output
    with pytest.raises(vl.InputError) as caught:
        vl.solve(PLAIN, "gaussian", output=path)
    assert str(caught.value).startswith(sentence.format(path, parent=path.parent))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    folder = tmp_path
    if os.access(tmp_path, os.W_OK):  # the superuser may write everywhere but where the kernel says no
        folder = Path("/proc")
    try:
        with pytest.raises(vl.InputError, match=r"^output: .* cannot be written .*; choose another"):
            vl.solve(PLAIN, "gaussian", output=folder / "run.nc")
    finally:
        tmp_path.chmod(0o700)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", [True, 3, b"run.nc", ["run.nc"]])
def test_an_output_that_is_no_path(output):
    with pytest.raises(vl.InputError, match=r"^output: is .* where the path of a file is needed"):
        vl.solve(PLAIN, "gaussian", output=output)


def test_an_output_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vl.solve(PLAIN, "gaussian", output="run.nc")
    assert vl.open_run("run.nc").attrs["status"] == "completed"


def test_the_names_of_the_schema_are_held_once():
    assert {
        name: variable.dims for name, variable in schema.SCHEMA.items()
    } == MOMENTS | SCALARS | TOKENS | PLACES | LAYERS | RESCALED | EULERIAN | PARTS


def test_titles_have_an_article_where_it_belongs():
    for initial, words in ((vl.Particles([0.1, 0.2]), "on particles"), (vl.Gaussian(0.1, 0.2), "on a Gaussian")):
        problem = vl.Problem(vl.Softmax(A=[[0.1]]), initial, 0.1)
        assert particles(problem).attrs["title"] == f"Softmax attention {words}"
