"""The doctor: does this installation compute the right numbers?

`diagnose()` runs every probe; `PROBES` is the table. A probe is a small function that computes with its subject (jax.grad, a
file round trip, a pair of processes) something whose answer is known, and compares values.
"""

from sciax.core.inspect.doctor import _numbers, _files, _processes, _library  # noqa: F401, I001  (order of the table)
from sciax.core.inspect.doctor._diagnose import Diagnosis as Diagnosis
from sciax.core.inspect.doctor._diagnose import diagnose as diagnose
from sciax.core.inspect.doctor._probe import PROBES as PROBES
from sciax.core.inspect.doctor._probe import Finding as Finding
from sciax.core.inspect.doctor._probe import Measured as Measured
from sciax.core.inspect.doctor._probe import Probe as Probe
from sciax.core.inspect.doctor._probe import examine as examine
