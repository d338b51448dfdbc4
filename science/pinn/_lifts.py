"""Lifts for initial values that are not smooth."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError


def heat_flow(
    initial: Callable[[Any], Any],
    diffusivity: float,
    lower: float,
    upper: float,
    *,
    modes: int = 400,
    start: float = 0.0,
) -> Callable[[Any, Any], Any]:
    """The periodic heat flow of initial values on an interval, as a function of (x, t): a lift, and a feature.

    A kink of the periodic continuation (x^2 cos(pi x) on [-1, 1] has one at its ends) is smoothed at once by the equation, but
    survives in the constant lift u0(x) for ever; its heat flow is smooth for t > start:

        sum_k exp(-diffusivity (2 pi k / L)^2 (t - start)) (a_k cos + b_k sin)(2 pi k (x - lower) / L)

    Args:
        initial: u0 of x, [1].
        modes: of the series; at t = start it misses a kink by about its jump in slope x L / (pi^2 modes) / 2.
    """
    if not (upper > lower and diffusivity >= 0 and modes > 0):
        raise InputError("a heat flow needs an interval and a diffusivity", got=(lower, upper, diffusivity, modes))
    length = upper - lower
    s, w = np.polynomial.legendre.leggauss(3 * modes + 20)
    x = lower + (s + 1) / 2 * length
    values = np.asarray(jax.vmap(initial)(jnp.asarray(x)[:, None]), dtype=float).reshape(-1)
    k = 2 * np.pi * np.arange(modes) / length
    cosine = np.cos(np.outer(k, x - lower)) @ (w * values)
    sine = np.sin(np.outer(k, x - lower)) @ (w * values)
    cosine[0] /= 2

    def flow(x: Any, t: Any) -> Any:
        rate = jnp.asarray(k, x.dtype)
        phase = rate * (x[0] - lower)
        decay = jnp.exp(-diffusivity * rate**2 * (t - start))
        return jnp.sum(
            decay * (jnp.asarray(cosine, x.dtype) * jnp.cos(phase) + jnp.asarray(sine, x.dtype) * jnp.sin(phase))
        )

    return flow
