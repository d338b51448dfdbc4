"""Auxiliary differential equations of dispersive media: one polarisation for each pole.

a2 P'' + a1 P' + a0 P = s E covers Lorentz (a2 = 1, a1 = gamma, a0 = w0^2, s = deps w0^2), Drude (a0 = 0, s = wp^2) and
Debye (a2 = 0, a1 = tau, a0 = 1, s = deps). Second-order poles are centred at step n and are explicit in E^n; first-order
ones are centred at n + 1/2 and couple to E^{n+1}, which the field update resolves in closed form.
Source: M. Okoniewski, M. Mrozowski, M. A. Stuchly, IEEE Microw. Guided Wave Lett. 7 (1997) 121 (in centred form).
"""

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

from sciax.core.ops._registry import Sample, operator


def pole_coefficients(a2, a1, a0, s, dt):
    """Coefficients (p, q, e_old, e_new) of P^{n+1} = p P^n + q P^{n-1} + e_old E^n + e_new E^{n+1}."""
    if isinstance(a2, int | float) and a2 == 0:
        bottom = a1 / dt + a0 / 2
        return (a1 / dt - a0 / 2) / bottom, 0.0 * a1, s / 2 / bottom, s / 2 / bottom
    bottom = a2 / dt**2 + a1 / (2 * dt)
    return (2 * a2 / dt**2 - a0) / bottom, -(a2 / dt**2 - a1 / (2 * dt)) / bottom, s / bottom, 0.0 * s


def _oracle(now, before, e, p, q, e_old):
    return np.asarray(p) * now + np.asarray(q) * before + np.asarray(e_old) * e


def _samples(rng: np.random.Generator) -> Iterable[Sample]:
    shapes = {
        "ordinary": (4, 3, 5),
        "size one": (1, 1, 1),
        "empty": (0, 2, 2),
        "odd": (7, 1, 3),
        "badly scaled": (2, 2, 2),
    }
    for label, shape in shapes.items():
        scale = 1e7 if label == "badly scaled" else 1.0
        fields = (scale * rng.standard_normal(shape) for _ in range(3))
        yield Sample(label, (*fields, np.array(1.9), np.array(-0.95), rng.random(shape)))


@operator("yee.pole", oracle=_oracle, samples=_samples, flops=lambda now, *rest: 5.0 * np.size(now))
def pole_predict(
    now: Inexact[Array, "nx ny nz"],
    before: Inexact[Array, "nx ny nz"],
    e: Inexact[Array, "nx ny nz"],
    p: Inexact[Array, "..."],
    q: Inexact[Array, "..."],
    e_old: Inexact[Array, "..."],
) -> Inexact[Array, "nx ny nz"]:
    """p P^n + q P^{n-1} + e_old E^n: the next polarisation but for its coupling to E^{n+1}."""
    return jnp.asarray(p) * now + jnp.asarray(q) * before + jnp.asarray(e_old) * e
