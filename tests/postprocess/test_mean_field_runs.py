"""The mean-field study as a run: equal bits beside others and again, mistakes, and how it is shown."""

import gc
import json
import weakref

import numpy as np
import pytest

import vlasov as vl
from vlasov.cli.printing import laid_out
from vlasov.postprocess.drawing.panels import draw
from vlasov.postprocess.mean_field import mean_field_study, replica
from vlasov.postprocess.mean_field.show import notes, panels, tables

LINE = vl.Problem(vl.Softmax(A=[[0.6]]), vl.Box(-1, 1), 0.5)
PLANE = vl.Problem(vl.Softmax(A=[[0.6, 0.3], [0.0, 0.6]]), vl.Ring(0.3, 1.0, [0.2, 0.0]), 0.5)
ARGUMENTS = {"n": [16, 32, 600], "replicas": 2, "p": [1, 2], "sampling": ["random", "sobol"]}


def equal(first, second):
    """Variables and coordinates, to the last bit."""
    return first.drop_attrs().identical(second.drop_attrs())


@pytest.fixture(scope="module")
def straight():
    return mean_field_study(PLANE, **ARGUMENTS)


# The same bits; what holds for all studies is in test_studies.py


def test_an_extended_study_equals_a_straight_one(straight, tmp_path):
    """By the limit that was settled when the folder began."""
    folder = tmp_path / "study"
    mean_field_study(PLANE, **(ARGUMENTS | {"n": 32, "replicas": 1, "sampling": "random"}), output=folder)
    assert equal(mean_field_study(PLANE, **ARGUMENTS, output=folder), straight)
    assert equal(vl.open_run(folder / "study.nc"), straight)


def test_other_workers_solve_the_same_limit(straight):
    """From what was settled: in processes of their own."""
    assert equal(mean_field_study(PLANE, **ARGUMENTS, scheduler="processes"), straight)


@pytest.mark.parametrize("n", [32, 600])
def test_a_replica_does_not_depend_on_the_others(straight, n):
    alone = mean_field_study(PLANE, **(ARGUMENTS | {"n": [n], "replicas": 1, "sampling": "sobol"}))
    together = straight.sel(sampling=["sobol"], n=[n], replica=[0])
    for name in ("coupled", "wasserstein", "mean_error", "velocity_error", "a_posteriori_estimate"):
        assert np.array_equal(alone[name], together[name], equal_nan=True)


def test_a_limit_is_solved_once_and_not_kept(monkeypatch):
    from vlasov.postprocess.mean_field import limit as limits

    solved, solve = [], limits.solve

    def seen(problem, choice, *, tolerance, **how):
        limit = solve(problem, choice, tolerance=tolerance, **how)
        solved.append((choice, weakref.ref(limit)))
        return limit

    monkeypatch.setattr(limits, "solve", seen)
    monkeypatch.setattr(replica, "solve", seen)
    mean_field_study(PLANE, n=[8], replicas=2)
    gc.collect()
    assert len({choice for choice, _ in solved}) == len(solved) > 2
    assert all(limit() is None for _, limit in solved)


# Mistakes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": 0}, r"n: is 0 but must be at least 1"),
        ({"p": 0.5}, r"p: is 0.5 but must be at least 1"),
        ({"p": "two"}, r"p: 'two' is not a number"),
        ({"sampling": "sobl"}, r'sampling: "sobl" is not known; did you mean "sobol"\?'),
        ({"sampling": "quantile"}, r'sampling: "quantile" needs d = 1 but the problem has d = 2; use "sobol"'),
        ({"times": [0.3, 0.1]}, r"times: must increase"),
        ({"times": [0.3, 0.9]}, r"times: "),
        ({"reference": "exact"}, r'reference: "exact" is not known'),
        ({"reference": "gaussian"}, r'reference: "gaussian" needs a Gaussian initial measure but this is a ring'),
        ({"reference": "quantile"}, r'reference: "quantile" needs d = 1 but the problem has d = 2'),
        ({"seed": -1}, r"seed: is -1 but must be at least 0"),
        ({"tolerance": 1.0}, r"tolerance: is 1 but must be"),
        ({"local": 1}, r"local: is 1 where True or False is needed"),
        ({"tolerence": 1e-8}, r"tolerence: is not an option of mean_field_study; did you mean \"tolerance\"\?"),
        ({"n": [8, 4096], "exact_up_to": 4096}, r"exact_up_to: is 4096 but exact transport .* n = 3162"),
    ],
)
def test_mistakes_are_named(options, sentence):
    with pytest.raises(vl.InputError, match=f"^{sentence}"):
        mean_field_study(PLANE, **({"n": [8], "replicas": 1} | options))


def test_functions_of_time_stay_in_memory(tmp_path):
    moving = vl.Problem(vl.Softmax(A=lambda t: [[1.0 + t]]), vl.Box(-1, 1), 0.5)
    assert np.isfinite(mean_field_study(moving, n=[8], replicas=2)["coupled"]).all()
    with pytest.raises(vl.InputError, match="is a Python function"):
        mean_field_study(moving, n=[8], replicas=2, output=tmp_path / "study")


def test_nodes_know_no_more_of_a_density_than_its_cells():
    density = vl.Problem(LINE.attention, vl.Box(-1, 1).on_grid([np.linspace(-1, 1, 9)]), 0.5)
    with pytest.raises(vl.InputError, match=r'reference: is a density on a grid, .* use "finite-volume"'):
        mean_field_study(density, n=[8], reference="quadrature")


# How it is shown


def test_tables_panels_and_notes(straight):
    from rich.console import Console

    assert [table.title.rpartition(", ")[2] for table in tables(straight)] == ["random", "sobol"]
    cells = {row[0]: row[1:] for row in tables(straight)[0].rows}
    assert set(cells) == {"coupled, p = 1", "coupled, p = 2", "W_1", "W_2", "mean", "covariance", "velocity"}
    here = straight.sel(sampling="random", quantity="coupled", p=2).isel(time=-1)
    means = np.sqrt(np.square(here["coupled"]).mean("replica")).values
    assert cells["coupled, p = 2"][:2] == pytest.approx([means[0], means[-1]], rel=1e-12)
    assert cells["coupled, p = 2"][2:] == [
        f"{float(here['slope']):.3f}", f"{float(here['low']):.3f} .. {float(here['high']):.3f}", "-0.50"
    ]  # fmt: skip
    console = Console(width=10**4)
    assert all(console.measure(laid_out(table, 80)).maximum <= 80 for table in tables(straight))
    words = "\n".join(notes(straight))
    assert "its own error is about" in words
    assert "a-priori bound" in words
    assert "NOT" not in words
    for dataset in (straight, straight.sel(sampling=["random"]), straight.isel(replica=[0])):
        drawn = draw(dataset)
        assert len(drawn.axes) == len(panels(dataset)) == 4
        drawn.canvas.draw()


def test_bounds_of_growth_are_in_the_panel():
    gentle = vl.Problem(vl.Softmax(A=[[0.2]]), vl.Ball(0.5, [0.0]), 0.2)
    study = mean_field_study(gentle, n=[8, 16], replicas=2, local=True)
    bounds = {curve.label: float(curve.y[0]) for curve in panels(study)[-1].curves if curve.role == "bound"}
    assert list(bounds) == ["a-posteriori estimate", "a-priori bound", "optimal, of small differences"]
    assert study["growth"].max() <= bounds["a-posteriori estimate"] <= bounds["a-priori bound"]
    assert 0.99 < bounds["optimal, of small differences"] <= bounds["a-priori bound"]


def test_dataset_says_how_it_was_made(straight):
    assert json.loads(straight.attrs["step_counts"])[0] == straight.attrs["steps"] > 0
    assert straight.attrs["kind"] == "study"
    assert straight.attrs["points_per_token"] == 4
    assert straight.attrs["reference"] == "quadrature"
    assert json.loads(straight.attrs["options"])["reference"] == "auto"
    assert np.isfinite(straight["transport_bias"]).sum() == 4
    assert all("long_name" in variable.attrs for variable in straight.data_vars.values())


def test_tokens_that_are_the_limit_say_nothing_of_growth():
    """Half of the tokens at each of two points, which is the limit: what is measured later is rounding, not growth."""
    study = mean_field_study(vl.load_case("dirac-pair").problem, n=[8, 16], replicas=4)
    assert (study["wasserstein"].isel(time=0) == 0).any()
    assert np.isfinite(study["growth"].isel(time=-1)).any()
    assert not np.isinf(study["growth"]).any()
    older = study.assign(growth=study["growth"].where(study["tokens"][0, 0] > 8, np.inf))  # as it was written before
    for dataset in (study, older):
        drawn = draw(dataset)
        drawn.canvas.draw()
        assert np.isfinite([ax.get_ylim() for ax in drawn.axes]).all()


def test_a_study_without_distances_can_be_drawn():
    study = mean_field_study(PLANE, n=[8, 16], replicas=2, exact_up_to=0)
    assert np.isnan(study["wasserstein"]).all()
    draw(study).canvas.draw()  # a warning would fail it
