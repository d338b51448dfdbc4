"""Sparse matrices on a fixed pattern: assembly, product, and solves with their adjoints."""

from sciax.core.ops.sparse._pattern import Pattern as Pattern
from sciax.core.ops.sparse._pattern import pattern as pattern
from sciax.core.ops.sparse._product import assemble as assemble
from sciax.core.ops.sparse._product import matvec as matvec
from sciax.core.ops.sparse._product import transposed as transposed
from sciax.core.ops.sparse._solve import SolveInfo as SolveInfo
from sciax.core.ops.sparse._solve import checked as checked
from sciax.core.ops.sparse._solve import raise_for as raise_for
from sciax.core.ops.sparse._solve import solve as solve
from sciax.core.ops.sparse._solve import solve_with_info as solve_with_info
