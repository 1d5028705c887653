"""Pictures of clusters, of directions on the sphere, and the command that prints and draws them."""

import json

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import vlasov as vl
from tests.test_cli import refused
from vlasov.postprocess import figures


@pytest.fixture(scope="module")
def runs():
    """A rescaled and a post-norm run by dimension."""
    points = np.random.default_rng(0).uniform(-1, 1, (12, 4))
    how = {"times": np.linspace(0, 6.0, 5), "tolerance": 1e-6, "warn_above": np.inf}
    pairs = {}
    for d in (1, 2, 3, 4):
        problem = vl.Problem(vl.Softmax(A=2 * np.eye(d)), vl.Particles(points[:, :d]), 6.0)
        normed = problem.changed(layer_norm=vl.LayerNorm())
        pairs[d] = (
            vl.solve(problem, "particles", rescaled=True, **how),
            vl.solve(normed, "particles", **how),
        )
    return pairs


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_clusters_are_drawn_in_every_dimension(runs, d):
    for run in runs[d]:
        figure = figures.plot(run, kind="clusters")
        FigureCanvasAgg(figure).draw()
        assert figure.axes[1].get_ylabel() == "number of clusters"


@pytest.mark.quick
@pytest.mark.parametrize("d", [2, 3])
def test_paths_on_the_sphere_are_on_it(runs, d):
    figure = figures.plot(runs[d][1], kind="sphere")
    FigureCanvasAgg(figure).draw()
    if d == 3:
        drawn = [np.array(line.get_data_3d()) for line in figure.axes[0].get_lines()]
        assert all(np.allclose(np.linalg.norm(path, axis=0), 1.0) for path in drawn)


@pytest.mark.parametrize("d", [1, 4])
def test_spheres_of_other_dimensions_are_refused(runs, d):
    with pytest.raises(
        vl.InputError, match=f'^dataset: has dimension {d} where a sphere is drawn for 2 and 3; use "cl'
    ):
        figures.plot(runs[d][0], kind="sphere")


def test_the_picture_says_what_is_no_limit(runs):
    figure = figures.plot(runs[2][0].isel(time=[0]), kind="clusters")
    assert any("One output time does not show" in text.get_text() for text in figure.texts)


def test_many_clusters_one_token_and_wrong_axes(runs):
    problem = vl.Problem(vl.Softmax(A=np.eye(2)), vl.Gaussian([0, 0], np.eye(2)), 0.1)
    run = vl.solve(problem, "particles", n=200, times=[0.0, 0.1], tolerance=1e-3)
    assert figures.plot(run, kind="clusters", tolerance=1e-3).axes[1].get_yscale() == "log"
    FigureCanvasAgg(figures.plot(runs[2][0].isel(particle=[0]), kind="clusters")).draw()
    with pytest.raises(vl.InputError, match=r"^axes: holds 1 axes where two are needed"):
        figures.plot(run, kind="clusters", axes=figures.plot(run, kind="clusters").axes[:1])
    with pytest.raises(vl.InputError, match=r"^run: holds no tokens"):
        figures.plot(vl.solve(problem, "gaussian", times=[0.0, 0.1]), kind="clusters")


# The command


@pytest.fixture
def files(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, run in zip(("free.nc", "normed.nc"), runs[2], strict=True):
        run.to_netcdf(name)
    return tmp_path


@pytest.mark.quick
def test_clusters_of_a_run_are_printed_and_drawn(files, vlasov):
    code, out, err = vlasov("observe", "free.nc", "-q", "clusters", "--rank", "-o", "free-clusters.png")
    assert (code, err) == (0, "")
    assert "vertex" in out
    assert "Rank of the attention: " in out
    assert out.splitlines()[-1] == "free-clusters.png"
    assert (files / "free-clusters.png").stat().st_size > 10_000


def test_clusters_as_json(files, vlasov):
    code, out, _ = vlasov("observe", "free.nc", "-q", "clusters", "--json", "-o", "picture.svg", "--tolerance", "0.1")
    assert code == 0
    assert json.loads(out)["output"] == "picture.svg"
    found = json.loads(out)["clusters"]
    assert sum(found["mass"]) == pytest.approx(1.0)
    assert len(found["count"]) == len(found["time"]) == 5
    assert found["reach"] == pytest.approx(float(vl.clusters(vl.open_run("free.nc"), tolerance=0.1)["reach"]))


def test_clusters_are_written_as_numbers(files, vlasov):
    assert vlasov("observe", "free.nc", "-q", "clusters", "-o", "numbers.nc")[0] == 0
    written, known = vl.open_run("numbers.nc"), vl.clusters(vl.open_run("free.nc"))
    assert written.drop_attrs().equals(known.drop_attrs())


def test_mistakes_are_one_line(files, vlasov):
    assert refused(vlasov("observe", "free.nc", "--tolerance", "-1"), "tolerance: is -1")
    assert refused(
        vlasov("observe", "free.nc", "-q", "clusters", "-o", "picture.txt"), "does not end in a known format"
    )
    problem = vl.Problem(vl.Softmax(A=np.eye(2)), vl.Gaussian([0, 0], np.eye(2)), 0.1)
    vl.solve(problem, "gaussian", times=[0.0, 0.1], output="gaussian.nc")
    assert refused(vlasov("observe", "gaussian.nc", "-q", "clusters"), "holds no tokens", "particles")
