"""Sphinx configuration: the guide pages here, the tutorials, and the figures measured."""

project = "sciax"
author = "the sciax developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
nb_execution_mode = "off"  # the test suite runs them
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "sciax"
