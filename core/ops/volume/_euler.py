"""Numerical fluxes of the compressible Euler equations between two states of an ideal gas."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import DTypeError, InputError, ShapeError, did_you_mean
from sciax.core.ops._registry import Sample, operator

SCHEMES = ("hllc", "roe", "rusanov")
ENTROPY_FIX = 0.1
"""Acoustic speeds of the Roe flux are kept above this share of |u| + c (Harten 1983)."""


# States are taken apart into rows, and put together once at the end: XLA's fusions compute a stacked array again for every
# slice of it, and three levels of stacks took its CPU compiler minutes in the reverse sweep.


def _split(state: Any, gamma: Any, direction: int):
    """(density, normal velocity, velocity by component, pressure, energy) of conservative states."""
    density, *momentum, energy = jnp.unstack(state)
    velocity = [m / density for m in momentum]
    pressure = (gamma - 1) * (energy - 0.5 * density * _square(velocity))
    return density, velocity[direction], velocity, pressure, energy


def _square(velocity: list[Any]) -> Any:
    return sum(v * v for v in velocity)


def _physical(state, direction: int) -> list[Any]:
    """The flux of one state: [rho u, rho u v + p n, (E + p) u]."""
    density, normal, velocity, pressure, energy = state
    momentum = [density * v * normal for v in velocity]
    momentum[direction] = momentum[direction] + pressure
    return [density * normal, *momentum, (energy + pressure) * normal]


def _conserved(state) -> list[Any]:
    density, _, velocity, _, energy = state
    return [density, *(density * v for v in velocity), energy]


def _averages(left, right, gamma):
    """Roe's averages: density, velocity, enthalpy and speed of sound."""
    root_l, root_r = jnp.sqrt(left[0]), jnp.sqrt(right[0])
    share = root_l / (root_l + root_r)
    velocity = [share * a + (1 - share) * b for a, b in zip(left[2], right[2])]
    enthalpy = share * (left[4] + left[3]) / left[0] + (1 - share) * (right[4] + right[3]) / right[0]
    sound = jnp.sqrt((gamma - 1) * (enthalpy - 0.5 * _square(velocity)))
    return root_l * root_r, velocity, enthalpy, sound


def _hllc(left, right, gamma, direction):
    (rho_l, u_l, _, p_l, _), (rho_r, u_r, _, p_r, _) = left, right
    _, mean, _, sound = _averages(left, right, gamma)
    slow = jnp.minimum(u_l - jnp.sqrt(gamma * p_l / rho_l), mean[direction] - sound)
    fast = jnp.maximum(u_r + jnp.sqrt(gamma * p_r / rho_r), mean[direction] + sound)
    in_l, in_r = rho_l * (slow - u_l), rho_r * (fast - u_r)
    contact = (p_r - p_l + u_l * in_l - u_r * in_r) / (in_l - in_r)

    def star(state, flux, edge, inflow):
        rho, u, v, p, e = state
        scale = inflow / (edge - contact)
        velocity = [contact if k == direction else v[k] for k in range(len(v))]
        energy = e / rho + (contact - u) * (contact + p / inflow)
        behind = [scale, *(scale * part for part in velocity), scale * energy]
        return [f + edge * (b - q) for f, b, q in zip(flux, behind, _conserved(state))]

    flux_l, flux_r = _physical(left, direction), _physical(right, direction)
    star_l, star_r = star(left, flux_l, slow, in_l), star(right, flux_r, fast, in_r)

    def choose(of_l, of_r, behind_l, behind_r):
        inner = jnp.where(contact >= 0, behind_l, behind_r)
        return jnp.where((slow >= 0) | (fast <= 0), jnp.where(slow >= 0, of_l, of_r), inner)

    return [choose(*rows) for rows in zip(flux_l, flux_r, star_l, star_r)]


def _roe(left, right, gamma, direction):
    rho, velocity, enthalpy, sound = _averages(left, right, gamma)
    u = velocity[direction]
    jump_rho, jump_p = right[0] - left[0], right[3] - left[3]
    jump_v = [b - a for a, b in zip(left[2], right[2])]
    jump_u = jump_v[direction]
    floor = ENTROPY_FIX * (jnp.abs(u) + sound)

    def size(speed):
        return jnp.where(jnp.abs(speed) < floor, (speed * speed + floor * floor) / (2 * floor), jnp.abs(speed))

    def acoustic(sign):
        strength = size(u + sign * sound) * (jump_p + sign * rho * sound * jump_u) / (2 * sound * sound)
        moved = [v + sign * sound if k == direction else v for k, v in enumerate(velocity)]
        return [strength * row for row in (jnp.ones_like(u), *moved, enthalpy + sign * u * sound)]

    entropy = jump_rho - jump_p / sound**2
    across = [jnp.zeros_like(u) if k == direction else jump for k, jump in enumerate(jump_v)]
    carried = [
        entropy,
        *(entropy * v + rho * jump for v, jump in zip(velocity, across)),
        entropy * 0.5 * _square(velocity) + rho * sum(v * jump for v, jump in zip(velocity, across)),
    ]
    spread = [a + b + jnp.abs(u) * c for a, b, c in zip(acoustic(-1.0), acoustic(1.0), carried)]
    return [0.5 * (a + b - s) for a, b, s in zip(_physical(left, direction), _physical(right, direction), spread)]


def _rusanov(left, right, gamma, direction):
    speed = jnp.maximum(*(jnp.abs(s[1]) + jnp.sqrt(gamma * s[3] / s[0]) for s in (left, right)))
    fluxes = zip(_physical(left, direction), _physical(right, direction))
    jumps = zip(_conserved(left), _conserved(right))
    return [0.5 * (a + b) - 0.5 * speed * (q - p) for (a, b), (p, q) in zip(fluxes, jumps)]


# Oracle: face by face in NumPy; a function of Roe's matrix instead of waves.


def _flux_oracle(left: Any, right: Any, gamma: Any, *, scheme: str = "hllc", direction: int = 0) -> np.ndarray:
    left, right, gamma = np.asarray(left), np.asarray(right), float(gamma)
    pairs = zip(left.reshape(len(left), -1).T, right.reshape(len(right), -1).T)
    faces = [_one_face(a, b, gamma, scheme, direction) for a, b in pairs]
    return np.reshape(faces, (-1, len(left))).T.reshape(left.shape)


def _flux_of(q: np.ndarray, gamma: float, d: int) -> np.ndarray:
    p = (gamma - 1) * (q[-1] - q[1:-1] @ q[1:-1] / q[0] / 2)
    out = q * q[1 + d] / q[0]
    out[1 + d] += p
    out[-1] += p * q[1 + d] / q[0]
    return out


def _one_face(a: np.ndarray, b: np.ndarray, gamma: float, scheme: str, d: int) -> np.ndarray:
    sides = []
    for q in (a, b):
        p = (gamma - 1) * (q[-1] - q[1:-1] @ q[1:-1] / q[0] / 2)
        sides.append((q[1:-1] / q[0], p, np.sqrt(gamma * p / q[0]), (q[-1] + p) / q[0]))
    (va, pa, ca, ha), (vb, pb, cb, hb) = sides
    fa, fb = _flux_of(a, gamma, d), _flux_of(b, gamma, d)
    if scheme == "rusanov":
        return (fa + fb) / 2 - max(abs(va[d]) + ca, abs(vb[d]) + cb) * (b - a) / 2
    wa, wb = np.sqrt(a[0]), np.sqrt(b[0])
    v, h = (wa * va + wb * vb) / (wa + wb), (wa * ha + wb * hb) / (wa + wb)
    c = np.sqrt((gamma - 1) * (h - v @ v / 2))
    if scheme == "roe":
        k, n = gamma - 1, len(v)
        matrix = np.zeros((n + 2, n + 2))  # the Jacobian of the flux at the averaged velocity and enthalpy
        matrix[0, 1 + d] = 1
        for i in range(n):
            matrix[1 + i, 0] = -v[d] * v[i] + (k * (v @ v) / 2 if i == d else 0)
            matrix[1 + i, 1 + i] += v[d]
            matrix[1 + i, 1 + d] += v[i]
            if i == d:
                matrix[1 + i, 1 : 1 + n] -= k * v
                matrix[1 + i, -1] = k
        matrix[-1, 0] = v[d] * (k * (v @ v) / 2 - h)
        matrix[-1, 1 : 1 + n] = -k * v * v[d]
        matrix[-1, 1 + d] += h
        matrix[-1, -1] = gamma * v[d]
        speeds = v[d] + c * np.array([-1.0, 0.0, 1.0])
        floor = ENTROPY_FIX * (abs(v[d]) + c)
        fixed = (speeds**2 + floor**2) / (2 * floor)
        sizes = np.where((np.abs(speeds) < floor) & (np.arange(3) != 1), fixed, np.abs(speeds))
        # Sylvester's formula: no eigenvectors, of which the middle value has several
        spread, eye = np.zeros_like(matrix), np.eye(n + 2)
        for i in range(3):
            j, m = (x for x in range(3) if x != i)
            part = (matrix - speeds[j] * eye) @ (matrix - speeds[m] * eye)
            spread += sizes[i] * part / ((speeds[i] - speeds[j]) * (speeds[i] - speeds[m]))
        return (fa + fb - spread @ (b - a)) / 2
    slow, fast = min(va[d] - ca, v[d] - c), max(vb[d] + cb, v[d] + c)
    if slow >= 0:
        return fa
    if fast <= 0:
        return fb
    middle = (pb - pa + a[1 + d] * (slow - va[d]) - b[1 + d] * (fast - vb[d])) / (
        a[0] * (slow - va[d]) - b[0] * (fast - vb[d])
    )
    q, vel, p, edge, flux = (a, va, pa, slow, fa) if middle >= 0 else (b, vb, pb, fast, fb)
    # Toro's third form: the star state from the pressure behind the wave
    behind = p + q[0] * (edge - vel[d]) * (middle - vel[d])
    direction = np.zeros_like(q)
    direction[1 + d], direction[-1] = 1.0, middle
    return (middle * (edge * q - flux) + edge * behind * direction) / (edge - middle)


def _states(rng: np.random.Generator, dim: int, *shape: int) -> np.ndarray:
    density, pressure = rng.uniform(0.5, 2, shape), rng.uniform(0.5, 2, shape)
    velocity = rng.uniform(-0.6, 0.6, (dim, *shape))
    energy = pressure / 0.4 + density * (velocity**2).sum(axis=0) / 2
    return np.concatenate([density[None], density * velocity, energy[None]])


def _flux_samples(rng: np.random.Generator) -> list[Sample]:
    # few shapes and options, for each is a compilation: three faces, one of them supersonic
    gamma = np.asarray(1.4)
    plane = _states(rng, 2, 3), _states(rng, 2, 3)
    for q in plane:
        q[-1, 2] += q[1, 2] * 5 + q[0, 2] * 12.5
        q[1, 2] += 5 * q[0, 2]
    scale = np.array([1e3, 1e5, 1e5, 1e7])[:, None]
    return [
        Sample("ordinary", (*plane, gamma)),
        Sample("badly scaled", (plane[0] * scale, plane[1] * scale, gamma)),
        Sample("second direction, Roe", (*plane, gamma), {"scheme": "roe", "direction": 1}),
        Sample("single face, in one dimension", (_states(rng, 1), _states(rng, 1), gamma), {"scheme": "rusanov"}),
        Sample("edge: equal states", (plane[0], plane[0], gamma), smooth=False),
    ]


@operator(
    "volume.euler_flux",
    oracle=_flux_oracle,
    samples=_flux_samples,
    flops=lambda left, *_, **__: 25.0 * np.size(left),
    unsupported={"complex": "wave speeds are compared, which complex numbers do not allow"},
)
def euler_flux(
    left: Float[Array, "m *faces"],
    right: Float[Array, "m *faces"],
    gamma: float | Float[Array, ""],
    *,
    scheme: str = "hllc",
    direction: int = 0,
) -> Float[Array, "m *faces"]:
    """Flux of mass, momentum and energy through faces between two states of an ideal gas.

    States are conservative, [rho, rho v_0 .. rho v_(dim-1), E] with m = dim + 2 and E = p/(gamma - 1) + rho |v|^2 / 2, density
    and pressure positive (not checked here: a solver checks once a step). Consistent: two equal states give their own flux.

    Args:
        gamma: ratio of heat capacities. direction: axis of the normal, from left to right.
        scheme: "hllc" (contacts kept; wave speeds of Batten et al.), "roe" (with Harten's entropy fix on acoustic waves), or
            "rusanov" (the most diffusive and the most robust).

    Raises:
        ShapeError: states of different shape, or fewer than three components. DTypeError: not real and floating.
        InputError: unknown scheme; a direction beyond the dimension.

    Source: Toro, Spruce & Speares, Shock Waves 4 (1994) 25; Batten, Clarke, Lambert & Causon, SIAM J. Sci. Comput. 18 (1997)
    1553; Roe, J. Comput. Phys. 43 (1981) 357; Harten, J. Comput. Phys. 49 (1983) 357; Rusanov (1961).
    """
    a, b = jnp.asarray(left), jnp.asarray(right)
    if not (jnp.issubdtype(a.dtype, jnp.floating) and jnp.issubdtype(b.dtype, jnp.floating)):
        raise DTypeError("euler_flux: states are real floating numbers", got=(a.dtype, b.dtype))
    if a.shape != b.shape or a.ndim < 1 or a.shape[0] < 3:
        raise ShapeError("euler_flux: two states of dim + 2 components along the leading axis", got=(a.shape, b.shape))
    if scheme not in SCHEMES:
        raise InputError(f"euler_flux: unknown scheme {scheme!r}", remedy=did_you_mean(scheme, SCHEMES))
    if not 0 <= direction < a.shape[0] - 2:
        raise InputError("euler_flux: the direction is an axis of the velocity", got=direction)
    ratio = jnp.asarray(gamma, a.dtype)
    function = {"hllc": _hllc, "roe": _roe, "rusanov": _rusanov}[scheme]
    return jnp.stack(function(_split(a, ratio, direction), _split(b, ratio, direction), ratio, direction))
