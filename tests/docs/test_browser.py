"""Who asks for the pages to be opened is told where they were not."""

import os
import subprocess
import sys
from pathlib import Path


def test_without_a_browser_the_check_fails(tmp_path):
    (tmp_path / "index.html").write_text("<title>a page</title>")
    program = Path(__file__).with_name("browser.py")
    done = subprocess.run(
        [sys.executable, program, tmp_path], capture_output=True, text=True, env=os.environ | {"CHROMIUM": "/nope"}
    )
    assert done.returncode == 2
    assert done.stderr.startswith("no page was opened: there is no /nope; install Chromium")
    assert "complaints" not in done.stdout
