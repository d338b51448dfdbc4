"""The conformance grid: every registered operator against every transformation, dtype and its oracle.

tests/conformance runs all of it; `check(registry()["segment.sum"], "vjp")` runs one cell anywhere.
"""

from sciax.core.ops.conformance._cells import check as check
from sciax.core.ops.conformance._compare import ConformanceError as ConformanceError
from sciax.core.ops.conformance._registration import check_registration as check_registration
from sciax.core.ops.conformance._tolerances import tolerance as tolerance
