"""The figures by name, the overview and files: what they are made of, and mistakes, which are one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import vlasov as vl
from tests.postprocess.conftest import SCENES
from vlasov.errors import InputError
from vlasov.postprocess import figures

Scene = Callable[[str], xr.Dataset]


PANELS = {
    "collapse-1": 2, "collapse-2": 6, "euler-1": 6, "euler-2": 8, "five": 2, "gaussian-1": 2,
    "gaussian-2": 3, "one-time": 3,
}  # fmt: skip


@pytest.mark.parametrize("name", SCENES)
def test_an_overview_of_every_scene_can_be_drawn(name: str) -> None:
    """The solver and the dimension decide which panels an overview has."""
    figure = figures.overview(SCENES[name]())
    FigureCanvasAgg(figure).draw()
    if name in PANELS:
        assert len(figure.axes) == PANELS[name]  # the colour bar of ellipses is an axes of its own
        assert figure.get_suptitle() == "A run"
        assert figure.get_supxlabel() == ""


def test_global_settings_stay_as_they_are(scene: Scene) -> None:
    before = dict(mpl.rcParams)
    for kind in figures.KINDS:
        figures.plot(scene("collapse-2"), kind=kind)
    assert dict(mpl.rcParams) == before


def test_overview_says_how_a_run_ended(scene: Scene) -> None:
    assert figures.overview(scene("blow-up-2")).get_supxlabel() == "The run ended in blow-up at t = 1."
    stopped = figures.overview(scene("nothing-moves"))
    assert stopped.get_supxlabel() == "The run was stopped at t = 2, before its horizon."
    both = figures.overview([scene("blow-up-gaussian"), scene("collapse-2")])
    assert both.get_supxlabel() == "The gaussian run ended in blow-up at t = 1."


def test_overview_of_several_on_the_line_compares_variances(scene: Scene) -> None:
    figure = figures.overview([scene("gaussian-1"), scene("collapse-1")])
    assert [ax.get_ylabel() for ax in figure.axes] == ["variance"]


@pytest.mark.parametrize(("suffix", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("PNG", b"\x89PNG")])
def test_saved_files_are_of_their_format(scene: Scene, tmp_path: Path, suffix: str, start: bytes) -> None:
    """tests/postprocess/test_print.py shows that they are reproducible."""
    figures.save(figures.eigenvalues(scene("three")), tmp_path / f"picture.{suffix}")
    (file,) = tmp_path.iterdir()
    assert file.read_bytes().startswith(start)


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "run.png"
    target.write_text("old")

    def full(_: Figure, path: Path, **__: Any) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    with pytest.raises(InputError, match="No space left on device"):
        figures.save(Figure(), target)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("run.png", "old")]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda scene: figures.plot(scene("rescaled"), kind="snapshot"),
            'kind: "snapshot" is not known; did you mean "snapshots"?',
        ),
        (
            lambda scene: figures.plot(scene("rescaled"), kind="cone", lines=1),
            'lines: is not an option of the figure "cone"',
        ),
        (
            lambda scene: figures.plot(scene("rescaled"), kind="overview", times=3),
            'times: is not an option of the figure "overview"; choose one of: width',
        ),
        (lambda scene: figures.plot([scene("rescaled")] * 2, kind="snapshots"), "draws one solution but 2 were given"),
        (lambda _: figures.plot([]), "datasets: is empty"),
        (lambda scene: figures.plot(scene("rescaled"), "cone"), 'datasets: is "cone" where a solution is needed'),
        (lambda scene: figures.cone(scene("five")), "dataset: has dimension 5 where the cone needs 2"),
        (lambda _: figures.cone([]), "datasets: is empty"),
        (lambda _: figures.cone(np.ones((3, 3))), r"covariances: has shape \(3, 3\)"),
        (lambda scene: figures.cone(scene("rescaled"), ax=Figure().add_subplot()), "ax: is flat"),
        (lambda scene: figures.ellipses(scene("gaussian-1")), "dataset: has dimension 1, where there are no ellipses"),
        (lambda scene: figures.trajectories(scene("gaussian-2")), "dataset: holds no positions"),
        (
            lambda scene: figures.trajectories(scene("rescaled"), components=(0, 2)),
            "two different components between 0 and 1",
        ),
        (
            lambda scene: figures.snapshots(scene("rescaled"), components=(1, 1)),
            "two different components between 0 and 1",
        ),
        (lambda scene: figures.snapshots(scene("rescaled"), times=0), "times: is 0 but must be at least 1"),
        (lambda scene: figures.snapshots(scene("rescaled"), times=[]), "times: is empty"),
        (lambda scene: figures.trajectories(scene("rescaled"), lines=0), "lines: is 0 but must be at least 1"),
        (lambda scene: figures.ellipses(scene("rescaled"), count=0), "count: is 0 but must be at least 1"),
        (lambda scene: figures.ellipses(scene("rescaled"), deviations=-1), "deviations: is -1 but must be"),
        (
            lambda scene: figures.snapshots(scene("rescaled"), times=[1.0, 7.0]),
            "times: 7 is outside the run, .* from 0 to 2",
        ),
        (
            lambda scene: figures.snapshots(scene("rescaled"), axes=[Figure().add_subplot()]),
            "axes: holds 1 panels where 4",
        ),
        (
            lambda scene: figures.eigenvalues([scene("rescaled")] * 2, labels=["a"]),
            "labels: holds 1 names for 2 solutions",
        ),
        (lambda scene: figures.eigenvalues(scene("gaussian-2").isel(time=[])), "dataset: holds no mean and covariance"),
        (lambda _: figures.save(Figure(), "run.jpg"), r"known format; choose one of: \.png, \.pdf, \.svg"),
        (lambda _: figures.save(Figure(), "run"), r"known format; choose one of: \.png, \.pdf, \.svg"),
        (lambda _: figures.save(Figure(), "no/such/folder/run.png"), "its folder does not exist; create it first"),
        (lambda _: figures.save(Figure(), "/proc/run.png"), "cannot be written .*; choose a folder you may write to"),
    ],
)
def test_mistakes_are_one_sentence(scene: Scene, call: Callable[[Scene], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        call(scene)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("attributes", "note"),
    [
        ({"error_estimate": 0.25, "advice": "more cells"}, "The run has an estimated error of 0.25: see its advice."),
        ({"error_estimate": 0.25, "advice": ""}, "The run has an estimated error of 0.25."),
        ({"advice": "more cells"}, "The run is not to be trusted: see its advice."),
        ({"error_estimate": 1e-3, "advice": ""}, ""),
    ],
)
def test_a_picture_says_that_a_run_is_doubtful(attributes, note):
    run = vl.solve(
        vl.Problem(vl.Softmax(A=-np.eye(2)), vl.Gaussian([0.3, 0.0], np.eye(2)), 0.5), "gaussian", times=[0.0, 0.5]
    )
    run.attrs |= attributes
    figure = figures.overview(run)
    assert figure.get_supxlabel() == note
