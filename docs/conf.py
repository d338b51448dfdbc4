"""Sphinx configuration: the guide pages here, the tutorials, and the figures measured."""

import shutil
from pathlib import Path

here = Path(__file__).parent
# Sphinx reads only what lies under its own folder.
(here / "_tutorials").mkdir(exist_ok=True)
for notebook in (here.parent / "tutorials").glob("*.ipynb"):
    shutil.copy2(notebook, here / "_tutorials")

project = "sciax"
author = "the sciax developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
nb_execution_mode = "off"  # the test suite runs them
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "sciax"
