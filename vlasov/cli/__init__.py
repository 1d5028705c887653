"""The command line: parse, call, print.

``app``: the program and how it ends. ``options``: how commands take theirs. ``cases``, ``runs``, ``clusters``,
``studies``, ``depths``, ``figure``, ``installation``: its commands. ``printing``: what they print. Everything heavy is
imported inside the commands, so that --help answers at once.
"""

from vlasov.cli import cases, runs, clusters, studies, depths, figure, installation  # noqa: I001  # as in the help
from vlasov.cli.app import app, main

__all__ = ["app", "cases", "clusters", "depths", "figure", "installation", "main", "runs", "studies"]
