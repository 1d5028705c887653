"""Sphinx: how the manual is built. See `make docs`."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# Pages that call programs find ours, in whatever environment Sphinx runs.
PROGRAMS = Path(sys.executable).parent
os.environ["PATH"] = os.pathsep.join([str(HERE / "_ext" / "bin"), str(PROGRAMS), os.environ["PATH"]])
os.environ["VLASOV_PROGRAM"] = str(PROGRAMS / "vlasov")
os.environ["PYTHONPATH"] = str(HERE / "_ext")
os.environ["PYTHONSTARTUP"] = str(HERE / "_ext" / "page_startup.py")  # what kernels run before the cells of a page

import vlasov  # noqa: E402

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
    # What follows is ours, in docs/_ext: a module, or a package, with a function setup(app).
    "balanced",
    "gallery",
    "plain_docstrings",
    "reference",
    "statements",
]
exclude_patterns = [
    *("_build", "_ext", "_static", "examples", "jupyter_execute"),
    *("**/_made", "**/README.md", "sg_execution_times.rst"),
]
sphinx_gallery_conf: dict[str, object] = {}  # docs/_ext/gallery/programs.py fills it
nitpicky = True
# Types of signatures stand as they are written; what pages refer to must be there.
nitpick_ignore_regex = [("py:.*", r"(?!vl(asov)?\.).*"), ("py:.*", r"vlasov\.(?!estimates\.|gaussian\.)\w+\..*")]

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"
bibtex_default_style = "plain"

myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

nb_execution_mode = "force"
nb_execution_in_temp = True  # what pages write is theirs, and gone
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 600  # seconds; machines may be slow
nb_merge_streams = True
nb_ipywidgets_js = {}  # they would come from the net
nb_render_markdown_format = "myst"  # CommonMark knows no tables
nb_mime_priority_overrides = [("html", "text/html", 0)]

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"Array": "Array", "ArrayLike": "ArrayLike", "Parameter": "Parameter"}
autosummary_generate = False  # docs/_ext/reference makes the pages
maximum_signature_line_length = 80
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = "vlasov"
html_static_path = ["_static"]
html_css_files = ["css/manual.css"]
html_js_files = ["js/wide.js"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_show_search_summary = False  # they are fetched, which browsers refuse to pages from the disk
html_copy_source = False
html_domain_indices = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "cite": []}
html_theme_options = {
    "logo": {"text": "vlasov", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg", "alt_text": ""},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 8,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}

# One file, read from the disk (docs/_static/mathjax/README.md); menu and explorer would ask for others.
mathjax_path = "mathjax/tex-svg-full.js"
mathjax3_config = {
    "options": {"enableMenu": False},
    "svg": {"fontCache": "global"},
    "tex": {"macros": {"R": r"\mathbb{R}", "W": r"\mathcal{W}", "d": r"\mathrm{d}"}},
}
