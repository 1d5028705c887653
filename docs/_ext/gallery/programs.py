"""sphinx-gallery for docs/examples: short programs run as from the command line, long ones show a committed picture.

A program writes its picture to the path that is its argument. Here that path is in a temporary folder of this
build, from which the picture is taken. ``RUN`` are those that end within ten seconds.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

RUN = ("covariance_limits", "cured_blow_up", "gathering_tokens", "initial_radius", "limit_ranks", "rough_attention")


class Arguments:
    """What a program is called with: where its picture goes."""

    def __repr__(self) -> str:
        """The same in each build, so that Sphinx sees no change of configuration."""
        return "Arguments()"

    def __call__(self, gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
        """The arguments after the program's name."""
        return [str(_place(script_vars["src_file"]))]


class Taken:
    """The picture that a program has written."""

    def __repr__(self) -> str:
        """The same in each build."""
        return "Taken()"

    def __call__(self, block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
        """As reST, if there is one that was not taken yet."""
        from sphinx_gallery.scrapers import figure_rst

        picture = _place(block_vars["src_file"])
        if not picture.exists():
            return ""
        target = next(block_vars["image_path_iterator"])
        shutil.move(picture, target)
        return str(figure_rst([target], gallery_conf["src_dir"]))


@cache
def _drawn() -> tempfile.TemporaryDirectory[str]:
    """A folder of this build's own, removed at its end: others may run beside it."""
    return tempfile.TemporaryDirectory(prefix="vlasov-manual-")


def _place(program: str) -> Path:
    return Path(_drawn().name) / f"{Path(program).stem}.png"


def settings(docs: Path) -> dict[str, Any]:
    """The configuration of sphinx-gallery."""
    return {
        "examples_dirs": str(docs / "examples"),
        "gallery_dirs": str(docs / "gallery" / "programs"),
        "filename_pattern": "|".join(rf"{re.escape(name)}\.py" for name in RUN),
        "reset_argv": Arguments(),
        "image_scrapers": (Taken(),),
        "reset_modules": (),
        "notebook_extensions": set(),  # myst-nb would read them as pages
        "download_all_examples": False,
        "show_memory": False,
        "show_signature": False,
        "write_computation_times": False,
        "abort_on_example_error": True,
        "within_subsection_order": "FileNameSortKey",
        "copyfile_regex": "",
        "remove_config_comments": True,
    }


def register(app: Sphinx) -> None:
    """Load sphinx-gallery, and tell it where programs are before it looks."""
    app.setup_extension("sphinx_gallery.gen_gallery")
    app.connect("config-inited", _configure, priority=1)


def _configure(app: Sphinx, config: Config) -> None:
    config.sphinx_gallery_conf = config.sphinx_gallery_conf | settings(Path(app.srcdir))
