"""The float64 policy.

float32 is the default and dtype follows the input. JAX makes 64-bit arrays only where `jax_enable_x64` is on; sciax never
changes that switch on import. A solver that needs float64 calls `require_dtype`, which explains how to switch it on, and the
commands and tutorials of sciax run inside `x64()`.

jax is imported inside the functions: `sciax.core` is on the way to `sciax --help`, which must not wait for it.
"""

from typing import TYPE_CHECKING

from sciax.core.errors import PrecisionError

if TYPE_CHECKING:
    import numpy as np

_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def x64(enabled: bool = True):
    """Context manager: 64-bit arrays inside, the former setting restored after it."""
    import jax

    return jax.enable_x64(enabled)


def x64_enabled() -> bool:
    import jax

    return bool(jax.config.jax_enable_x64)


def default_float() -> "np.dtype":
    """float64 where 64-bit arrays are on, else float32."""
    import numpy as np

    return np.dtype(np.float64 if x64_enabled() else np.float32)


def require_dtype(dtype, who: str) -> "np.dtype":
    """`dtype` as a NumPy dtype, or an error if JAX would silently narrow it.

    Args:
        dtype: anything `jnp.dtype` takes.
        who: the function that asks, named in the error.

    Raises:
        PrecisionError: 64-bit dtype with x64 off.
    """
    import jax.numpy as jnp

    wanted = jnp.dtype(dtype)
    if wanted.name in _NARROW and not x64_enabled():
        raise PrecisionError(
            f"{who} was asked for {wanted.name}, but 64-bit arrays are switched off in JAX",
            got=f"jax_enable_x64=False, under which arrays would be {_NARROW[wanted.name]}",
            expected=wanted.name,
            remedy='run it inside `with sciax.core.x64():`, or call jax.config.update("jax_enable_x64", True) at the start',
        )
    return wanted
