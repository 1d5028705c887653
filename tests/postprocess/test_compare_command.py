"""`vlasov compare` solves at as many times as the estimate a posteriori needs."""

import sys

import numpy as np
import pytest

import vlasov as vl
from vlasov.cli import main


def _run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["vlasov", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0


def test_the_estimate_is_the_same_by_three_times_and_by_five(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = {}
    for times in (3, 5):
        asked = ("compare", "dirac-pair", "--shift", "0.1", "--no-local", "--times", str(times))
        _run(monkeypatch, *asked, "-o", f"{times}.nc")
        found[times] = vl.open_run(f"{times}.nc")
        assert found[times].sizes["time"] == times
    logs = [found[times]["log_a_posteriori"].sel(time=[1.0, 2.0]).values for times in found]
    assert logs[0] == pytest.approx(logs[1], rel=0.02)
    assert "no digit" not in capsys.readouterr().out


def test_a_gaussian_whose_mean_runs_away(tmp_path, monkeypatch, capsys):
    """To 10^84 deviations from the other one: W_p is the distance of the means."""
    monkeypatch.chdir(tmp_path)
    _run(monkeypatch, "compare", "gaussian-line", "--shift", "0.1", "--no-local", "--times", "2", "-o", "a.nc")
    growth = vl.open_run("a.nc")["growth"].values[0, -1]
    assert np.log(growth[0]) == pytest.approx(200.0, abs=4.0)
    assert (
        "no estimate holds, since the support of the initial measure is not bounded"
        in capsys.readouterr().out.replace("\n", " ")
    )
