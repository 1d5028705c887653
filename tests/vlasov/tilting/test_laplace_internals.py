"""How laplace goes about it: memory that is used again, kernels that are found again, sources that are spread once."""

import subprocess
import sys
import tracemalloc

import numpy as np

import vlasov as vl
from tests.vlasov.tilting.test_laplace import evaluate, head
from tests.vlasov.tilting.test_many import heads
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import Request, laplace


def test_sources_are_spread_once_for_all_heads(monkeypatch):
    spreads, original = [], laplace.Prepared._spread
    monkeypatch.setattr(laplace.Prepared, "_spread", lambda self, *data: spreads.append(1) or original(self, *data))
    cloud = vl.Particles(np.random.default_rng(2).normal(size=(50_000, 2)))
    attention = vl.MultiHead([vl.Softmax(A=a, V=v) for a, v, _ in heads(2)])
    field = attention.field(cloud, cloud.points)
    assert (field.method, len(spreads)) == ("laplace", 1)


def test_repeated_evaluations_allocate_the_result_only():
    rng = np.random.default_rng(0)
    points, x, matrix, workspace = rng.normal(size=(200_000, 2)), rng.normal(size=(200_000, 2)), np.eye(2), Workspace()
    plan, _ = evaluate(points, None, x, matrix, workspace=workspace)
    tracemalloc.start()
    mean = laplace.Prepared(points, None, plan, Request(), workspace).read(x, head(x, matrix), Request()).mean
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= mean.nbytes + 100_000
    held = sum(buffer.nbytes for buffer in workspace._buffers.values())
    assert held <= 1.2 * plan.memory
    assert plan.memory < 20e6


CALLS = """
import gc
import numpy as np
from numba.core import event
from numba.core.dispatcher import Dispatcher
from vlasov.tilting import laplace
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import Head, Request
from vlasov.tilting.boxes import boxes
from vlasov.tilting.promise import Task

points, workspace = np.random.default_rng(0).normal(size=(1000, 2)), Workspace()
frozen, head = points.copy(), Head(np.eye(2), np.eye(2))
frozen.setflags(write=False)

def call(sources):
    box, _ = boxes(sources, sources, [np.eye(2)], 1)
    plan = laplace.plan(Task(1000, 1000, box, box, 0.0, Request(1e-9), 2))
    laplace.Prepared(sources, None, plan, Request(), workspace).read(sources, head, Request())
"""
COUNTED = """
class Count(event.Listener):
    compiled = 0
    def on_start(self, event):
        Count.compiled += 1
    def on_end(self, event):
        pass

event.register("numba:compile", Count())
for sources in (points, frozen, np.asfortranarray(points)):
    call(sources)
    print(Count.compiled, sum(len(k.signatures) for k in gc.get_objects() if issubclass(type(k), Dispatcher)))
"""


def test_a_second_process_compiles_nothing_and_read_only_arrays_neither():
    """Nor do they want kernels of their own, which the cache may hold: the number of those that are in use stays."""
    exec(CALLS + "call(points)\n", {})  # this process fills the folder that the tests share, where no other test has
    done = subprocess.run([sys.executable, "-c", CALLS + COUNTED], capture_output=True, text=True, check=True)
    compiled, used = zip(*(map(int, line.split()) for line in done.stdout.splitlines()), strict=True)
    assert len(set(used)) == 1
    assert used[0] > 3
    assert compiled == (0, 0, 0)
