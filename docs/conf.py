"""Sphinx's settings for the documents: ``./dev docs`` builds them into .ytf/docs/html.

Nothing is fetched, neither while they are built nor by a reader's browser: docs/diagrams.py has drawn the diagrams.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import tf_yarn_ops  # noqa: E402

project = "tf_yarn_ops"
author = copyright = "the authors of tf_yarn_ops"
version = release = tf_yarn_ops.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_ivar = True
napoleon_use_rtype = False
# Types in docstrings are words for people: "mapping of str to str, optional".
nitpick_ignore_regex = [("py:.*", ".*")]

html_theme = "furo"
html_title = f"tf_yarn_ops {release}"
html_show_sphinx = False
