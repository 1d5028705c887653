"""Inputs of every kind, and what may come of one: an error of our own, or a result that is finite or says why.

``INPUTS[kind]`` is a strategy of plain data and a function that throws it at the program. The function returns what
came of it in a word, and lets every exception pass that is not our own.
"""

import contextlib
import io
import os
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import vlasov as vl
from tests.fuzz import values
from vlasov import cli
from vlasov.cases import load
from vlasov.postprocess import figures
from vlasov.solvers.driver import prepare

EYE = [[1.0, 0.0], [0.0, 1.0]]
SHAPES = {"EYE": EYE, "TURN": [[0, -1], [1, 0]], "LINE": [[1, 2], [2, 4]], "SADDLE": [[1, 0], [0, -1]]}
OPTIONS = {
    "gaussian": {},
    "particles": {"n": 9, "tolerance": 1e-4},
    "finite-volume": {"cells": 8},
    "layers": {"n": 9, "depth": 6},
}


@cache
def given():
    """Small valid things, of which one argument is exchanged."""
    gaussian = vl.Gaussian([0.1, 0.2], [[0.3, 0.1], [0.1, 0.2]])
    cloud = gaussian.sample(9, "quadrature")
    density = vl.Density(np.ones((2, 3)), [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0]])
    problem = vl.Problem(vl.Softmax(A=[[-0.3, 0.2], [0.1, -0.7]]), gaussian, 0.2)
    runs = {
        "gaussian": vl.solve(problem, "gaussian", times=[0.0, 0.1, 0.2]),
        "particles": vl.solve(problem, "particles", n=9, times=[0.0, 0.1, 0.2], tolerance=1e-4),
    }
    climbing = vl.Problem(vl.Softmax(A=[[0.4, 0.1], [0.1, -0.3]], V=[[0.4, 0.1], [0.1, -0.3]]), gaussian, 0.2)
    runs["climbing"] = vl.solve(climbing, "particles", n=9, times=[0.0, 0.1, 0.2], tolerance=1e-4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.nc"
        vl.solve(problem, "particles", n=4, times=[0.0, 0.1], tolerance=1e-3, output=path)
        content = path.read_bytes()
    return SimpleNamespace(gaussian=gaussian, cloud=cloud, density=density, problem=problem, runs=runs, content=content)


def sound(run):
    """A run is finite, or says that it did not end well."""
    finite = all(np.isfinite(run[name]).all() for name in ("mean", "covariance"))
    assert finite or run.attrs["status"] != "completed" or run.attrs["advice"], "completed, and not finite"
    return run.attrs["status"]


def climbed(energies):
    """Energies are numbers, or infinite."""
    assert not np.isnan(energies["energy"]).any()
    return "energies"


def used(measure):
    """What a measure says of itself, and what particles make of it."""
    assert np.isfinite(measure.mean).all()
    measure.sample(8)
    d = measure.dimension
    if d > 3:
        return "a measure"
    problem = vl.Problem(vl.Softmax(A=np.eye(d), V=-np.eye(d)), measure, 0.1)
    return sound(vl.solve(problem, "particles", n=8, times=[0.0, 0.1], tolerance=1e-3))


def masked(measure):
    """What a causal mask makes of tokens with places."""
    attention = vl.Masked(vl.Softmax(A=np.eye(measure.dimension)))
    return sound(vl.solve(vl.Problem(attention, measure, 0.1), "particles", n=8, times=[0.1], tolerance=1e-3))


def moved(attention):
    """What an attention does to few tokens."""
    rows, d = attention.shape
    if rows != d or d > 8:
        return "an attention"
    initial = vl.Gaussian(np.zeros(d), np.eye(d))
    return sound(vl.solve(vl.Problem(attention, initial, 0.1), "particles", n=8, times=[0.0, 0.1], tolerance=1e-3))


def linearised(attention, points, h):
    """Products with the derivative are numbers."""
    products = attention.linearised(vl.Particles(points))
    assert np.isfinite(products.tangent(h)).all()
    assert np.isfinite(products.adjoint(h)).all()
    return "products"


def layered(attention):
    """What few layers of an attention do to few tokens."""
    rows, d = attention.shape
    if rows != d or d > 8:
        return "an attention"
    initial = vl.Gaussian(np.zeros(d), np.eye(d))
    return sound(vl.solve(vl.Problem(attention, initial, 0.1), "layers", n=8, depth=2))


def studied(study):
    """A study's errors are finite, and its slopes numbers or nothing."""
    assert np.isfinite(study["coupled"]).all()
    return "a study"


def swept(sweep):
    """Runs are finite, or say that they did not end well."""
    ended = sweep["status"] == "completed"
    assert np.isfinite(sweep["error_estimate"].where(ended, 0.0)).all() or (sweep["reason"] != "").any()
    return "a sweep"


def rough(study):
    """Lipschitz constants are finite, however rough attention is."""
    assert np.isfinite(study["lipschitz"].isel(replica=0)).all()
    return "a study"


def _late(value):
    """A function of time that is well until it is not."""
    return lambda t: EYE if t < 0.05 else value


def _solve(solver, **options):
    return lambda *given_values: sound(
        vl.solve(given().problem, solver, **dict(zip(options, given_values, strict=True)))
    ), tuple(options.values())


def calls():
    """Name: a function, and arguments with which it works."""
    g = given()
    return {
        "Gaussian": (lambda *a: used(vl.Gaussian(*a)), ([0.1, 0.2], EYE)),
        "Box": (lambda *a: used(vl.Box(*a)), ([0.0, 0.0], [1.0, 1.0])),
        "Ball": (lambda *a: used(vl.Ball(*a)), (1.0, [0.0, 0.0])),
        "Ring": (lambda *a: used(vl.Ring(*a)), (0.5, 1.0, [0.0, 0.0])),
        "Particles": (lambda *a: used(vl.Particles(*a)), ([[0.0, 0.0], [1.0, 1.0]], [1, 2])),
        "Density": (lambda *a: used(vl.Density(*a)), ([[1.0, 2.0]], [[0.0, 1.0], [0.0, 1.0, 2.0]])),
        "Mixture": (lambda *a: used(vl.Mixture(*a)), ([g.gaussian, g.cloud], [0.5, 0.5])),
        "Sequence": (lambda *a: masked(vl.Sequence(*a)), ([g.gaussian, g.gaussian], [0.0, 0.5, 1.0])),
        "places": (lambda *a: masked(vl.Particles(*a)), ([[0.0, 0.0], [1.0, 1.0]], [1, 2], [0.0, 0.7])),
        "Softmax": (lambda a, v: moved(vl.Softmax(A=a, V=v)), (EYE, EYE)),
        "L2": (lambda *a: moved(vl.L2(*a)), (EYE, EYE, EYE)),
        "Linear": (lambda *a: moved(vl.Linear(*a)), (EYE, EYE, EYE)),
        "Sinkhorn": (
            lambda a, v, e, m, j: moved(vl.Sinkhorn(A=a, V=v, tolerance=e, max_iterations=m, iterations=j)),
            (EYE, EYE, 1e-8, 100, 3),
        ),
        "Sigmoid": (lambda a, v, b: moved(vl.Sigmoid(A=a, V=v, bias=b)), (EYE, EYE, 0.5)),
        "Exponential": (lambda *a: moved(vl.Exponential(*a)), (EYE, EYE, EYE)),
        "ReLU": (lambda a, v: moved(vl.ReLU(A=a, V=v)), (EYE, EYE)),
        "Hardmax": (lambda a, v: layered(vl.Hardmax(A=a, V=v)), (EYE, EYE)),
        "linearised": (
            lambda a, x, h: linearised(vl.Softmax(A=a), x, h),
            (EYE, [[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]]),
        ),
        "linearised Sinkhorn": (
            lambda a, x, h, j: linearised(vl.Sinkhorn(A=a, iterations=j), x, h),
            (EYE, [[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]], 3),
        ),
        "linearised ReLU": (
            lambda a, v, x, h: linearised(vl.ReLU(A=a, V=v), x, h),
            (EYE, EYE, [[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]]),
        ),
        "Masked": (lambda a: moved(vl.Masked(a)), (vl.L2(EYE, EYE),)),
        "MultiHead": (lambda *a: moved(vl.MultiHead(*a)), ([vl.Softmax(A=EYE), vl.Linear(A=EYE)], [EYE, EYE])),
        "Piecewise": (lambda *a: moved(vl.Softmax(A=vl.Piecewise(*a))), ([EYE, EYE], [0.0, 0.05, 1.0])),
        "callable": (lambda a, v: moved(vl.Softmax(A=_late(a), V=_late(v))), (EYE, EYE)),
        "Problem": (
            lambda *a: sound(vl.solve(vl.Problem(*a), "particles", n=8, times=[0.0], tolerance=1e-3)),
            (vl.Softmax(A=EYE), g.gaussian, 1.0, "a name"),
        ),
        "solve": (
            lambda *a: sound(vl.solve(*a[:2], times=a[2], case=a[3])),
            (g.problem, "gaussian", [0.0, 0.1], ""),
        ),
        "gaussian": _solve("gaussian", times=[0.0, 0.1], tolerance=1e-8),
        "particles": _solve("particles", n=9, sampling="random", seed=0, tolerance=1e-4, rescaled=False, method="auto"),
        "finite-volume": _solve(
            "finite-volume", times=[0.0, 0.05], cells=8, reconstruction="upwind5", frame="moving", extent=6.0
        ),
        "layers": _solve("layers", depth=4, n=9, sampling="random", seed=0, method="auto"),
        "layers of a step": _solve("layers", step=0.1, times=[0.1, 0.2], n=9),
        "depth_study": (
            lambda d, n, r, p, s: studied(vl.depth_study(g.problem, depths=d, n=n, replicas=r, p=p, seed=s)),
            ([2, 4], 6, 2, [1, 2], 0),
        ),
        "refinement": (
            lambda c, n, s, r: vl.refinement(g.problem, cells=c, n=n, sampling=s, replicas=r)["slope"].values,
            ([8, 16], [4, 8], ["random", "quadrature"], 2),
        ),
        "lipschitz_study": (
            lambda n, data, r, radius, t: rough(
                vl.lipschitz_study(g.problem, n=n, data=data, replicas=r, radius=radius, times=t)
            ),
            ([2, 4], ["random", "adversarial"], 2, 1.0, [0.1]),
        ),
        "gaussianity": (lambda *a: vl.gaussianity(a[0], times=a[1])["relative"].values, (g.runs["gaussian"], 2)),
        "tokens_bound": (lambda *a: vl.estimates.tokens_bound(*a), (g.problem.attention, 1.0, 4)),
        "adversarial_tokens": (lambda *a: vl.estimates.adversarial_tokens(*a), (g.problem.attention, 1.0, 4)),
        "attention_received": (lambda *a: vl.estimates.attention_received(*a), (g.problem.attention, EYE)),
        "sweep": (
            lambda p, s, t: swept(vl.sweep(g.problem, p, solver="gaussian", save=s, times=t)),
            ({"horizon": [0.1, 0.2]}, ["mean", "steps"], [0.1]),
        ),
        "sweep of a parameter": (
            lambda a, b: swept(vl.sweep(g.problem, {"attention.beta": a, "initial.mean": b}, solver="gaussian")),
            ([0.5, 1.0], [[0.0, 0.0], [0.1, 0.2]]),
        ),
        "covariances": (
            lambda *a: vl.covariances(*a[:3], means=a[3], times=a[4], tolerance=a[5], max_steps=1000).attrs["counts"],
            (vl.Softmax(A=EYE), [EYE, EYE], 0.3, [[0.1, 0.2], [0.0, 0.1]], [0.1, 0.2], 1e-8),
        ),
        "measure": (lambda *a: vl.measure(*a).mean, (g.runs["particles"], 0.1)),
        "wasserstein": (lambda *a: vl.wasserstein(*a[:3], method=a[3]), (g.gaussian, g.cloud, 2, "auto")),
        "compare": (lambda *a: vl.compare(*a[:2], p=a[2]), (g.runs["gaussian"], g.runs["particles"], 1)),
        "clusters": (
            lambda *a: vl.clusters(a[0], tolerance=a[1], margin=a[2], rank=a[3]).attrs["doubt"],
            (g.runs["particles"], 0.05, 0.005, True),
        ),
        "energies": (lambda *a: climbed(vl.energies(a[0], tolerance=a[1])), (g.runs["climbing"], 1e-6)),
        "lipschitz": (
            lambda *a: vl.lipschitz(*a[:2], t=a[2], masked=a[3], tolerance=a[4], most=a[5]).error,
            (vl.Softmax(A=EYE), [[0.1, 0.2], [0.3, -0.4]], 0.0, True, 1e-6, 20),
        ),
        "sensitivity": (
            lambda r, t, n, s, e, tol: vl.sensitivity(
                r, times=t, n=n, sampling=s, seed=e, tolerance=tol, rates=False
            ).attrs["doubt"],
            (g.runs["particles"], [0.0, 0.1], 4, "auto", 0, 1e-4),
        ),
        "bures_geodesic": (lambda *a: used(vl.gaussian.bures_geodesic(*a)), (g.gaussian, g.gaussian, 0.5)),
        "bures_speed": (lambda *a: vl.gaussian.bures_speed(*a), ([0.1, 0.2], EYE, EYE)),
        "on_grid": (lambda *a: vl.on_grid(a[0], a[1], time=a[2]), (g.runs["particles"], 8, 0.1)),
        "on_grid of a measure": (lambda *a: vl.on_grid(a[0], a[1], bandwidth=a[2]), (g.cloud, [4, 4], 0.3)),
        "sample": (lambda *a: g.gaussian.sample(a[0], a[1], seed=a[2]).mean, (9, "sobol", 0)),
        "load_case": (lambda *a: vl.load_case(a[0], settings=a[1]), ("box-2d", ["horizon=2"])),
        "open_run": (lambda path: vl.open_run(path), ("run.nc",)),
        "plot": (lambda *a: drawn(figures.plot(a[0], kind=a[1])), (g.runs["gaussian"], "ellipses")),
        "from_json": (lambda text: vl.Problem.from_json(text), (g.problem.to_json(),)),
    }


def drawn(figure):
    """A figure, drawn and closed."""
    import matplotlib.pyplot as plt

    figure.canvas.draw()
    plt.close(figure)
    return "a figure"


FEW = {
    "sample",
    "particles",
    "layers",
    "layers of a step",
    "depth_study",
    "refinement",
    "lipschitz_study",
    "adversarial_tokens",
    "sensitivity",
    "finite-volume",
    "on_grid",
    "on_grid of a measure",
}  # whose sizes stay small or absurd


@st.composite
def api_calls(draw):
    """The name of a call, and its arguments with one or two exchanged."""
    name = draw(st.sampled_from(sorted(calls())))
    arguments = list(calls()[name][1])
    for _ in range(draw(st.integers(1, 2))):
        arguments[draw(st.integers(0, len(arguments) - 1))] = draw(values.odd)
    return name, arguments


def call(named):
    """Call a function of the library."""
    name, arguments = named
    return calls()[name][0](*arguments)


def solve_case(tables):
    """What ``vlasov run`` does with a case's tables."""
    read, load.read = load.read, lambda _: tables
    try:
        case = vl.load_case("box-2d")
    finally:
        load.read = read
    solver = next(iter(case.solvers))
    if case.times is None or case.problem.dimension > 4:
        return prepare(case.problem, solver, options=case.solvers[solver]).solver
    return sound(vl.solve(case.problem, solver, times=case.times[:3], **case.solvers[solver]))


PLACES = [0.5, 0.2, 0.5]


def solve_any(parts):
    """A problem of any size."""
    kind, (a, first), (v, second), where, at, width, horizon, solver, bounds = parts
    A, V = a * np.array(SHAPES[first]), v * np.array(SHAPES[second])
    attention = {
        "softmax": lambda: vl.Softmax(A=A, V=V),
        "l2": lambda: vl.L2(A, A, V),
        "linear": lambda: vl.Linear(A=A, V=V),
        "sinkhorn": lambda: vl.Sinkhorn(A=A, V=V),
        "sigmoid": lambda: vl.Sigmoid(A=A, V=V, bias=0.5),
        "exponential": lambda: vl.Exponential(A=A, V=V),
        "relu": lambda: vl.ReLU(A=A, V=V),
        "hardmax": lambda: vl.Hardmax(A=A, V=V),
        "masked": lambda: vl.Masked(vl.Softmax(A=A, V=V)),
        "mixed": lambda: vl.MultiHead([vl.L2(A, A, V), vl.Sigmoid(A=A), vl.Sinkhorn(A=V, V=A)]),
    }[kind]()
    centre, spread = np.array([at, -0.5]), width * np.array([[1.0, 0.3], [0.3, 0.5]])
    gaussian = vl.Gaussian(centre, spread)
    initial = {
        "gaussian": lambda: gaussian,
        "box": lambda: vl.Box(centre, centre + width),
        "ring": lambda: vl.Ring(width / 2, width, centre),
        "mixture": lambda: vl.Mixture([gaussian, vl.Gaussian(-centre, spread)], [1, 2]),
        "particles": lambda: vl.Particles(centre + np.sqrt(width) * np.array([[0, 0], [0, 1], [1, -1]]), s=PLACES),
        "sequence": lambda: vl.Sequence([gaussian, vl.Box(centre, centre + width)]),
    }[where]()
    problem = vl.Problem(attention, initial, horizon)
    return sound(vl.solve(problem, solver, times=[0.0, horizon], **OPTIONS[solver], **bounds))


def solve_text(text):
    """A case file as it stands, as long as it is no valid case; else what it becomes with little work."""
    small = values.readable(text)
    if small is not None:
        return solve_case(small)
    Path("mine.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    return vl.load_case("mine.toml")


def set_values(settings):
    """Changes of a case on the command line, up to the run."""
    case = vl.load_case("mixture-2d", settings=settings)
    for solver, options in case.solvers.items():
        prepare(case.problem, solver, times=case.times, options=options)
    return "a plan"


def command(arguments):
    """The command line: it ends with an exit code, and never says Traceback."""
    argv, sys.argv = sys.argv, ["vlasov", *arguments]
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
            code = -1  # it has to exit
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.argv = argv
    assert code in (0, 1, 2), code
    assert "Traceback" not in out.getvalue() + err.getvalue()
    assert code == 0 or err.getvalue().startswith("vlasov: ")
    return f"exit {code}"


def open_bytes(content):
    """A damaged file is told from a sound one."""
    Path("run.nc").write_bytes(content)
    run = vl.open_run("run.nc")
    vl.measure(run)
    assert content == given().content, "damaged, and not noticed"
    return "read"


WORDS = """list show copy run plot clusters compare converge export --help --json --set -o --solver --dry-run --kind
--times --at --save --attention --dimension --subject 3 0,1 mean initial.points=no.npy out.csv out.npz
gaussian-line gaussian-collapse mixture-2d gaussian horizon=1 horizon=nan missing.toml run.nc mine.toml cone = -1 é"""
words = st.sampled_from([*WORDS.split(), "\0"])
COMMANDS = st.lists(words | st.text(max_size=4), max_size=5).filter(
    lambda line: not {"compare", "converge", "mixture-2d"} & set(line) or "--dry-run" in line
)

INPUTS = {
    "case": (values.case_tables(), solve_case),
    "text": (values.case_texts(), solve_text),
    "physics": (values.physics, solve_any),
    "settings": (values.settings, set_values),
    "call": (st.deferred(api_calls), call),
    "command": (COMMANDS, command),
    "file": (st.deferred(lambda: values.damaged(given().content)), open_bytes),
}


def _named(error):
    """An error of ours is one sentence."""
    assert len(str(error).splitlines()) == 1, f"not one sentence: {error}"
    return type(error).__name__


def throw(kind, value):
    """Throw one input: a word on what came of it, or the exception that should not be."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's on overflow, and ours on accuracy: they are answers
        warnings.simplefilter("error", vl.SlowRunWarning)  # and so is this, after five seconds: it is not waited for
        before = os.getcwd()
        os.chdir(folder)
        try:
            return str(INPUTS[kind][1](value))[:40]
        except (vl.InputError, vl.SolverError) as error:
            return _named(error)
        except vl.SlowRunWarning:
            return "slow, and says so"
        finally:
            os.chdir(before)
