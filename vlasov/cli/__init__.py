"""The command line: parse, call, print.

``app``: the program and how it ends. ``options``: how commands take theirs. ``cases``, ``runs``, ``clusters``,
``studies``, ``sensitivity``, ``depths``, ``installation``: its commands. ``printing``: what they print. Everything
heavy is imported inside the commands, so that --help answers at once.
"""

# In the order of the help.
from vlasov.cli import cases, runs, clusters, studies, sensitivity, depths, installation  # noqa: I001
from vlasov.cli.app import app, main

__all__ = ["app", "cases", "clusters", "depths", "installation", "main", "runs", "sensitivity", "studies"]
