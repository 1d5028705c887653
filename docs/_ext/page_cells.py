"""What the cells of the manual's pages share: warnings without the path of a notebook's kernel, in short lines."""

import textwrap
import warnings

WIDTH = 70  # characters, which a page of a telephone's width holds without scrolling much


def _in_short_lines(message: Warning | str, category: type[Warning], *_: object, **__: object) -> str:
    return textwrap.fill(f"{category.__name__}: {message}", WIDTH) + "\n"


warnings.formatwarning = _in_short_lines
