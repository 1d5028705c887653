"""Pages made on two processes, and not again where neither what they show nor the code has changed."""

from __future__ import annotations

import hashlib
import importlib
import multiprocessing
import shutil
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path

import vlasov

PROCESSES = 2
_SMALL = 420  # pixels: the width of a card's picture


@cache
def code_version() -> str:
    """A digest of our sources, and of these."""
    package, digest = Path(vlasov.__file__).parent, hashlib.sha256(vlasov.__version__.encode())
    rooms = (package, package / "solvers", package / "cases", package / "postprocess", Path(__file__).parent)
    for room in rooms:
        for path in sorted([*room.rglob("*.py"), *room.rglob("*.toml")]):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def make_all(module: str, names: list[str], folder: Path) -> list[tuple[str, float]]:
    """A page for each name, by ``module.make``, and its index; returns the seconds that each new one took.

    What fails raises, after all others are made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stamp = code_version()
    wanted = [name for name in names if not _is_made(folder, name, stamp)]
    for path in folder.iterdir():
        if path.name.split(".")[0].removesuffix("-small") not in (*names, "index"):
            path.unlink()
    took, failed = [], []
    if wanted:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(PROCESSES, len(wanted)), context, initializer=_alone) as pool:
            waiting = {pool.submit(_make, module, name, folder): name for name in wanted}
            for one in as_completed(waiting):
                name, error = waiting[one], one.exception()
                if error is not None:
                    failed.append(f"{name}: {type(error).__name__}: {error}")
                    continue
                (folder / f"{name}.stamp").write_text(stamp)
                took.append((name, one.result()))
    if failed:
        raise RuntimeError("no page for " + "; ".join(sorted(failed)))
    text = importlib.import_module(module).index(folder)
    index = folder / "index.md"
    if not index.exists() or index.read_text(encoding="utf-8") != text:
        index.write_text(text, encoding="utf-8")
    return took


def _is_made(folder: Path, name: str, stamp: str) -> bool:
    files = [folder / f"{name}{end}" for end in (".md", ".png", "-small.png", ".stamp")]
    return all(path.exists() for path in files) and files[-1].read_text() == stamp


def _alone() -> None:
    """Two processes on two cores: a thread each; nobody waits for what they do."""
    from vlasov.errors import SlowRunWarning
    from vlasov.jit import set_threads

    set_threads(1)
    warnings.simplefilter("ignore", SlowRunWarning)


def _make(module: str, name: str, folder: Path) -> float:
    """In a process: the page, its picture, and a small one for its card; returns CPU seconds."""
    began = time.process_time()
    importlib.import_module(module).make(name, folder)
    _shrink(folder / f"{name}.png", folder / f"{name}-small.png")
    return time.process_time() - began


def _shrink(picture: Path, small: Path) -> None:
    from PIL import Image

    with Image.open(picture) as whole:
        if whole.width <= _SMALL:
            shutil.copy(picture, small)
            return
        size = (_SMALL, round(whole.height * _SMALL / whole.width))
        whole.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(small, optimize=True)
