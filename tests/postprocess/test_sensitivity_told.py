"""Numbers of a sensitivity's table have the digits that their errors leave."""

import pytest

import vlasov as vl
from vlasov.postprocess.panels import notes_of
from vlasov.postprocess.sensitivity.show import _percent, sure_digits


@pytest.mark.quick
@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (280.19768, 300.0, "unknown"),
        (280.19768, float("inf"), "unknown"),
        (280.19768, 30.0, "280 ± 30"),
        (280.19768, 0.2, "280.2 ± 0.2"),
        (3.70112345, 3e-9, "3.7011234 ± 3e-09"),
        (3.70112345, 2e-3, "3.701 ± 0.002"),
        (1.0, 0.0, "1 ± 0"),
        (2.5e12, 1e9, "2.500e+12 ± 1e+09"),
        (0.00123456, 1e-4, "0.0012 ± 0.0001"),
    ],
)
def test_digits_by_the_error(value, error, text):
    assert sure_digits(value, error) == text


def test_shares_are_whole_per_cents():
    assert [_percent(x) for x in (100.0, 99.6, 12.3, 0.042)] == ["100", "100", "12", "0.04"]


@pytest.mark.parametrize(("first", "doubts"), [(0.0, True), (0.3, False)])
def test_a_score_of_zero_under_relu_is_a_kink(first, doubts):
    """The token at zero goes one way or the other at different rates: there is no derivative."""
    problem = vl.Problem(vl.ReLU(A=[[1.0]]), vl.Particles([[first], [1.0], [-2.0]]), 0.2)
    found = vl.sensitivity(problem, times=[0.2], rates=False, check=False)
    assert ("one-sided derivatives" in found.attrs["doubt"]) == doubts
    if doubts:
        ends = [
            vl.solve(
                vl.Problem(problem.attention, vl.Particles([[step], [1.0], [-2.0]]), 0.2), "particles", times=[0.2]
            )["position"].values[-1, 0, 0]
            / step
            for step in (1e-6, -1e-6)
        ]
        assert abs(ends[0] - ends[1]) > 0.05


def test_a_gaussian_blows_up_and_its_tokens_do_not():
    case = vl.load_case("gaussian-blow-up").problem
    found = vl.sensitivity(case, times=[0.1, 1.5], n=16, rates=False, check=False)
    assert found["time"].values.tolist() == [0.0, 0.1]
    assert "The solution blows up at t = 1, before which times end." in notes_of(found)
    tokens = vl.Problem(vl.ReLU(A=[[1.0]]), vl.Particles([[1.0]]), 0.6)  # x' = x^3
    found = vl.sensitivity(tokens, rates=False, check=False)
    assert "The tokens blow up at t = 0.5, " in " ".join(notes_of(found))
