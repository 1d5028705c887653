"""What a user gets: from the wheel, from an editable install, from a bare checkout."""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import vlasov

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "vlasov": "vlasov",
    "solvers": "vlasov/solvers",
    "cases": "vlasov/cases",
    "postprocess": "vlasov/postprocess",
}
FILES = ("pyproject.toml", "README.md", "LICENSE")
# Where each room was imported from, a name that the facade loads, and the cases that it finds.
REPORT = """
import importlib, json, sys
import vlasov as vl
rooms = ["vlasov", "vlasov.solvers", "vlasov.cases", "vlasov.postprocess"]
files = [importlib.import_module(room).__file__ for room in rooms]
print(json.dumps({"files": files, "softmax": vl.Softmax.__module__, "cases": list(vl.case_names())}))
"""

# One worker builds the wheel, once.
pytestmark = pytest.mark.xdist_group("packaging")


def run(*command: object, cwd: Path, **variables: str) -> str:
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    result = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=outside | variables, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of what is committed: a build leaves traces where it starts."""
    copy = tmp_path_factory.mktemp("checkout")
    for folder in PACKAGES:
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=ignore)
    (copy / "tests").mkdir()
    (copy / "tests/test_nothing.py").touch()
    for file in FILES:
        shutil.copy(ROOT / file, copy)
    return copy


@pytest.fixture(scope="module")
def wheels(checkout, tmp_path_factory) -> dict[str, Path]:
    """The wheel made directly, as pip does, and the wheel made from the source archive, as the package index does."""
    found = {}
    for route, options in {"checkout": ["--wheel"], "sdist": []}.items():
        folder = tmp_path_factory.mktemp(route)
        copy = folder / "source"
        shutil.copytree(checkout, copy, symlinks=True)
        run(sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", folder / "dist", copy, cwd=folder)
        (found[route],) = (folder / "dist").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def unpacked(wheels, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheels["checkout"]).extractall(folder)
    return folder


def committed() -> set[str]:
    """The wheel's names for all that belongs into it."""
    names = set()
    for folder, package in PACKAGES.items():
        for path, folders, files in os.walk(ROOT / folder):  # does not follow the links
            folders[:] = [name for name in folders if name != "__pycache__"]
            inner = Path(path).relative_to(ROOT / folder)
            wanted = (".py", ".pyi", ".toml", ".bib", "py.typed", ".html", ".css", ".js")
            names |= {(Path(package) / inner / file).as_posix() for file in files if file.endswith(wanted)}
    return names


@pytest.mark.quick
@pytest.mark.parametrize("room", ["solvers", "cases", "postprocess"])
def test_link(room):
    assert os.readlink(ROOT / "vlasov" / room) == f"../{room}"


@pytest.mark.parametrize("route", ["checkout", "sdist"])
def test_wheel_holds_one_package_and_nothing_else(wheels, route):
    names = zipfile.ZipFile(wheels[route]).namelist()
    inside = [name for name in names if ".dist-info/" not in name]
    assert len(names) == len(set(names))
    assert set(inside) == committed()
    assert {"vlasov/py.typed", "vlasov/__init__.pyi"} <= set(inside)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_wheel_declares_the_command(unpacked):
    (entry_points,) = unpacked.glob("*.dist-info/entry_points.txt")
    assert entry_points.read_text().split("\n")[:2] == ["[console_scripts]", "vlasov = vlasov.cli:main"]


def test_version_is_the_same_everywhere(unpacked):
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    assert email.message_from_string(metadata.read_text())["Version"] == vlasov.__version__
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)[1] == vlasov.__version__
    assert f"\n## [{vlasov.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def check(report: str, home: Path) -> None:
    said = json.loads(report)
    for file in said["files"]:
        # Not resolved: in a checkout the path leads through the links or past them, both inside.
        assert Path(file).is_relative_to(home)
    assert said["softmax"] == "vlasov.attention.normalised"
    assert set(said["cases"]) == {path.stem for path in (ROOT / "cases").glob("*.toml")}


def test_wheel_works_without_the_checkout(unpacked, tmp_path):
    # -I -S: neither the user's settings nor an editable install in this environment, only its dependencies.
    paths = [str(unpacked), *{sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}]
    check(run(sys.executable, "-I", "-S", "-c", f"import sys; sys.path += {paths}\n{REPORT}", cwd=tmp_path), unpacked)


def test_editable_install(checkout, tmp_path):
    # An environment of its own that borrows the dependencies; the borrowed folder's .pth files stay without effect.
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=tmp_path)
    python = tmp_path / "env/bin/python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    options = ["--no-deps", "--no-build-isolation", "--ignore-installed", "--no-index", "--disable-pip-version-check"]
    run(python, "-m", "pip", "install", *options, "--editable", checkout, cwd=tmp_path)
    check(run(python, "-I", "-c", REPORT, cwd=tmp_path), checkout)
    assert "Usage" in run(tmp_path / "env/bin/vlasov", "--help", cwd=tmp_path)


def test_bare_checkout(checkout, tmp_path):
    check(run(sys.executable, "-c", REPORT, cwd=tmp_path, PYTHONPATH=str(checkout)), checkout)
