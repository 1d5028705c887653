"""The folder of a study is of that study alone, whoever else writes to it at the same time."""

import pytest
import xarray as xr

import vlasov as vl
from vlasov.errors import InputError, SolverError
from vlasov.postprocess.studies.store import FINISHED, Store

PROBLEM = vl.Problem(vl.Softmax(A=[[0.5]]), vl.Gaussian(0.0, 0.5), 0.5)
DATASET = xr.Dataset({"a": ("n", [1.0, 2.0])})


@pytest.mark.quick
def test_two_studies_begun_at_once_do_not_share_a_folder(tmp_path):
    first, second, again = (Store(tmp_path / "study", {"seed": seed}) for seed in (1, 2, 1))
    assert first.settle({"steps": 10})
    with pytest.raises(InputError, match=r"holds another study: its seed is 1 and not 2"):
        second.settle({"steps": 10})
    assert not again.settle({"steps": 20})
    assert again.settled == first.settled == {"steps": 10}
    assert [file.name for file in (tmp_path / "study").iterdir()] == ["study.json"]


@pytest.mark.quick
def test_a_file_of_the_name_of_the_study_is_not_replaced(tmp_path):
    folder = tmp_path / "study"
    store = Store(folder, {"seed": 1})
    store.settle({})
    store.finish(DATASET.copy())
    Store(folder, {"seed": 1}).finish(DATASET.copy())  # the same once more
    DATASET.to_netcdf(folder / FINISHED, engine="h5netcdf")
    before = (folder / FINISHED).read_bytes()
    with pytest.raises(InputError, match=r'study.nc" is not what this study wrote; move it elsewhere$'):
        Store(folder, {"seed": 1})
    with pytest.raises(SolverError, match=r"study\.partial\.nc"):  # where it came meanwhile
        store.finish(DATASET.copy())
    assert (folder / FINISHED).read_bytes() == before


@pytest.mark.parametrize(
    "study",
    [
        lambda folder: vl.sweep(PROBLEM, {"attention.beta": [1.0]}, solver="gaussian", times=[0.1], output=folder),
        lambda folder: vl.depth_study(PROBLEM, depths=[2, 4], n=4, replicas=2, output=folder),
    ],
)
def test_studies_look_before_they_work(study, tmp_path, monkeypatch):
    folder = tmp_path / "study"
    study(folder)
    study(folder)
    (folder / FINISHED).write_bytes(b"mine")
    monkeypatch.setattr("vlasov.postprocess.studies.collect.collect", lambda *_, **__: pytest.fail("it works"))
    with pytest.raises(InputError, match="move it elsewhere"):
        study(folder)
    assert (folder / FINISHED).read_bytes() == b"mine"
