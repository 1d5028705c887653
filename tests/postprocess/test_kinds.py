"""Every Dataset says what it is, and whoever is given another kind says so in one sentence."""

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.clusters.table import table as clusters_table
from vlasov.postprocess.compare import figure as compare_figure
from vlasov.postprocess.compare.table import table as compare_table
from vlasov.postprocess.depth import figure as depth_figure
from vlasov.postprocess.depth.table import table as depth_table
from vlasov.postprocess.mean_field import figure as study_figure
from vlasov.postprocess.mean_field.table import table as study_table
from vlasov.postprocess.movie import movie
from vlasov.postprocess.sweep import figure as sweep_figure

PROBLEM = vl.Problem(vl.Softmax(A=[[0.6]]), vl.Gaussian(0.1, 0.2), 0.5)


@pytest.fixture(scope="module")
def made():
    run = vl.solve(PROBLEM, "gaussian", times=[0.0, 0.5])
    study = vl.mean_field_study(PROBLEM, n=[4, 8], replicas=2)
    layers = vl.depth_study(PROBLEM, depths=[2, 4], n=4, replicas=2)
    found = vl.clusters(vl.solve(PROBLEM, "particles", n=4, times=[0.0, 0.5], tolerance=1e-3, warn_above=np.inf))
    many = vl.sweep(PROBLEM, {"horizon": [0.2, 0.3]}, solver="gaussian", times=[0.1])
    studies = {"study": study, "depth study": layers, "sweep": many}
    return {"run": run, **studies, "comparison": vl.compare(run, run), "clusters": found}


@pytest.mark.quick
def test_each_says_its_kind(made):
    assert {name: dataset.attrs["kind"] for name, dataset in made.items()} == {name: name for name in made}
    assert {dataset.attrs["Conventions"] for dataset in made.values()} == {"CF-1.11 vlasov-1"}
    assert vl.on_grid(made["run"], 8).attrs["kind"] == "grid"
    assert made["study"]["component"].values.tolist() == ["x_1"]


USES = {
    "measure": ("run", lambda run, made: vl.measure(run)),
    "plot": ("run", lambda run, made: figures.plot(run)),
    "plot with a run": ("run", lambda run, made: figures.plot([made["run"], run])),
    "ellipses": ("run", lambda run, made: figures.eigenvalues(run)),
    "movie": ("run", lambda run, made: movie(run, path="film.gif")),
    "compare": ("run", lambda run, made: vl.compare(run, made["run"])),
    "compare to": ("run", lambda run, made: vl.compare(made["run"], run)),
    "picture of a comparison": ("comparison", lambda one, made: compare_figure.draw(one, [made["run"]] * 2)),
    "table of a comparison": ("comparison", lambda one, made: compare_table(one)),
    "clusters": ("run", lambda run, made: vl.clusters(run)),
    "table of clusters": ("clusters", lambda one, made: clusters_table(one)),
    "picture beside": ("study", lambda one, made: compare_figure.draw(made["comparison"], [made["run"]] * 2, one)),
    "picture of a study": ("study", lambda study, made: study_figure.draw(study)),
    "table of a study": ("study", lambda study, made: study_table(study)),
    "picture of a depth study": ("depth study", lambda study, made: depth_figure.draw(study)),
    "picture of a sweep": ("sweep", lambda sweep, made: sweep_figure.draw(sweep)),
    "table of a depth study": ("depth study", lambda study, made: depth_table(study)),
}


@pytest.mark.parametrize("given", ["run", "study", "depth study", "sweep", "comparison", "clusters"])
@pytest.mark.parametrize("use", USES)
def test_another_kind_is_named(use, given, made):
    wanted, call = USES[use]
    if given == wanted:
        return
    said = [f"a table of {kind}" if kind == "clusters" else f"a {kind}" for kind in (given, wanted)]
    with pytest.raises(vl.InputError, match=f"^[a-z0-9\\[\\]]+: is {said[0]} where {said[1]} is needed; give what"):
        call(made[given], made)


def test_files_older_than_kinds_are_runs_if_they_look_like_runs(made):
    for name, dataset in made.items():
        del (older := dataset.copy()).attrs["kind"]
        if name == "run":
            assert vl.measure(older) == vl.measure(dataset)
        else:
            with pytest.raises(vl.InputError, match="dataset: is no Dataset that vlasov made where a run is needed"):
                vl.measure(older)


def test_a_whole_number_is_an_index_and_any_other_a_time():
    run = vl.solve(PROBLEM, "gaussian", times=[0.0, 0.25, 0.5])
    assert vl.measure(run, 1) == vl.measure(run, 0.25)
    assert vl.measure(run, 0) == vl.measure(run, 0.0)
    with pytest.raises(vl.InputError, match=r"^time: 1 is not an output time; the nearest are 0\.25 and 0\.5"):
        vl.measure(run, 1.0)
