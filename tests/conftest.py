"""What must hold before the first test module is imported: threads, backend and reproducible random examples."""

import os

os.environ.setdefault("NUMBA_NUM_THREADS", "2")  # the same number on every machine; read when numba is imported
os.environ.setdefault("MPLBACKEND", "Agg")  # also for the subprocesses of the tests

import pytest
from hypothesis import settings

# No deadline: the first example of many tests compiles.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=10)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure(config: pytest.Config) -> None:
    """``-m quick``: few random examples."""
    if config.option.markexpr == "quick":
        settings.load_profile("quick")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``-m quick``: of the tests that are marked, the first set of parameters only. And groups share a worker.

    pytest-xdist 3.8 names the group in ``item._nodeid``, where pytest 9.2 does not look: groups would come to nothing.
    """
    if config.option.markexpr == "quick":
        first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
        others = [item for item in items if first[item.nodeid.partition("[")[0]] is not item]
        config.hook.pytest_deselected(items=others)
        items[:] = list(first.values())[::-1]
    if getattr(config.option, "loadgroup", False):
        for item in items:
            group = item.get_closest_marker("xdist_group")
            if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
                item._id = f"{item.nodeid}@{group.args[0]}"  # type: ignore[attr-defined]
