"""Numerical flux of the shallow-water equations over a bed, exact for water at rest."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import DTypeError, InputError, ShapeError, did_you_mean
from sciax.core.ops._registry import Sample, operator

SCHEMES = ("hllc", "rusanov")
DRY = 1e-8
"""Depth below which velocities fade to zero instead of dividing by the depth."""


def water_velocity(depth: Any, momentum: Any, dry: float = DRY) -> Any:
    """momentum / depth, bounded where the depth goes to zero (Kurganov & Petrova 2007)."""
    square = depth * depth
    return 2 * depth * momentum / (square + jnp.maximum(square, dry * dry))


def _root(value: Any) -> Any:
    """Square root with derivative zero, not infinite, at zero."""
    wet = value > 0
    return jnp.where(wet, jnp.sqrt(jnp.where(wet, value, 1.0)), 0.0)


def _flux_oracle(
    left: Any, right: Any, bed_left: Any, bed_right: Any, gravity: Any, *, scheme: str = "hllc", direction: int = 0
) -> np.ndarray:
    left, right, g = np.asarray(left), np.asarray(right), float(gravity)
    m, shape = len(left), left.shape
    flat = left.reshape(m, -1), right.reshape(m, -1)
    beds = np.asarray(bed_left).ravel(), np.asarray(bed_right).ravel()
    out = np.zeros((2, m, flat[0].shape[1]))
    n = 1 + direction
    for i in range(flat[0].shape[1]):
        sides, top = [], max(beds[0][i], beds[1][i])
        for q, bed in zip((flat[0][:, i], flat[1][:, i]), (beds[0][i], beds[1][i])):
            h = max(0.0, q[0] + bed - top)
            velocity = q[1:] / q[0] if q[0] >= DRY else 2 * q[0] * q[1:] / (q[0] ** 2 + DRY**2)
            state = np.concatenate([[h], h * velocity])
            flux = state * velocity[direction]
            flux[n] += g * h * h / 2
            sides.append((state, flux, velocity, np.sqrt(g * h)))
        (qa, fa, va, ca), (qb, fb, vb, cb) = sides
        ua, ub = va[direction], vb[direction]
        if scheme == "rusanov":
            flux = (fa + fb) / 2 - max(abs(ua) + ca, abs(ub) + cb) * (qb - qa) / 2
        else:
            slow = ub - 2 * cb if qa[0] <= 0 else min(ua - ca, ub - cb)
            fast = ua + 2 * ca if qb[0] <= 0 else max(ub + cb, ua + ca)
            if slow >= 0:
                flux = fa.copy()
            elif fast <= 0:
                flux = fb.copy()
            else:
                flux = (fast * fa - slow * fb + slow * fast * (qb - qa)) / (fast - slow)
            for k in range(m - 1):
                if k != direction:
                    flux[1 + k] = flux[0] * (va[k] if flux[0] >= 0 else vb[k])
        for side, (q, s) in enumerate(((flat[0][:, i], qa), (flat[1][:, i], qb))):
            out[side, :, i] = flux
            out[side, n, i] += g / 2 * (q[0] ** 2 - s[0] ** 2)
    return out.reshape(2, *shape)


def _samples(rng: np.random.Generator) -> list[Sample]:
    def states(*shape: int, dim: int = 2) -> np.ndarray:
        depth = rng.uniform(1, 2, shape)
        return np.concatenate([depth[None], depth * rng.uniform(-1, 1, (dim, *shape))])

    def beds(*shape: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.uniform(0, 0.4, shape), rng.uniform(0, 0.4, shape)

    # few shapes and options, for each is a compilation: three faces, one of them supercritical
    g = np.asarray(9.81)
    left, right, low, high = states(3), states(3), *beds(3)
    for q in (left, right):
        q[1, 2] += 20.0
    scale = np.array([1e4, 1e6, 1e6])[:, None]
    dry = np.array([[0.0, 1.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.1, 0.0]])
    flat = np.zeros(3)
    return [
        Sample("ordinary", (left, right, low, high, g)),
        Sample("badly scaled", (left * scale, right * scale, low * 1e4, high * 1e4, g)),
        Sample("second direction", (left, right, low, high, g), {"direction": 1}),
        Sample("single face, in one dimension", (states(dim=1), states(dim=1), *beds(), g), {"scheme": "rusanov"}),
        Sample("edge: dry on a side, or both", (dry, dry[:, [1, 0, 2]], flat, flat, g), smooth=False),
    ]


@operator(
    "volume.shallow_flux",
    oracle=_flux_oracle,
    samples=_samples,
    flops=lambda left, *_, **__: 20.0 * np.size(left),
    unsupported={"complex": "depths and wave speeds are compared, which complex numbers do not allow"},
)
def shallow_flux(
    left: Float[Array, "m *faces"],
    right: Float[Array, "m *faces"],
    bed_left: Float[Array, "*faces"],
    bed_right: Float[Array, "*faces"],
    gravity: float | Float[Array, ""],
    *,
    scheme: str = "hllc",
    direction: int = 0,
) -> Float[Array, "2 m *faces"]:
    """Fluxes that the cell on the left and the cell on the right of a face see, the weight of water on the step included.

    Hydrostatic reconstruction: both depths are cut at the higher bed, `h* = max(0, h + b - max(b_l, b_r))`, a flux F is taken
    between the cut states, and each side gets `F + g/2 (h^2 - h*^2) n`. Level water at rest gives `g h^2 / 2 n` on each side,
    which the pressure inside the cell balances to the last digit; depths stay >= 0 for Courant numbers up to 1/2.

    Args:
        left, right: [h, h v_0 .. h v_(dim-1)]; zero depth is dry land.
        bed_left, bed_right: height of the bed at the face on each side.
        gravity: acceleration, positive. scheme: "hllc" or "rusanov". direction: axis of the normal.

    Returns:
        [2, m, ...]: out of the left cell, into the right cell; equal where the bed is continuous.

    Raises:
        ShapeError: shapes that differ. DTypeError: not real and floating. InputError: unknown scheme or direction.

    Source: Audusse, Bouchut, Bristeau, Klein & Perthame, SIAM J. Sci. Comput. 25 (2004) 2050; Toro, Shock-Capturing Methods
    for Free-Surface Shallow Flows (2001).
    """
    a, b = jnp.asarray(left), jnp.asarray(right)
    low, high = jnp.asarray(bed_left), jnp.asarray(bed_right)
    if not all(jnp.issubdtype(x.dtype, jnp.floating) for x in (a, b, low, high)):
        raise DTypeError("shallow_flux: states and beds are real floating numbers", got=(a.dtype, b.dtype, low.dtype))
    if a.shape != b.shape or a.ndim < 1 or a.shape[0] < 2 or not low.shape == high.shape == a.shape[1:]:
        raise ShapeError("shallow_flux: shapes differ", got=(a.shape, b.shape, low.shape, high.shape))
    if scheme not in SCHEMES:
        raise InputError(f"shallow_flux: unknown scheme {scheme!r}", remedy=did_you_mean(scheme, SCHEMES))
    if not 0 <= direction < a.shape[0] - 1:
        raise InputError("shallow_flux: the direction is an axis of the velocity", got=direction)
    g = jnp.asarray(gravity, a.dtype)
    normal = 1 + direction
    top = jnp.maximum(low, high)

    def cut(state, bed):
        depth = jnp.maximum(0.0, state[0] + bed - top)
        velocity = water_velocity(state[0], state[1:])
        cut_state = jnp.concatenate([depth[None], depth * velocity])
        flux = (cut_state * velocity[direction]).at[normal].add(g / 2 * depth * depth)
        return cut_state, flux, velocity, _root(g * depth)

    (q_l, f_l, v_l, c_l), (q_r, f_r, v_r, c_r) = cut(a, low), cut(b, high)
    u_l, u_r = v_l[direction], v_r[direction]
    if scheme == "rusanov":
        speed = jnp.maximum(jnp.abs(u_l) + c_l, jnp.abs(u_r) + c_r)
        flux = (f_l + f_r) / 2 - speed / 2 * (q_r - q_l)
    else:
        # a front on dry land runs at u + 2c
        slow = jnp.where(q_l[0] > 0, jnp.minimum(u_l - c_l, u_r - c_r), u_r - 2 * c_r)
        fast = jnp.where(q_r[0] > 0, jnp.maximum(u_l + c_l, u_r + c_r), u_l + 2 * c_l)
        apart = jnp.where(fast > slow, fast - slow, 1.0)
        flux = (fast * f_l - slow * f_r + slow * fast * (q_r - q_l)) / apart
        flux = jnp.where(slow >= 0, f_l, jnp.where(fast <= 0, f_r, flux))
        carried = flux[0] * jnp.where(flux[0] >= 0, v_l, v_r)  # the contact carries the velocity along the face
        along = jnp.arange(1, a.shape[0]).reshape(-1, *(1,) * (a.ndim - 1)) != normal
        flux = jnp.concatenate([flux[:1], jnp.where(along, carried, flux[1:])])
    into = [
        flux.at[normal].add(g / 2 * (state[0] * state[0] - held[0] * held[0])) for state, held in ((a, q_l), (b, q_r))
    ]
    return jnp.stack(into)
