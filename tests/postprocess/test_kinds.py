"""Every Dataset says what it is; a kind is declared once, and is drawn, reported, printed and refused by that."""

import io
import json

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import vlasov as vl
from tests.postprocess.test_report import data_of
from vlasov.cli import printing
from vlasov.kinds import Kind
from vlasov.postprocess import figures, registry
from vlasov.postprocess.compare.picture import draw as draw_comparison
from vlasov.postprocess.drawing.panels import draw
from vlasov.postprocess.movie import movie
from vlasov.postprocess.panels import Curve, Panel, Table, tables_of
from vlasov.solvers.dataset import provenance

PROBLEM = vl.Problem(vl.Softmax(A=[[0.6]]), vl.Gaussian(0.1, 0.2), 0.5)


# A kind of Dataset, in the way that CONTRIBUTING describes


def squares_of(problem):
    """The squares of three times, with a bound."""
    times = np.array([1.0, 2.0, 3.0])
    return xr.Dataset({"square": ("time", times**2)}, {"time": times}, provenance(problem, SQUARES))


def panels(dataset):
    t, square = dataset["time"].values, dataset["square"].values
    bound = Curve("bound t^3", t, t**3, role="bound", dash="--")
    return [
        Panel("Squares <of times>", "t", [Curve("t^2", t, square), bound]),
        Panel("Roots", "t", [Curve("√", t, np.sqrt(square), square - 1, square + 1)], logy=False),
    ]


def tables(dataset):
    return [Table("Squares <&>", ["t", "t²"], list(zip(dataset["time"].values, dataset["square"].values, strict=True)))]


SQUARES = Kind(
    "squares",
    "what squares_of returned",
    title="Squares of times",
    variables={"square": "square of the time"},
    panels=panels,
    tables=tables,
    notes=lambda dataset: [f"There are {dataset.sizes['time']} times."],
)


@pytest.fixture
def squares(monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    registry.register(SQUARES)
    return squares_of(PROBLEM)


@pytest.mark.quick
def test_a_kind_is_declared_once_and_shown_everywhere(squares, capsys):
    first, second = draw(squares).axes
    assert [len(ax.lines) for ax in (first, second)] == [2, 1]
    np.testing.assert_array_equal(first.lines[0].get_ydata(), [1.0, 4.0, 9.0])
    assert first.get_title() == "Squares <of times>"
    page = vl.report(squares).html
    assert "<h2>Squares of times</h2>" in page
    assert "<h3>Squares &lt;&amp;&gt;</h3>" in page
    assert "There are 3 times." in page
    one, two = data_of(page)["charts"]
    assert [series["y"] for series in one["series"]] == [[1.0, 4.0, 9.0], [1.0, 8.0, 27.0]]
    assert [series.get("fits", False) for series in one["series"]] == [False, True]
    assert [two["series"][0][name] for name in ("low", "high")] == [[0.0, 3.0, 8.0], [2.0, 5.0, 10.0]]
    out = io.StringIO()
    Console(width=80, file=out).print(printing.laid_out(tables_of(squares)[0], 80))
    assert "3   9" in out.getvalue()
    printing.print_json(printing.numbers_of(squares))
    assert json.loads(capsys.readouterr().out) == {"square": [1.0, 4.0, 9.0], "time": [1.0, 2.0, 3.0]}


def test_a_file_of_any_kind_is_plotted(squares, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from vlasov.cli.app import app

    monkeypatch.chdir(tmp_path)
    squares.to_netcdf("squares.nc")
    result = CliRunner().invoke(app, ["plot", "squares.nc"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "squares.png").stat().st_size > 10_000


def test_a_bound_beyond_all_numbers_is_said_in_words():
    x = np.array([0.0, 1.0])
    bound = Curve("bound", x, np.array([1.0, 1e200]), role="bound", end="10^6818")
    figure = draw_panels_of(Panel("", "t", [Curve("data", x, x + 1), bound]))
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()][1] == "bound: $10^{6818}$"


def draw_panels_of(panel):
    from vlasov.postprocess.drawing.panels import picture

    return picture([panel], "")


# Datasets of other kinds are refused


@pytest.fixture(scope="module")
def made():
    run = vl.solve(PROBLEM, "gaussian", times=[0.0, 0.5])
    tokens = vl.solve(PROBLEM, "particles", n=4, times=[0.0, 0.5], tolerance=1e-3, warn_above=np.inf)
    layers = vl.depth_study(PROBLEM, depths=[2, 4], n=4, replicas=2)
    return {"run": run, "depth study": layers, "comparison": vl.compare(run, run), "clusters": vl.clusters(tokens)}


@pytest.mark.quick
def test_each_says_its_kind(made):
    assert {name: dataset.attrs["kind"] for name, dataset in made.items()} == {name: name for name in made}
    assert {dataset.attrs["Conventions"] for dataset in made.values()} == {"CF-1.11 vlasov-1"}
    assert vl.on_grid(made["run"], 8).attrs["kind"] == "grid"


def test_each_variable_is_declared(made):
    tokens = vl.solve(PROBLEM, "particles", n=8, times=[0.0, 0.5], tolerance=1e-3, warn_above=np.inf)
    more = [vl.compare(tokens, tokens, local=True), vl.sensitivity(tokens), tokens]
    for dataset in [*more, *made.values()]:
        assert {*map(str, dataset.data_vars)} <= {*registry.kind_of(dataset).variables}


USES = {
    "measure": ("run", lambda run, made: vl.measure(run)),
    "plot": ("run", lambda run, made: figures.plot(run)),
    "plot with a run": ("run", lambda run, made: figures.plot([made["run"], run])),
    "ellipses": ("run", lambda run, made: figures.eigenvalues(run)),
    "movie": ("run", lambda run, made: movie(run, path="film.gif")),
    "compare": ("run", lambda run, made: vl.compare(run, made["run"])),
    "compare to": ("run", lambda run, made: vl.compare(made["run"], run)),
    "picture of a comparison": ("comparison", lambda dataset, made: draw_comparison(dataset, [made["run"]] * 2)),
    "clusters": ("run", lambda run, made: vl.clusters(run)),
}


KINDS = ["run", "depth study", "comparison", "clusters"]


@pytest.mark.parametrize(("use", "given"), [(use, kind) for use in USES for kind in KINDS if kind != USES[use][0]])
def test_another_kind_is_named(use, given, made):
    wanted, call = USES[use]
    sentence = f'is a Dataset of kind "{given}" where kind "{wanted}" is needed; give what'
    with pytest.raises(vl.InputError, match=f"^[a-z0-9\\[\\]]+: {sentence}"):
        call(made[given], made)


def test_files_older_than_kinds_are_runs_if_they_look_like_runs(made):
    for name, dataset in made.items():
        del (older := dataset.copy()).attrs["kind"]
        if name == "run":
            assert vl.measure(older) == vl.measure(dataset)
        else:
            with pytest.raises(vl.InputError, match='dataset: is no Dataset that vlasov made where kind "run" is'):
                vl.measure(older)


def test_a_whole_number_is_an_index_and_any_other_a_time():
    run = vl.solve(PROBLEM, "gaussian", times=[0.0, 0.25, 0.5])
    assert vl.measure(run, 1) == vl.measure(run, 0.25)
    assert vl.measure(run, 0) == vl.measure(run, 0.0)
    with pytest.raises(vl.InputError, match=r"^time: 1 is not an output time; the nearest are 0\.25 and 0\.5"):
        vl.measure(run, 1.0)
