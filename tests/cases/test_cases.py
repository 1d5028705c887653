"""The built-in cases: each shows what its file says, with each of its solvers; and a wrong solution would not."""

import functools

import numpy as np
import pytest
from scipy.optimize import brentq

import vlasov as vl
from tests import references
from vlasov.cases import catalogue
from vlasov.cases.facts import QUANTITIES, Fact, check

CASES = {name: vl.load_case(name) for name in vl.case_names()}


def together(name, solver):
    """One worker runs all tests of a solution, so that it is solved once."""
    return pytest.mark.xdist_group(f"{name} {solver}")


ALL = [(name, solver) for name, case in CASES.items() for solver in case.solvers]
RUNS = [pytest.param(*run, marks=together(*run)) for run in ALL]
FACTS = [
    pytest.param(name, solver, i, id=f"{name}-{solver}-{fact.quantity}-{i}", marks=together(name, solver))
    for name, solver in ALL
    for i, fact in enumerate(CASES[name].facts)
    if fact.concerns(solver)
]


@functools.cache
def solution(name, solver):
    case = CASES[name]
    return vl.solve(case.problem, solver, times=case.times, case=name, **case.solvers[solver])


@pytest.mark.quick
@pytest.mark.parametrize("name", CASES)
def test_files_hold_everything_that_a_case_needs(name):
    tables = catalogue.read(name)
    assert {"title", "description", "paper", "attention", "initial", "horizon", "solvers", "facts"} <= set(tables)
    case = CASES[name]
    assert case.name == name
    for text in (case.title, case.description, case.paper):
        assert text == text.strip()
        assert len(text) > 8
    assert any(word in case.paper for word in ("arXiv:", "test case of this project"))
    assert case.facts
    assert all(fact.says for fact in case.facts)
    assert vl.Problem.from_json(case.problem.to_json()) == case.problem


def test_titles_are_unique():
    assert len({case.title for case in CASES.values()}) == len(CASES)


@pytest.mark.parametrize(("name", "solver"), RUNS)
def test_every_solver_of_a_case_has_facts_to_show(name, solver):
    assert any(fact.concerns(solver) for fact in CASES[name].facts)


@pytest.mark.parametrize(("name", "solver"), RUNS)
def test_runs_end_as_they_should(name, solver):
    result = solution(name, solver)
    assert result.attrs["status"] == ("blow-up" if name.endswith("blow-up") else "completed")
    assert result.attrs["case"] == name
    assert result.attrs["title"] == CASES[name].title
    if result.attrs["status"] == "completed":
        assert result["time"].values[-1] == CASES[name].problem.horizon


@pytest.mark.quick
@pytest.mark.parametrize(("name", "solver", "i"), FACTS)
def test_facts_hold(name, solver, i):
    fact = CASES[name].facts[i]
    verdict = check(fact, solution(name, solver))
    assert verdict.holds, f"{fact.says}: measured {verdict.measured}, off by {verdict.error}"


# A fact is worth something only if a wrong solution does not show it. How to make one, just beyond what is allowed.


def moved(dataset, beyond):
    """The last measure shifted."""
    shift = np.eye(dataset.sizes["component"])[0] * beyond
    result = dataset.copy(deep=True)
    for name in {"mean", "position"} & set(dataset):
        result[name] = dataset[name] + shift
    return result


def stretched(dataset, beyond):
    """All measures a little larger along the first axis."""
    return scaled(dataset, 1 + np.eye(dataset.sizes["component"])[0] * beyond)


def enlarged(dataset, beyond):
    """All measures a little larger, but for the first."""
    factor = np.where(np.arange(dataset.sizes["time"]) > 0, 1 + beyond, 1.0)
    result = dataset.copy(deep=True)
    result["covariance"] = dataset["covariance"] * factor[:, None, None] ** 2
    result["radius"] = dataset["radius"] * factor
    if "position" in dataset:
        result["position"] = dataset["position"] * factor[:, None, None]
    return result


def scaled(dataset, axes):
    result = dataset.copy(deep=True)
    result["covariance"] = dataset["covariance"] * np.outer(axes, axes)
    if "position" in dataset:
        result["position"] = dataset["position"] * axes
    return result


def round_(dataset, beyond):
    """All covariances the identity: full rank, and a tilt that does not vanish."""
    result = dataset.copy(deep=True)
    result["covariance"][:] = np.eye(dataset.sizes["component"])
    return result


def scattered(dataset, beyond):
    """Every token alone."""
    rng = np.random.default_rng(0)
    result = dataset.copy(deep=True)
    result["position"] = dataset["position"] + dataset["radius"].values[-1] * rng.uniform(
        -1, 1, dataset["position"].shape
    )
    return result


def backwards(dataset, beyond):
    """The states in the other order, so that energies fall."""
    return dataset.isel(time=slice(None, None, -1)).assign_coords(time=dataset["time"])


def slower(dataset, beyond):
    """The same states a little later, each in its turn: energies grow by less than they should."""
    return dataset.assign_coords(time=dataset["time"] * (1 + 10 * beyond))


def late(dataset, beyond):
    return dataset.assign_attrs(blow_up_time=dataset.attrs["blow_up_time"] + beyond)


def ended_otherwise(dataset, beyond):
    return dataset.assign_attrs(status={"blow-up": "completed", "completed": "blow-up"}[dataset.attrs["status"]])


WRONG = {
    "mean": moved,
    "position": moved,
    "covariance": enlarged,
    "eigenvalues": enlarged,
    "closed_form_error": enlarged,
    "radius_over_bound": enlarged,
    "rescaled_growth": lambda dataset, beyond: enlarged(dataset, 0.03),
    "anisotropy": stretched,
    "rank": round_,
    "tilt_energy": round_,
    "clusters": scattered,
    "vertices": scattered,
    "limits_inside": scattered,
    "argmax_gap": scattered,
    "mode_growth": scattered,
    "off_ellipsoid": enlarged,
    "radius": lambda dataset, beyond: enlarged(dataset, beyond or -0.5),
    "energy": backwards,
    "energy_gained": backwards,
    "identity_error": slower,
    "blow_up_time": late,
    "blew_up": ended_otherwise,
}


@pytest.mark.quick
@pytest.mark.parametrize(("name", "solver", "i"), FACTS)
def test_a_wrong_solution_does_not_show_the_fact(name, solver, i):
    fact = CASES[name].facts[i]
    beyond = 3 * (fact.tolerance if fact.equals is not None else fact.at_most if fact.at_most is not None else 0.0)
    verdict = check(fact, WRONG[fact.quantity](solution(name, solver), beyond))
    assert not verdict.holds
    assert verdict.error > 0


def test_the_radius_is_held_against_its_bound_after_the_beginning():
    """At t = 0 it is the bound itself, whatever becomes of it."""
    run = vl.solve(vl.load_case("sigmoid-ring").problem, "particles", n=64, times=[0.0, 0.5], warn_above=9.0)
    [fact] = [one for one in vl.load_case("sigmoid-ring").facts if one.quantity == "radius_over_bound"]
    attention, radius = vl.load_case("sigmoid-ring").problem.attention, run["radius"].values
    assert check(fact, run).measured == radius[1] / vl.estimates.support_radius(attention, radius[0], 0.5) < 0.99
    with pytest.raises(vl.InputError, match="needs a time after the first"):
        check(fact, run.isel(time=[0]))


@pytest.mark.parametrize(("name", "solver", "i"), [fact for fact in FACTS if "-blew_up-" not in fact.id])
def test_nothing_that_is_no_number_shows_a_fact(name, solver, i):
    wrong = solution(name, solver).copy(deep=True).assign_attrs(blow_up_time=np.nan)
    for variable in {"mean", "covariance", "position", "radius", "density"} & set(wrong):
        wrong[variable][1:] = np.nan
    fact = CASES[name].facts[i]
    try:
        verdict = check(fact, wrong)
    except vl.InputError as mistake:
        assert "nan" in str(mistake)  # noqa: PT017
    else:
        assert not verdict.holds


# The numbers that stand in the files, from independent references.


def test_the_numbers_of_dirac_pair():
    for fact in CASES["dirac-pair"].facts:
        x = references.two_tokens(0.5, 1.0, 1.0, fact.time or 2.0)
        assert references.error(fact.equals, [[-x], [x]]) < 1e-13


def test_the_numbers_of_l2_growth():
    (fact,) = CASES["l2-growth"].facts

    def variance(start):
        def late(s):
            return np.log(s / start) / 2 - 1 / (4 * s) + 1 / (4 * start) - 2.0

        return brentq(late, start, 1e3, xtol=1e-14, rtol=1e-14)

    assert references.error(fact.equals, [variance(0.25), variance(1.0)]) < 1e-13


def test_the_numbers_of_gaussian_blow_up():
    problem = CASES["gaussian-blow-up"].problem
    A = problem.attention.A
    exact = references.blow_up_time(A + A.T, problem.initial.covariance)
    (fact,) = [fact for fact in CASES["gaussian-blow-up"].facts if fact.quantity == "blow_up_time"]
    assert abs(fact.equals / exact - 1) < 1e-13


def test_the_limit_of_multi_head_plane_lies_on_the_plane_and_keeps_the_second_variance():
    (fact,) = [fact for fact in CASES["multi-head-plane"].facts if fact.quantity == "covariance"]
    limit, q = np.array(fact.equals), CASES["multi-head-plane"].problem.attention.heads[0].Q[0]
    assert np.abs(limit @ q)[0] < 1e-14, "q_1 Sigma_11 + q_2 Sigma_12 = 0"
    assert limit[1, 1] == 1.0
    # The head moves x_1 by -(Sigma q)_1 <q, x>: det Sigma falls like exp(-2 int q_1 <q, Sigma e_1>).
    d = 2

    def affine(t, mean, sigma):
        return np.zeros(d), np.outer([-(sigma @ q)[0], 0.0], q)

    _, covariances = references.moments(affine, np.zeros(d), np.eye(d), [200.0])
    assert np.abs(covariances[-1] - limit).max() < 1e-6


def test_the_energy_of_gradient_flow_sinkhorn():
    """With s' = 4 |a| s^2 / (1 + sqrt(1 + 4 s^2)), G(s) - |a| t is constant."""

    def g(s):
        return np.arcsinh(2 * s) / 2 - (1 + np.sqrt(1 + 4 * s * s)) / (4 * s)

    case, energy = CASES["gradient-flow-sinkhorn"], 0.0
    for a, variance in zip(np.diag(case.problem.attention.A), np.diag(case.problem.initial.covariance), strict=True):
        start = abs(a) * variance
        end = g(start) + abs(a) * case.problem.horizon
        s = brentq(lambda s, end=end: g(s) - end, start, 50.0, xtol=1e-15, rtol=1e-14)
        c = (np.sqrt(1 + 4 * s * s) - 1) / (2 * s)
        energy += (s * c + np.log1p(-c * c) / 2) / 2
    (fact,) = [fact for fact in case.facts if fact.quantity == "energy"]
    assert abs(fact.equals / energy - 1) < 1e-13


# Facts of a user's own.


IMPOSSIBLE = [
    (
        "gaussian-line",
        "gaussian",
        {"quantity": "position", "at_most": 1.0},
        'quantity: "position" cannot be measured',
    ),
    (
        "gaussian-line",
        "gaussian",
        {"quantity": "clusters", "at_most": 1.0},
        'quantity: "clusters" cannot be measured',
    ),
    (
        "box-2d",
        "particles",
        {"quantity": "rescaled_growth", "at_most": 1.0},
        'quantity: "rescaled_growth" cannot be',
    ),
    (
        "gaussian-line",
        "gaussian",
        {"quantity": "mean", "equals": [1.0, 2.0, 3.0], "tolerance": 1.0},
        "facts: equals",
    ),
    (
        "gaussian-line",
        "gaussian",
        {"quantity": "rank", "at_most": 1.0, "time": 0.3},
        "time: 0.3 is not an output time",
    ),
    ("linear-ring", "particles", {"quantity": "radius_over_bound", "at_most": 1.0}, "attention: "),
    ("gaussian-line", "gaussian", {"quantity": "energy", "at_most": 1.0}, "problem.attention.V: is not A; "),
]


@pytest.mark.parametrize(
    ("name", "solver", "fact", "sentence"),
    [
        pytest.param(name, solver, fact, sentence, marks=together(name, solver))
        for name, solver, fact, sentence in IMPOSSIBLE
    ],
)
def test_a_fact_that_cannot_be_held_against_a_run_is_one_sentence(name, solver, fact, sentence):
    with pytest.raises(vl.InputError) as caught:
        check(Fact(says="something", **fact), solution(name, solver))
    assert str(caught.value).startswith(sentence)


@together("gaussian-line", "gaussian")
def test_a_fact_at_an_earlier_time():
    fact = Fact(
        says="",
        quantity="covariance",
        equals=CASES["gaussian-line"].problem.initial.covariance,
        tolerance=1e-14,
        time=0,
    )
    assert check(fact, solution("gaussian-line", "gaussian")).holds
    fact = Fact(
        says="", quantity="covariance", equals=CASES["gaussian-line"].problem.initial.covariance, tolerance=1e-14
    )
    assert not check(fact, solution("gaussian-line", "gaussian")).holds


@together("polytope", "particles")
def test_every_quantity_can_be_measured():
    assert set(WRONG) <= set(QUANTITIES)
    on_tokens = ("position", "clusters", "rescaled_growth", "radius_over_bound")
    on_tokens += ("vertices", "limits_inside", "argmax_gap")
    runs = dict.fromkeys(on_tokens, ("polytope", "particles"))
    runs |= dict.fromkeys(("off_ellipsoid", "mode_growth"), ("linear-layer-norm", "particles"))
    runs |= dict.fromkeys(("energy", "energy_gained", "identity_error"), ("gradient-flow-sinkhorn", "gaussian"))
    for quantity in QUANTITIES:
        run = solution(*runs.get(quantity, ("gaussian-line", "gaussian")))
        verdict = check(Fact(says="", quantity=quantity, at_least=-1e9), run)
        assert verdict.holds or quantity == "blow_up_time", "NaN where there is none"


@together("gaussian-line", "gaussian")
@pytest.mark.parametrize("at_least", [0.5, 1.0])
def test_at_least(at_least):
    fact = Fact(says="", quantity="rank", at_least=at_least)
    assert check(fact, solution("gaussian-line", "gaussian")).holds
    assert not check(Fact(says="", quantity="rank", at_least=1.5), solution("gaussian-line", "gaussian")).holds
