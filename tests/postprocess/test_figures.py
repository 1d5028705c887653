"""The figures by name, the overview and files: nothing is cut off or covered, and mistakes are one sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

import vlasov as vl
from vlasov.errors import InputError
from vlasov.postprocess import figures

Scene = Callable[[str], xr.Dataset]


def assert_tidy(figure: Figure) -> None:
    """Everything lies inside the figure, and no panel with its labels touches another or the title."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    boxes: list[Any] = [ax.get_tightbbox(renderer) for ax in figure.axes if ax.get_visible()]
    boxes += [text.get_window_extent(renderer) for text in figure.texts]
    for box in boxes:
        assert figure.bbox.x0 - 1 <= box.x0 < box.x1 <= figure.bbox.x1 + 1
        assert figure.bbox.y0 - 1 <= box.y0 < box.y1 <= figure.bbox.y1 + 1
    for one, other in combinations(boxes, 2):
        width = min(one.x1, other.x1) - max(one.x0, other.x0)
        height = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(width, height) <= 1, (one, other)


def test_overviews_are_tidy(every_scene: xr.Dataset) -> None:
    """They are made of the figures below."""
    assert_tidy(figures.plot(every_scene, kind="overview"))


@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [
        *(("snapshots", name, {}) for name in "collapse-1 collapse-2 blow-up-2 rescaled five three one-time".split()),
        *(("snapshots", name, {}) for name in "dirac vanishing huge euler-1 euler-2 euler-3".split()),
        *(("eigenvalues", name, {}) for name in "gaussian-1 gaussian-8 blow-up-6 one-time vanishing huge".split()),
        ("trajectories", "collapse-1", {}),
        ("trajectories", "rescaled", {}),
        ("trajectories", "five", {"components": (3, 1)}),
        ("ellipses", "gaussian-2", {}),
        ("ellipses", "blow-up-gaussian", {}),
        ("cone", "gaussian-2", {"trace_one": True}),
        ("cone", "gaussian-2", {}),
        ("cone", "blow-up-gaussian", {"labels": ["one"]}),
        ("cone", "huge", {}),
        ("radius", "collapse-2", {}),
        ("radius", "blow-up-2", {}),
        ("radius", "one-time", {}),
        ("snapshots", "euler-3", {"components": (2, 0)}),
    ],
)
def test_other_figures_are_tidy(scene: Scene, kind: str, name: str, options: dict[str, Any]) -> None:
    assert_tidy(figures.plot(scene(name), kind=kind, **options))


def test_global_settings_stay_as_they_are(scene: Scene) -> None:
    before = dict(mpl.rcParams)
    for kind in figures.KINDS:
        figures.plot(scene("collapse-2"), kind=kind)
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("name", "panels"),
    [
        ("collapse-2", 6),
        ("one-time", 3),
        ("gaussian-2", 3),
        ("gaussian-1", 2),
        ("collapse-1", 2),
        ("five", 2),
        ("euler-2", 8),
        ("euler-1", 6),
    ],
)
def test_overview_is_composed_by_solver_and_dimension(scene: Scene, name: str, panels: int) -> None:
    figure = figures.overview(scene(name))
    assert len(figure.axes) == panels  # the colour bar of ellipses is an axes of its own
    assert figure.get_suptitle() == "A run"
    assert figure.get_supxlabel() == ""


def test_overview_says_how_a_run_ended(scene: Scene) -> None:
    assert figures.overview(scene("blow-up-2")).get_supxlabel() == "The run ended in blow-up at t = 1."
    stopped = figures.overview(scene("nothing-moves"))
    assert stopped.get_supxlabel() == "The run was stopped at t = 2, before its horizon."
    both = figures.overview([scene("blow-up-gaussian"), scene("collapse-2")])
    assert both.get_supxlabel() == "The gaussian run ended in blow-up at t = 1."
    assert_tidy(both)
    over_key = figures.overview([scene("euler-blow-up"), scene("blow-up-2")])
    assert_tidy(over_key)
    (key,) = over_key.legends
    (sentence,) = [text for text in over_key.texts if "ended" in text.get_text()]
    assert not key.get_window_extent().overlaps(_first_line(sentence))


def _first_line(text: Any) -> Bbox:
    box = text.get_window_extent()
    return Bbox([[box.x0, box.y1 - box.height / 2], [box.x1, box.y1]])


def test_overview_of_several_on_the_line_compares_variances(scene: Scene) -> None:
    figure = figures.overview([scene("gaussian-1"), scene("collapse-1")])
    assert [ax.get_ylabel() for ax in figure.axes] == ["variance"]


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg", "PNG"])
def test_saved_files_are_whole_and_reproducible(scene: Scene, tmp_path: Path, suffix: str) -> None:
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    for name in ("one", "two"):
        figures.save(figures.trajectories(scene("three")), tmp_path / f"{name}.{suffix}")
    one, two = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("one", "two"))
    assert one.startswith(starts[suffix.lower()])
    assert one == two
    assert len(list(tmp_path.iterdir())) == 2


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


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys, vlasov.postprocess; assert 'matplotlib' not in sys.modules;"
        "import vlasov.postprocess.figures; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


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
