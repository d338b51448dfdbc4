"""Causal weights: later times count only once earlier ones are right (Wang, Sankaran & Perdikaris 2024)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def causal_weights(
    square: Float[Array, " n"],
    times: Float[Array, " n"],
    start: float,
    end: float,
    strength: float,
    *,
    bins: int = 24,
    judges: int | None = None,
) -> Float[Array, " n"]:
    """w = exp(-strength * sum of the mean squared residuals of all earlier time bins), for each point.

    As the residual falls all weights tend to 1: the loss is then the plain one.

    Args:
        square: squared residuals.
        times: of the points, between `start` and `end`.
        judges: only the first so many points count in the means; all if not given.
    """
    which = jnp.clip(((times - start) / (end - start) * bins).astype(int), 0, bins - 1)
    total = jax.ops.segment_sum(square[:judges], which[:judges], bins)
    count = jax.ops.segment_sum(jnp.ones_like(square[:judges]), which[:judges], bins)
    mean = total / jnp.maximum(count, 1)
    earlier = jnp.cumsum(mean) - mean
    return jax.lax.stop_gradient(jnp.exp(-strength * earlier)[which])
