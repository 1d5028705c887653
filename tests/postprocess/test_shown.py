"""What xarray shows of a Dataset of ours: first what it is, every variable with a name in words, numbers with units."""

from html import unescape

import numpy as np
import pytest

import vlasov as vl

A = [[0.6, 0.1], [0.1, 0.3]]
PROBLEM = vl.Problem(vl.Softmax(A=A, V=A), vl.Gaussian([0.1, 0.0], [[0.2, 0.0], [0.0, 0.1]]), 0.5)


@pytest.fixture(scope="module")
def made():
    options = {"times": [0.0, 0.25, 0.5], "warn_above": np.inf}
    runs = [
        vl.solve(PROBLEM, "gaussian", **options),
        vl.solve(PROBLEM, "particles", n=9, sampling="quadrature", **options),
    ]
    return {
        "run": runs[1],
        "comparison": vl.compare(*runs),
        "study": vl.mean_field_study(PROBLEM, n=[4, 8], replicas=2),
        "depth study": vl.depth_study(PROBLEM, depths=[2, 4], n=4, replicas=2),
        "Lipschitz study": vl.lipschitz_study(PROBLEM, n=[4, 8], replicas=2, data=["random"]),
        "sweep": vl.sweep(PROBLEM, {"horizon": [0.2, 0.3]}, solver="gaussian", times=[0.1]),
        "sensitivity": vl.sensitivity(PROBLEM, n=9, times=[0.0, 0.5]),
        "energies": vl.energies(runs[1]),
        "gaussianity": vl.gaussianity(runs[1], times=2),
        "clusters": vl.clusters(runs[1]),
    }


KINDS = ["run", "comparison", "study", "depth study", "Lipschitz study", "sweep", "sensitivity", "energies"]


@pytest.mark.parametrize("name", [*KINDS, "gaussianity", "clusters"])
def test_every_variable_says_what_it_is(made, name):
    dataset = made[name]
    assert dataset.attrs["title"] == "Softmax attention on a Gaussian"
    unnamed = [key for key, variable in dataset.variables.items() if not variable.attrs.get("long_name")]
    assert unnamed == []
    numbers = [key for key, one in dataset.variables.items() if one.dtype.kind == "f"]
    assert [key for key in numbers if dataset[key].attrs.get("units") != "1"] == []
    shown = unescape(dataset._repr_html_())
    assert shown.index("Softmax attention on a Gaussian") > 0
    assert [one.attrs["long_name"] for one in dataset.variables.values() if one.attrs["long_name"] not in shown] == []
