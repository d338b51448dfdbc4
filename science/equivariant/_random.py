"""Initial weights drawn on the host: a network has dozens of shapes, and each would cost a compilation on the device."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array


def normal(key: Array, shape: tuple[int, ...], dtype=jnp.float32) -> Array:
    """Standard normal numbers set by `key`: NumPy's generator seeded with the key's words; under a trace JAX's own."""
    if isinstance(key, Tracer):
        return jax.random.normal(key, shape, dtype)
    words = np.asarray(jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key)
    return jnp.asarray(np.random.default_rng(words.ravel().astype(np.uint32)).standard_normal(shape), dtype)
