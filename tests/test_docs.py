"""The programs in docs/examples run: each study small, held against the theory where that is quick, and drawn."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parent.parent / "docs" / "examples"


def program(name):
    """A program as a module, which does nothing by itself."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_smooth_densities_approach_hardmax_faster_than_jumps(monkeypatch):
    limit = program("hardmax_limit")
    monkeypatch.setattr(limit, "BETAS", np.array([256.0, 1024.0]))
    found = {density: limit.study(density, n=512) for density in ("smooth", "jumping")}
    fall = {
        density: np.log(one["apart"].sel(time=1.0).values[0] / one["apart"].sel(time=1.0).values[1]) / np.log(4)
        for density, one in found.items()
    }
    assert np.abs(fall["smooth"] - 1).max() < 0.05
    assert fall["jumping"][2] == pytest.approx(0.5, abs=0.05)
    limit.draw(found)


def test_tokens_merge_in_plateaus(monkeypatch):
    plateaus = program("plateaus")
    monkeypatch.setattr(plateaus, "BETAS", np.array([1.0, 8.0]))
    monkeypatch.setattr(plateaus, "TIMES", np.array([0.0, 1.0, 30.0]))
    found = plateaus.study(n=24)
    counts = found["count"].values
    assert (np.diff(counts, axis=1) <= 0).all()
    assert counts[0, -1] == 1
    assert counts[1, -1] > 1
    plateaus.draw(found)


def test_wide_tokens_grow_as_under_hardmax(monkeypatch):
    radius = program("initial_radius")
    monkeypatch.setattr(radius, "RADII", np.array([0.05, 12.0]))
    found = radius.study()
    c = np.e - 1
    grown = radius.growth(found).values
    assert grown[0] == pytest.approx([1.0, np.sqrt(1 + 8 * c / 3 + 2 * c**2)], rel=0.01)
    assert grown[:, 0] == pytest.approx(1.0, abs=0.003)
