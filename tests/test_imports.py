"""The direction of imports between the rooms, the lazy facade, and how long the first contact takes."""

import inspect
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import vlasov as vl

ROOT = Path(__file__).parent.parent
ROOMS = ("vlasov", "solvers", "cases", "postprocess")

PUBLIC = set(
    "Gaussian Mixture Sequence Ball Box Ring Particles Density Piecewise Problem "
    "Softmax L2 Sinkhorn Sigmoid Exponential ReLU Linear MultiHead Masked LayerNorm MLP "
    "solve measure open_run load_case case_names Case AccuracyWarning InputError SlowRunWarning SolverError "
    "Hardmax distance wasserstein clusters compare mean_field_study depth_study on_grid energies set_threads "
    "lipschitz_study refinement gaussianity "
    "cases estimates gaussian measures postprocess solvers tilting".split()
)
HEAVY = set("h5netcdf h5py llvmlite matplotlib numba ot pandas pyfftw scipy threadpoolctl xarray zarr".split())
LIMIT = 0.3  # seconds, of which Python itself takes a part
FIRST_CONTACTS = {
    "import vlasov": ["-c", "import vlasov"],
    "vlasov --help": ["-m", "vlasov.cli", "--help"],
}


def python(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, which comes first on its path."""
    quiet = {key: value for key, value in os.environ.items() if key not in ("EAGER_IMPORT", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=quiet, capture_output=True, text=True, check=False
    )


# The direction of imports


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return python("-c", "from importlinter.cli import lint_imports_command as f; f()", "--no-cache", folder=folder)


@pytest.mark.quick
def test_no_room_imports_one_to_its_right():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


INTRUDERS = {  # a module, and what it must not import
    "vlasov/problem.py": "from vlasov.solvers.driver import solve",
    "vlasov/measures/solids.py": "import vlasov.cases",
    "vlasov/tilting/grid.py": "def late():\n    from vlasov import postprocess",
    "vlasov/tilting/boxes.py": "from vlasov.measures import Gaussian",
    "vlasov/scaling/sums.py": "from vlasov.measures import Particles",
    "vlasov/compiled/views.py": "import vlasov.tilting.results",
    "vlasov/measures/deposit.py": "def late():\n    import vlasov.attention",
    "vlasov/attention/normalised.py": "from vlasov.problem import Problem",
    "vlasov/geometry/linkage.py": "from vlasov.measures import Particles",
    "vlasov/codec.py": "from vlasov.checks import Array",
    "vlasov/schedule.py": "from vlasov import Gaussian",
    "solvers/options.py": "import vlasov.cases",
    "solvers/progress.py": "from vlasov.postprocess import figures",
    "solvers/particles.py": "from vlasov.solvers.driver import solve",
    "solvers/record.py": "import vlasov.solvers.ode",
    "cases/catalogue.py": "import vlasov.postprocess",
    "cases/facts.py": "import vlasov.cli",
    "postprocess/clusters/tokens.py": "import vlasov.postprocess.drawing",
    "postprocess/moments.py": "from vlasov.cases import load_case",
    "postprocess/stability.py": "from vlasov import solve",
    "postprocess/transport/line.py": "from vlasov.postprocess.wasserstein import distance",
    "postprocess/drawing/style.py": "from vlasov.postprocess.compare import figure",
}


@pytest.fixture(scope="module")
def complaint(tmp_path_factory):
    """What the linter says of the rooms with an intruder in each of the modules, and with a module of no room."""
    folder = tmp_path_factory.mktemp("spoilt")
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for module, line in INTRUDERS.items():
        file = folder / module
        file.write_text(f"{file.read_text()}\n{line}\n")
    (folder / "vlasov" / "stranger.py").touch()
    result = lint_imports(folder)
    assert result.returncode == 1, result.stdout + result.stderr
    return result.stdout


@pytest.mark.quick
@pytest.mark.xdist_group("intruders")
@pytest.mark.parametrize("module", INTRUDERS)
def test_linter_sees_an_import_in_the_wrong_direction(complaint, module):
    importer = module.removesuffix(".py").replace("/", ".")
    whole = importer if importer.startswith("vlasov.") else f"vlasov.{importer}"
    [name] = re.findall(r"(?:import|from) (vlasov[.\w]*)", INTRUDERS[module])
    assert re.search(rf"{re.escape(whole)} -> {re.escape(name)}\b", complaint), complaint


@pytest.mark.xdist_group("intruders")
def test_linter_sees_a_module_of_no_room(complaint):
    assert "stranger" in complaint


# The lazy facade


def test_facade_lists_the_public_names():
    assert set(dir(vl)) >= PUBLIC
    assert "__version__" not in vl.__all__


@pytest.mark.quick
@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_facade_loads_what_is_called_so(name):
    loaded = getattr(vl, name)
    assert loaded.__name__ == (f"vlasov.{name}" if inspect.ismodule(loaded) else name)


def test_facade_refuses_unknown_names():
    with pytest.raises(AttributeError, match="Gausian"):
        vl.Gausian  # noqa: B018


# Each in a process that has loaded what others wrote, and nothing of ours.
ORDERS = """
import os, sys
import numba, scipy.integrate, xarray

for first in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        if first == "EAGER_IMPORT":
            os.environ[first] = "1"
        import vlasov as vl
        if first == "postprocess":
            import vlasov.postprocess
            assert "matplotlib" not in sys.modules
            import vlasov.postprocess.figures
            assert "matplotlib.pyplot" not in sys.modules
        elif first != "EAGER_IMPORT":
            getattr(vl, first)
        print(first, *(type(x).__name__ for x in (vl.measures, vl.measure, vl.gaussian, vl.Gaussian)), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_facade_does_not_depend_on_what_is_loaded_first():
    """A function measure beside a module measures, a class Gaussian beside a module gaussian; pictures load late."""
    names = ["measure", "measures", "Ball", "gaussian", "solve", "postprocess", "EAGER_IMPORT"]
    result = python("-c", ORDERS, *names)
    assert result.stdout.splitlines() == [f"{name} module function module ABCMeta" for name in names], result.stderr


# First contact


def seconds(arguments: list[str]) -> float:
    """Of processor time: those of the clock on an idle machine, and the same beside other tests."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = python(*arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0, result.stderr
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@pytest.mark.parametrize("contact", FIRST_CONTACTS)
def test_first_contact_takes_less_than_the_limit(contact):
    """The best of five: the first that is below the limit is enough."""
    taken: list[float] = []
    while len(taken) < 5 and not (taken and taken[-1] < LIMIT):
        taken.append(seconds(FIRST_CONTACTS[contact]))
    assert min(taken) < LIMIT, f"{contact}: {min(taken):.3f} s, of which Python itself {seconds(['-c', 'pass']):.3f} s"


def loaded_by(kind: str, *rest: str) -> set[str]:
    """Return the modules that ``python -c PROGRAM`` or ``python -m MODULE ARGUMENTS`` has loaded at its end."""
    run = (
        rest[0]
        if kind == "-c"
        else f"import runpy, sys; sys.argv = {rest!r}; runpy.run_module({rest[0]!r}, run_name='__main__')"
    )
    report = "import atexit, sys; atexit.register(lambda: sys.stderr.write('loaded: ' + ' '.join(sys.modules)))"
    result = python("-c", f"{report}; {run}")
    assert result.returncode == 0, result.stderr
    return set(result.stderr.rpartition("loaded: ")[2].split())


@pytest.mark.quick
@pytest.mark.parametrize("contact", FIRST_CONTACTS)
def test_first_contact_does_not_load(contact):
    loaded = loaded_by(*FIRST_CONTACTS[contact])
    assert "vlasov" in loaded
    assert not loaded & HEAVY


def test_a_gaussian_run_loads_only_what_it_needs(tmp_path):
    loaded = loaded_by("-m", "vlasov.cli", "run", "gaussian-collapse", "-o", str(tmp_path / "run.nc"))
    assert "vlasov.solvers.gaussian" in loaded
    assert not loaded & {"distributed", "llvmlite", "matplotlib", "numba", "ot", "pyfftw", "scipy.interpolate"}
