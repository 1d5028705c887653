"""What no linter looks at: how long lines are in texts, and that what is required is used."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = (".", ".ci", "benchmarks", "cases", "docs", "postprocess", "solvers", "tests", "vlasov")
KINDS = {".md", ".py", ".pyi", ".sh", ".toml", ".yaml"}
LONGEST = 120  # also where ruff lets a line pass for the remark at its end
MADE = {"_build", "_made", "api"} | {"gallery/cases", "gallery/figures", "gallery/programs"}  # by `make docs`
MODULES = {"h5netcdf[h5py]": "h5netcdf", "POT": "ot"}  # where the package has another name


def texts(folder: str) -> list[Path]:
    """The files of a folder, and of those inside it, that people write; not what tools leave behind."""
    inside = (ROOT / folder).glob("*" if folder == "." else "**/*")
    return [
        path
        for path in inside
        if path.is_file()
        and (path.suffix in KINDS or path.name in ("Makefile", "run"))
        and not any(f"/{made}/" in path.as_posix() for made in MADE)
    ]


@pytest.mark.quick
@pytest.mark.parametrize("folder", FOLDERS)
def test_lines_are_not_too_long(folder):
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in texts(folder)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LONGEST and not (path.suffix == ".md" and line.startswith("|"))  # rows of tables are one line
    ]
    assert not long


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.split("[<>=~]", requirement)[0] for requirement in project["dependencies"]]


@pytest.mark.quick
@pytest.mark.parametrize("requirement", requirements())
def test_what_is_required_is_used(requirement):
    """Imported, or named to xarray, which imports it."""
    module = MODULES.get(requirement, requirement).replace("-", "_")
    used = re.compile(rf'^\s*(import|from) {module}\b|engine="{module}"', re.MULTILINE)
    rooms = ("vlasov", "solvers", "cases", "postprocess")
    assert any(used.search(path.read_text(encoding="utf-8")) for room in rooms for path in (ROOT / room).rglob("*.py"))
