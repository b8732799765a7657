"""The site: ``make docs`` builds it. Nothing is fetched, and a warning is an error."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

from sphinx.util.inspect import stringify_signature

import kernelstream

ROOT = Path(__file__).parents[1]
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]

PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}

project = "kernelstream"
author = "The kernelstream developers"
copyright = "The kernelstream developers"
version = release = kernelstream.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/*.py", "gallery/*.ipynb", "api/backreferences"]
root_doc = "index"
nitpicky = True


# -------------------------------------------------------------------- pages
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

# -------------------------------------------------------------------- the reference
autosummary_generate = True
autodoc_mock_imports = ["pyspark"]  # 400 MB, of which the reference needs nothing
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
numpydoc_show_class_members = False  # autodoc lists them
numpydoc_class_members_toctree = False

nitpick_ignore = [("py:obj", "finish")]  # a field of a dataclass: its class describes it
# Names of other projects: their inventories would have to be fetched.
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|scipy|sklearn|river|dask|torch|matplotlib|onnx|pandas|pyarrow)\..*"),
]

# -------------------------------------------------------------------- the gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("kernelstream",),
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 5,
    "write_computation_times": False,
    "plot_gallery": "True",
}

# -------------------------------------------------------------------- looks
html_theme = "pydata_sphinx_theme"
html_title = f"kernelstream {version}"
html_static_path: list[str] = []
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "kernelstream"},
    "icon_links": [{"name": "Source", "url": URLS["Source"], "icon": "fa-solid fa-code"}],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _outside(app, docname, source):
    """Links to files outside docs/ lead to the repository; pictures from there are copied."""

    def moved(match):
        path, anchor = match["path"], match["anchor"] or ""
        if match["text"].startswith("!"):
            return match[0]
        if path in PAGES:
            return f"{match['text']}({PAGES[path]}{anchor})"
        return f"{match['text']}({URLS['Source']}/blob/main/{path}{anchor})"

    source[0] = re.sub(r"(?P<text>!?\[[^\]]*\])\(\.\./(?P<path>[^)#]+)(?P<anchor>#[^)]*)?\)", moved, source[0])


def _skipped(app, what, name, obj, skip, options):
    """What scikit-learn gives every estimator is described there."""
    if name.startswith("set_") and name.endswith("_request"):
        return True
    home = getattr(obj, "__module__", None) or getattr(getattr(obj, "fget", None), "__module__", None) or ""
    return True if home.split(".")[0] not in ("kernelstream", "") else None


def _signed(app, what, name, obj, options, signature, returned):
    """The parameters of a class, where autodoc has found those of ``__new__``, which looks for misspelt ones."""
    if what == "class" and "**given" in (signature or ""):
        return stringify_signature(inspect.signature(obj), show_annotation=False, show_return_annotation=False), None
    return None


def setup(app):
    app.connect("source-read", _outside)
    app.connect("autodoc-skip-member", _skipped)
    app.connect("autodoc-process-signature", _signed)
