"""What the repository keeps, and what is made in it: our own hooks pass, and make clean removes all."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def said(*command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def test_files_are_as_small_as_the_hook_wants_them():
    hook = (ROOT / ".pre-commit-config.yaml").read_text().partition("--maxkb=")[2]
    most = 1024 * int(re.match(r"\d+", hook)[0])
    spared = re.compile(re.search(r"exclude: (\S+)", hook)[1])
    files = [name for name in said("git", "ls-files", "-z").split("\0") if name and not spared.search(name)]
    assert [name for name in files if (ROOT / name).is_file() and (ROOT / name).stat().st_size > most] == []


def test_all_that_the_manual_makes_is_removed():
    removed = set(said("make", "--dry-run", "clean").split())
    made = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line.startswith("/docs/")}
    assert len(made) >= 7
    assert made <= removed
    assert "docs" in removed  # where __pycache__ is looked for
