"""The one operator library: every numerical primitive that a domain package needs, grouped by kind.

Import what you need from its kind (`from sciax.core.ops.segment import segment_sum`); `registry()` lists all.
"""

from sciax.core.ops._registry import CELLS as CELLS
from sciax.core.ops._registry import Operator as Operator
from sciax.core.ops._registry import Sample as Sample
from sciax.core.ops._registry import operator as operator
from sciax.core.ops._registry import registry as registry
