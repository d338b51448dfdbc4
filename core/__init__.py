"""The differentiable core that every domain package stands on."""

from sciax.core import errors as errors
from sciax.core.precision import default_float as default_float
from sciax.core.precision import require_dtype as require_dtype
from sciax.core.precision import x64 as x64
from sciax.core.precision import x64_enabled as x64_enabled
