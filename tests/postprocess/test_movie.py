"""Films: one picture for each output time, a steady camera, and files that appear whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.animation import FFMpegWriter, PillowWriter
from matplotlib.figure import Figure
from PIL import Image

from vlasov.errors import InputError
from vlasov.postprocess.movie import movie

Scene = Callable[[str], xr.Dataset]
SMALL: dict[str, Any] = {"frames": 2, "dpi": 40}


@pytest.mark.parametrize("name", ["euler-1", "euler-2", "euler-3", "euler-blow-up", "collapse-1", "five", "one-time"])
def test_every_dimension_makes_a_film(scene: Scene, tmp_path: Path, name: str) -> None:
    before = dict(mpl.rcParams)
    path = movie(scene(name), path=tmp_path / "run.gif", fps=5, **SMALL)
    with Image.open(path) as film:
        assert getattr(film, "n_frames", 1) == (1 if name == "one-time" else 2)
        if name != "one-time":
            assert film.info["duration"] == 200
    assert [file.name for file in tmp_path.iterdir()] == ["run.gif"]
    assert dict(mpl.rcParams) == before


def filmed(dataset: xr.Dataset, path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Any]:
    """Limits and title of every picture."""
    seen: list[Any] = []

    def grab(writer: Any, **_: Any) -> None:
        panel = writer.fig.axes[0]
        seen.append((panel.get_xlim(), panel.get_ylim(), panel.get_position().bounds, panel.get_title()))
        writer._frames.append(Image.new("RGB", (2, 2)))

    monkeypatch.setattr(PillowWriter, "grab_frame", grab)
    movie(dataset, path=path, **options)
    return seen


def test_the_camera_stands_still_where_it_can(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, options in (("euler-2", {"frames": 5}), ("euler-1", {"frames": 7})):
        seen = filmed(scene(name), tmp_path / "run.gif", monkeypatch, **options)
        assert len(seen) == options["frames"]
        assert len({picture[:3] for picture in seen}) == 1
        chosen = seen[:: len(seen) // 2]
        assert [picture[3].split("$")[2].strip(" =,max") for picture in chosen] == ["0.00", "1.00", "2.00"]


def test_the_camera_follows_a_collapse_smoothly(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = scene("euler-collapse")
    dataset = dataset.isel(time=slice(None, None, 2))
    seen = filmed(dataset, tmp_path / "run.gif", monkeypatch)
    limits = np.array([picture[:2] for picture in seen])
    spans = np.ptp(limits, axis=-1).max(axis=1)
    assert spans[0] / spans[-1] > 50
    assert (spans[1:] < 1.01 * spans[:-1]).all()
    mean = dataset["mean"].values
    assert ((limits[..., 0] < mean) & (mean < limits[..., 1])).all()
    assert len({picture[2] for picture in seen}) == 1


def test_density_and_tokens_share_a_film(scene: Scene, tmp_path: Path) -> None:
    movie(scene("collapse-2"), scene("euler-2"), path=tmp_path / "run.gif", **SMALL)


def test_a_failed_film_leaves_the_old_file_and_nothing_else(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "run.gif"
    target.write_text("old")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    with pytest.raises(InputError, match="No space left on device"):
        movie(scene("euler-1"), path=target, **SMALL)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("run.gif", "old")]


@pytest.mark.parametrize(
    ("path", "options", "sentence"),
    [
        ("run.avi", {}, r"path: .* known format; choose one of: \.gif, \.mp4"),
        ("no/such/run.gif", {}, "path: .* its folder does not exist; create it first"),
        ("run.mp4", {}, r"path: .* needs the program ffmpeg, which is not installed; write a \.gif file"),
        ("run.gif", {"fps": 0}, "fps: is 0 but must be at least 1"),
        ("run.gif", {"frames": 0}, "frames: is 0 but must be at least 1"),
        ("run.gif", {"components": (0, 5)}, "two different components between 0 and 1"),
    ],
)
def test_mistakes_are_one_sentence(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, options: dict[str, Any], sentence: str
) -> None:
    monkeypatch.setattr(FFMpegWriter, "isAvailable", lambda: False)
    with pytest.raises(InputError, match=sentence):
        movie(scene("euler-2"), path=tmp_path / path, **options)
    assert not list(tmp_path.iterdir())
