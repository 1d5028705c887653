"""``vlasov doctor``: what it says of the installation is true, and an installation that computes wrong is found."""

import json
import platform

import numpy as np
import pytest

from vlasov import doctor
from vlasov.cli import main


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["vlasov", "doctor", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code or 0


@pytest.mark.quick
def test_the_installation_is_described_and_right(monkeypatch, capsys):
    assert run(monkeypatch, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["python"] == platform.python_version()
    assert found["packages"]["numpy"] == np.__version__
    assert found["threads"] >= 1
    assert isinstance(found["cache_writable"], bool)
    assert len(found["checks"]) == 5
    assert all(check["passed"] and check["error"] <= check["allowed"] for check in found["checks"])


@pytest.mark.parametrize("wrong", [1.0, float("nan")])
def test_wrong_numbers_are_found(monkeypatch, capsys, wrong):
    monkeypatch.setattr(doctor, "self_check", lambda: [doctor.Check("sums", wrong, 1e-9, 0.0)])
    assert run(monkeypatch) == 1
    said = capsys.readouterr()
    assert "WRONG  sums: off by" in said.out
    assert "computes wrong numbers" in said.err


def test_a_cache_that_cannot_be_written_is_said(monkeypatch):
    monkeypatch.setattr(doctor, "_cache", lambda: None)
    found = doctor.environment()
    assert (found["cache"], found["cache_writable"]) == ("", False)
