"""Settings of the documentation's site, which `make docs` builds."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

project = "Flambeau"
author = "The Flambeau developers"
copyright = author
_settings = (HERE.parent / "pyproject.toml").read_text(encoding="utf-8")
release = re.findall(r'^version = "(.*)"', _settings, re.MULTILINE)[0]

extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "_site.object_pages",
    "_site.generated_pages",
    "_site.source_pages",
]
exclude_patterns = ["_build", "_playground", "_site", "_templates"]
source_suffix = {".md": "myst-nb"}

# Tutorials are executed by kernels with settings of their own, not the reader's; one is not to hear of encryption.
_kernels = HERE / "_build" / "ipython"
(_kernels / "profile_default").mkdir(parents=True, exist_ok=True)
(_kernels / "profile_default" / "ipython_kernel_config.py").write_text(
    "c.IPKernelApp.log_level = 40\n", encoding="utf-8"
)
os.environ["IPYTHONDIR"] = str(_kernels)

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_merge_streams = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
# A class that two modules show has two pages, and its name alone means either; tracebacks with notes are no Python.
suppress_warnings = ["ref.python", "misc.highlighting_failure"]
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
# Curly quotes take a seventh of the time in which pages are read.
smartquotes = False
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = f"Flambeau {release}"
html_static_path = ["_static"]
html_css_files = ["flambeau.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
# Search finds every name: a list of all of them, on one page of a megabyte, does not help.
html_use_index = False
html_domain_indices = False
html_sidebars = {"index": [], "reference/flambeau*": []}
# Sites of other versions lie in folders beside this one; versions.json lists them, the newest first.
html_context = {
    "default_mode": "auto",
    "versions": json.loads((HERE / "versions.json").read_text(encoding="utf-8")),
}
templates_path = ["_templates"]
html_theme_options = {
    "logo": {"text": "Flambeau"},
    "navbar_end": ["versions", "theme-switcher"],
    "show_toc_level": 2,
    "navigation_depth": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
