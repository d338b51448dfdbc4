"""The phi functions of exponential integrators."""

from math import factorial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

from sciax.core.errors import DTypeError, InputError
from sciax.core.ops._registry import Sample, operator

POINTS, RADIUS = 32, 2.0
"""Of the contour: the trapezoidal rule on a circle leaves RADIUS^32 / 32! of an entire function."""


def _oracle(z: Any, *, order: int = 3) -> np.ndarray:
    # phi_k(z) = integral over s in [0, 1] of e^((1-s) z) s^(k-1) / (k-1)!
    z = np.asarray(z)
    node, weight = np.polynomial.legendre.leggauss(80)
    s, weight = (node + 1) / 2, weight / 2
    kernel = np.exp(z[..., None] * (1 - s)) * weight
    return np.stack([np.exp(z)] + [(kernel * s ** (k - 1) / factorial(k - 1)).sum(-1) for k in range(1, order + 1)])


def _samples(rng: np.random.Generator) -> list[Sample]:
    z = rng.uniform(-3, 1, 6)
    return [
        Sample("ordinary", (z,)),
        Sample("complex, as of a wave that travels", (z + 1j * rng.uniform(-5, 5, 6),)),
        Sample("edge: zero, and close to the switch", (np.array([0.0, 1e-7, -0.999, 1.001, -1.001, 0.999]),)),
        Sample("badly scaled: stiff decay", (np.array([-1e-12, -1e-3, -1.0, -20.0, -40.0, -60.0]),)),
    ]


@operator("spectral.phi", oracle=_oracle, samples=_samples, flops=lambda z, **_: 10.0 * POINTS * np.size(z))
def phi(z: Inexact[Array, "..."], *, order: int = 3) -> Inexact[Array, "orders ..."]:
    """phi_0 .. phi_order with `phi_0 = e^z`, `phi_(k+1)(z) = (phi_k(z) - 1/k!) / z`, without cancellation at small z.

    For |z| >= 1 the recursion; below, where it loses a digit for every digit of z, the mean of its value over a circle of
    radius 2 around z (Cauchy's formula), on which it loses nothing.

    Args:
        z: real or complex, any shape. order: highest k, static.

    Returns:
        [order + 1, *z.shape], of the dtype of z.

    Raises:
        DTypeError: integers. InputError: an order below zero or above 8.

    Source: Kassam & Trefethen, SIAM J. Sci. Comput. 26 (2005) 1214; Cox & Matthews, J. Comput. Phys. 176 (2002) 430.
    """
    z = jnp.asarray(z)
    if not jnp.issubdtype(z.dtype, jnp.inexact):
        raise DTypeError("phi: z is floating or complex", got=z.dtype)
    if not 0 <= order <= 8:
        raise InputError("phi: the order lies between 0 and 8", got=order)
    if order == 0:
        return jnp.exp(z)[None]

    def direct(w):
        rows = [jnp.exp(w)]
        for k in range(order):
            rows.append((rows[-1] - 1 / factorial(k)) / w)
        return jnp.stack(rows)

    real = not jnp.issubdtype(z.dtype, jnp.complexfloating)
    far = jnp.abs(z) >= 1
    near = jnp.where(far, 0.0, z)
    # points mirror each other for real z: half of them, and the real part
    angles = np.pi * (np.arange(POINTS) + 0.5) * (1 if real else 2) / POINTS
    circle = jnp.asarray(RADIUS * np.exp(1j * angles), jnp.result_type(z, jnp.complex64))

    def add(total, point):
        return total + direct(near + point), None

    zero = jnp.zeros((order + 1, *z.shape), circle.dtype)
    mean = jax.lax.scan(add, zero, circle)[0] / POINTS
    mean = jnp.real(mean) if real else mean
    mean = mean.at[0].set(jnp.exp(near))
    return jnp.where(far, direct(jnp.where(far, z, 1.0)), mean)
