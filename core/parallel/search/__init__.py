"""Automatic search for a plan: `Plan.auto`."""

from sciax.core.parallel.search._auto import Search as Search
from sciax.core.parallel.search._auto import auto as auto
