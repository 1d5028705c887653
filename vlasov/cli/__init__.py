"""The command line: parse, call, print.

``app``: the program and how it ends. ``options``: how commands take theirs. ``cases``, ``runs``, ``clusters``,
``studies``, ``depths``, ``lipschitz``, ``beyond_gaussian``, ``sensitivity``, ``installation``: its commands.
``printing``: what they print. Everything heavy is imported inside the commands, so that --help answers at once.
"""

# fmt: off
from vlasov.cli import (  # noqa: I001  # the order in the help
    cases, runs, clusters, studies, sensitivity, depths, lipschitz, beyond_gaussian, installation,
)
# fmt: on
from vlasov.cli.app import app, main

__all__ = [
    "app",
    "beyond_gaussian",
    "cases",
    "clusters",
    "depths",
    "installation",
    "lipschitz",
    "main",
    "runs",
    "sensitivity",
    "studies",
]
