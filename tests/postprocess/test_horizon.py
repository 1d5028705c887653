"""Studies of solutions that blow up end before, by themselves, and say so."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

import vlasov as vl
from vlasov.cli.app import app
from vlasov.postprocess.mean_field import mean_field_study

# x' = x sinh(x^2): t = (1/2) int_1^oo du / (u sinh u)
_EXPONENTIAL = quad(lambda u: 0.5 / (u * np.sinh(u)), 1.0, 50.0)[0]
BLOW_UPS = {"gaussian-blow-up": 1.0, "exponential-blow-up": _EXPONENTIAL, "relu-blow-up": 3.0}


@pytest.mark.parametrize("case", BLOW_UPS)
def test_a_study_in_n_ends_at_a_quarter_of_the_blow_up(case):
    study = mean_field_study(vl.load_case(case).problem, n=[64, 256, 1024], replicas=12, p=1, exact_up_to=0)
    assert study["time"].values[-1] == pytest.approx(BLOW_UPS[case] / 4, rel=5e-3)
    assert f"blows up at t = {BLOW_UPS[case]:.4g}, " in study.attrs["doubt"]
    slopes = study.isel(time=-1, sampling=0, p=0).sel(quantity=["coupled", "mean_error", "velocity_error"])
    assert np.abs(slopes["slope"] + 0.5).max() < 0.15
    assert (slopes["low"] < -0.45).all()
    assert (slopes["high"] > -0.55).all()


def test_explicit_times_end_before_the_blow_up():
    problem = vl.load_case("gaussian-blow-up").problem
    with pytest.raises(vl.InputError, match=r"^times: run to 1.2, but .* blows up at t = 1; choose earlier times"):
        mean_field_study(problem, n=[8], times=[0.5, 1.2])
    study = mean_field_study(problem, n=[8, 16], replicas=2, times=[0.5], exact_up_to=0)
    assert study["time"].values.tolist() == [0.0, 0.5]
    assert "doubt" not in study.attrs


@pytest.mark.parametrize("horizon", [0.4, 1.5])
def test_a_masked_gaussian_blows_up_as_without_the_mask(horizon):
    plain = vl.load_case("gaussian-blow-up").problem
    masked = vl.Problem(vl.Masked(plain.attention), vl.Sequence([plain.initial]), horizon)
    study = mean_field_study(masked, n=[8, 16], replicas=2, exact_up_to=0, tolerance=1e-4)
    assert study["time"].values[-1] == (0.25 if horizon > 1 else 0.4)


def test_bounded_attention_on_a_ball_needs_no_look_ahead(monkeypatch):
    from vlasov.postprocess.studies import horizon

    monkeypatch.setattr(horizon, "solve", None)
    box = vl.Problem(vl.Softmax(A=[[0.6]]), vl.Box(-1, 1), 0.5)
    assert "doubt" not in mean_field_study(box, n=[8], replicas=1).attrs


def test_converge_says_where_it_ends_and_goes_on_there(tmp_path, capsys):
    command = ["converge", "exponential-blow-up", "--replicas", "2", "-o", str(tmp_path / "study")]
    for n in ("16", "16,32"):
        app([*command, "--n", n], standalone_mode=False)
        said = " ".join(capsys.readouterr().out.split())
        assert f"a quarter of that, t = {_EXPONENTIAL / 4:.3g}" in said
    assert vl.open_run(tmp_path / "study" / "study.nc").sizes["n"] == 2


def test_converge_writes_its_study_once(tmp_path, monkeypatch):
    written, target = [], tmp_path / "study"
    for name in ("replace", "link"):  # a file takes its name by one of them
        move = getattr(os, name)
        monkeypatch.setattr(os, name, lambda source, to, move=move: written.append(Path(to)) or move(source, to))
    command = ["converge", "dirac-pair", "--n", "8,16", "--replicas", "2", "--local", "-o", str(target)]
    app(command, standalone_mode=False)
    assert [path.name for path in written].count("study.nc") == 1
    assert np.isfinite(vl.open_run(target / "study.nc")["log_optimal_growth"]).all()
