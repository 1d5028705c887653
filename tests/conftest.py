"""What must hold before the first test module is imported: threads, backend and reproducible random examples."""

import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "2")  # the same number on every machine; read when numba is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each worker has a core: more of its threads wait for each other
os.environ.setdefault("MPLBACKEND", "Agg")  # also for the subprocesses of the tests

import pytest
from hypothesis import settings

# Whatever the environment says: else each worker rewrites all assertions, each time, and each process compiles all.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as shells start what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the first example of many tests compiles.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=10)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# What takes longest begins first, so that no worker waits for another at the end; and what compiles solvers alternates
# with what compiles sums, so that two workers with an empty cache do not compile the same.
FIRST = [
    *("test_readme.py", "test_all_pairs.py", "test_compare.py", "test_laplace.py", "test_mean_field.py"),
    *("test_lattice.py", "test_parts.py", "test_choose.py", "test_against_particles.py"),
]


def pytest_configure(config: pytest.Config) -> None:
    """``-m quick``: few random examples."""
    if config.option.markexpr == "quick":
        settings.load_profile("quick")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file, or a group inside of it, is work for one worker, which then has compiled and solved what it shares."""
    from xdist.scheduler import LoadGroupScheduling

    class Files(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = super()._split_scope(nodeid)
            return nodeid.partition("::")[0] if group == nodeid else group

    config.option.loadscopereorder = False
    return Files(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``-m quick``: of the tests that are marked, the first set of parameters only. Groups share a worker.

    pytest-xdist 3.8 names the group in ``item._nodeid``, where pytest 9.2 does not look: groups would come to nothing.
    """
    if config.option.markexpr == "quick":
        first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
        others = [item for item in items if first[item.nodeid.partition("[")[0]] is not item]
        config.hook.pytest_deselected(items=others)
        items[:] = list(first.values())[::-1]
    items.sort(key=lambda item: [*FIRST, item.path.name].index(item.path.name))
    if getattr(config.option, "loadgroup", False):
        for item in items:
            group = item.get_closest_marker("xdist_group")
            if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
                item._id = f"{item.nodeid}@{group.args[0]}"  # type: ignore[attr-defined]


def pytest_collection_finish() -> None:
    """Let the collector of cycles pass over what was collected for the tests, and come less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture
def vlasov(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, str, str]]:
    """Call the command line in this process: exit code, standard output, standard error without progress."""
    from vlasov import cli
    from vlasov.solvers.progress import MARK

    def call(*arguments: str) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["vlasov", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsys.readouterr()
        err = "".join(line for line in err.splitlines(keepends=True) if not line.startswith(MARK))
        return caught.value.code or 0, out, err

    return call
