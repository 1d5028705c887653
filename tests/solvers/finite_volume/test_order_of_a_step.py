"""The lines of a step stand in an order: where it matters, the numbers of two runs tell when two are swapped."""

import ast
import inspect
import textwrap

import numpy as np
import pytest

import vlasov as vl
from tests.solvers.finite_volume.common import run
from vlasov.solvers.finite_volume import part, solver


def box(*strengths):
    """Compact, so that there are markers and a hull; full, so that the domain doubles; and a parameter jumps."""
    tilts = vl.Piecewise([[[strength]] for strength in strengths], [0.0, 0.8, 2.0])
    return vl.Problem(vl.Softmax(A=tilts, V=[[0.9]]), vl.Box([-1.0], [1.2]), 1.6)


RUNS = [
    (box(0.4, 2.5), {"cells": 96, "extent": 1.74, "times": np.linspace(0.0, 1.6, 9)}),
    (box(1.5, 2.5), {"cells": 96, "extent": 1.74}),
]
KNOWN = [  # mean, covariance, radius and size of the frame at the end
    [0.7758493569806353, 2.397246259654711, 2.8330797730415194, 2.972255880485568],
    [0.9521601208902507, 6.609630699159234, 3.9856551396817377, 5.361003705443076],
]
METHODS = {
    **dict.fromkeys(("step", "_settle", "_paces", "_look_ahead", "_stages", "_finish"), solver),
    **dict.fromkeys(("begin", "flux", "finish"), part),
}
HARMLESS = {
    ("step", "looks"),  # and the residual, which does not look at them
    ("step", "found"),  # and an empty list
    ("step", "self._finish"),  # and the growth, which is read between steps
    ("step", "self._astray"),  # and the paces: neither reads the other
    ("step", "asked"),  # and whether the run creeps, which these do not
    ("step", "self._refuse_to_creep"),  # and the step, of a run that does not
    ("step", "self._longest"),  # and the growth, which both are read later
    ("step", "self.growth"),  # and the pace at the edge, which both are read later
    ("_settle", "pull"),  # where no closure goes astray
    ("_finish", "self.t"),  # and the count of paths that turn too fast
    ("_stages", "rate"),  # where no step is taken back
    ("flux", "self.history.to_faces"),  # the rate of flow only says whether to take a step back
    ("flux", "fastest"),  # both read the velocities on faces
    *(("finish", name) for name in ("if", "self.velocity.move_markers", "self.f", "self.outflow", "self.limited")),
}


def numbers():
    results = [run(problem, **options) for problem, options in RUNS]
    names = ("mean", "covariance", "radius", "frame_matrix")
    return np.array([[found[name].values.ravel()[-1] for name in names] for found in results])


def _owner(method):
    return solver._Solver if METHODS[method] is solver else part.Part


def source(method):
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(getattr(_owner(method), method)))).body
    return function


@pytest.fixture(scope="module")
def unchanged():
    return numbers()


def test_the_numbers_of_two_runs(unchanged):
    np.testing.assert_allclose(unchanged, KNOWN, rtol=1e-8, atol=0.0)


@pytest.mark.parametrize(
    ("method", "first"), [(method, first) for method in METHODS for first in range(1, len(source(method).body) - 1)]
)
def test_two_lines_that_are_swapped_do_no_harm_or_show(method, first, unchanged, monkeypatch):
    function = source(method)
    lines = function.body
    name = ast.unparse(lines[first]).split(" ")[0].split("(")[0].rstrip(",")
    lines[first], lines[first + 1] = lines[first + 1], lines[first]
    swapped: dict[str, object] = {}
    exec(compile(ast.Module([function], []), "swapped", "exec"), vars(METHODS[method]), swapped)
    monkeypatch.setattr(_owner(method), method, swapped[method])
    try:
        found = numbers()
    except (UnboundLocalError, TypeError, IndexError, ValueError):
        return
    if (method, name) in HARMLESS:
        np.testing.assert_array_equal(found, unchanged)
    else:
        assert not np.allclose(found, KNOWN, rtol=1e-6, atol=0.0)
