"""What of a run is written, and when: output times, statistics, numbers for other programs."""

import numpy as np
import pytest

import vlasov as vl

QUICK = "gaussian-line"  # a case that takes no time


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("option", "times"), [(("--times", "3"), [0.0, 0.25, 0.5]), (("--at", "0, 0.1,0.5"), [0.0, 0.1, 0.5])]
)
def test_output_times_are_a_count_or_named(vlasov, option, times):
    code, _, err = vlasov("run", QUICK, "--set", "horizon=0.5", *option, "-o", "run.nc")
    assert (code, err) == (0, "")
    np.testing.assert_allclose(vl.open_run("run.nc")["time"], times, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--times 3 --at 0,1", '--times: is 3, but --at names "0,1"; leave out one of them'),
        ("--times 1", "--times: is 1 but must be at least 2"),
        ("--at 0,soon", '--at: is "0,soon" where numbers with commas between them are needed'),
        ("--at 0.5,0.1", "--at: must increase; sort them and leave out repetitions"),
        ("--at 0,nan", "--at: entry [1] is nan; every entry must be a finite number"),
        ("--at 0,1 --set horizon=0.5", "--at: run from 0 to 1 but must lie in [0, 0.5]"),
    ],
)
def test_output_times_that_cannot_be(vlasov, options, sentence):
    assert vlasov("run", QUICK, *options.split()) == (2, "", f"vlasov: {sentence}\n")
