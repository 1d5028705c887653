"""A reconstruction of one's own: one compiled function and one row in the table, as CONTRIBUTING says."""

import numpy as np
import pytest

import vlasov as vl
from tests.solvers.finite_volume.test_order import LINE, LINE_MOMENTS, l1
from vlasov.jit import kernel
from vlasov.solvers.finite_volume.schemes import SCHEMES, SSPRK3, Scheme


@kernel()
def upwind3(a, b, c, d, e, f):
    """(-b + 5c + 2d)/6: exact for parabolas."""
    return (-b + 5 * c + 2 * d) / 6


def test_a_scheme_from_outside_shows_its_order(monkeypatch):
    monkeypatch.setitem(SCHEMES, "upwind3", Scheme(upwind3, order=3, tableau=SSPRK3, corrected=False))
    cells, errors = np.array([128, 256, 512]), []
    for count in cells:
        result = vl.solve(LINE, "finite-volume", cells=int(count), reconstruction="upwind3", frame="fixed", extent=8.0)
        errors.append(l1(result, LINE_MOMENTS))
    assert -np.polyfit(np.log(cells), np.log(errors), 1)[0] == pytest.approx(3, abs=0.15)
    assert errors[-1] < 1e-4
