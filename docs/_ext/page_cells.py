"""What the cells of the manual's pages share, imported before them: one thread of BLAS, and short warnings."""

import os
import textwrap
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: pages are built side by side, and matrices are small
os.environ.pop("FORCE_COLOR", None)  # of Jupyter: commands would draw a terminal's progress bar into the page
WIDTH = 70  # characters, which a page of a telephone's width holds without scrolling much


def _in_short_lines(message: Warning | str, category: type[Warning], *_: object, **__: object) -> str:
    return textwrap.fill(f"{category.__name__}: {message}", WIDTH) + "\n"


warnings.formatwarning = _in_short_lines
