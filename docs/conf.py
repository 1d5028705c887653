"""Sphinx: how the manual is built. See `make docs`."""

import sys
from pathlib import Path

import vlasov

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "vlasov"
author = "The vlasov developers"
project_copyright = author
version = release = vlasov.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "_ext", "**/README.md"]
bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 120
nb_merge_streams = True
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
