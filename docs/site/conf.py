"""How the site is built: `make docs`, or ``sphinx-build -W -c docs/site . build/site``.

The source is the whole repository, so that a link between two of its pages is the same there, in an editor and on the site.
Nothing is fetched: what is known of other projects is stored (`inventories`), and notebooks are shown as they were stored.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import indexes  # noqa: E402
import inventories  # noqa: E402
import reference  # noqa: E402

import dpframe  # noqa: E402

project = "dpframe"
author = "dpframe developers"
project_copyright = "dpframe developers"
version = release = dpframe.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "formulas",
    "indexes",
    "pictures",
]
root_doc = "README"
include_patterns = [
    *("README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md", "SECURITY.md"),
    *("docs/**", "notebooks/**"),
]
exclude_patterns = ["docs/site", "build", "dist", ".*", "**/.ipynb_checkpoints", "tests", "dpframe"]
picture_pages = ["docs/gallery", "docs/how-to/plot-answers"]

# Pages
myst_heading_anchors = 6  # the anchors that repositories give headings, too
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_digits = myst_dmath_allow_space = False  # prices stay prices
html_math_renderer = "mathml"
nb_execution_mode = (
    "off"  # the tests run each page and each notebook; here they are shown with what they said
)
nb_merge_streams = True
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# The reference
autosummary_generate = False  # `reference` writes its pages
autodoc_member_order = "alphabetical"
autodoc_typehints = "signature"
autodoc_type_aliases = {
    name: name for name in ("BoundsLike", "BoundColumn", "ColumnLike", "QuantileLevels")
}
add_module_names = False
default_role = "py:obj"
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
toc_object_entries = False

# Links to other projects
intersphinx_mapping = inventories.mapping(ROOT / "build" / "inventories")

# Looks
html_theme = "pydata_sphinx_theme"
html_title = f"dpframe {version}"
html_static_path = ["static"]
html_extra_path = ["extra"]  # the first page by the address of the site
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "dpframe"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "navigation_depth": 3,
    "collapse_navigation": True,  # of the other sections the names alone: pages are small, and built in half the time
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"README": [], "docs/gallery": [], "docs/tutorial": []}

PAGE = re.compile(r"`{0,2}docs/([\w/-]+)\.md(?:#[\w-]+)?`{0,2}")
BAR = re.compile(r"(``.*?``)|\|")


def as_pages_have_it(
    app: Any, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Docstrings as text of pages: pages that they name become links, and |x| stays an absolute value.

    Of properties the text is taken anew: napoleon reads what stands before a colon as a type.
    """
    if isinstance(thing, property | cached_property):
        lines[:] = [*(inspect.getdoc(thing) or "").splitlines(), ""]
    lines[:] = [
        PAGE.sub(r":doc:`/docs/\1`", BAR.sub(lambda m: m[1] or r"\|", line)) for line in lines
    ]


def without_signatures(
    app: Any, what: str, name: str, thing: object, *rest: object
) -> tuple[str, str] | None:
    """Objects that users get, and do not make, are shown without the arguments they are made of."""
    made = {section.kind for section in reference.SECTIONS} - {dpframe.Accountant}
    return ("", "") if thing in made else None


def setup(app: Any) -> None:
    api = ROOT / "docs" / "reference" / "api"
    indexes.GUESTS["docs/reference/index"] = [
        f"docs/reference/api/{place}" for place in reference.write(api)
    ]
    indexes.GROUPS.update(reference.GROUPS)
    app.connect("autodoc-process-docstring", as_pages_have_it)
    app.connect("autodoc-process-signature", without_signatures)
