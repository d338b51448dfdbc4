"""Structures onto the lattice: fill fractions, interface normals, averaged permittivity.

An interface that cuts a cell is taken as a plane through it; its fill fraction is exact for the box of the cell. Across the
interface 1/eps is averaged, along it eps (Farjadpour et al., Opt. Lett. 31 (2006) 2972; Kottke et al., Phys. Rev. E 77
(2008) 036611), which restores second order. All of it is differentiable in every parameter of shape and medium.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import UnsupportedError
from sciax.elec._lattice import Lattice
from sciax.elec._media import Density
from sciax.elec._scene import Scene
from sciax.elec._shapes import norm

_GAUSS = ((-0.7745966692414834, 5 / 18), (0.0, 8 / 18), (0.7745966692414834, 5 / 18))  # three-point rule on [-1, 1]


def fill_fraction(distance, normal, widths):
    """Volume fraction of a box of the given widths behind the plane at signed `distance` from its centre.

    The plane's position relative to a uniform random point is a sum of three uniform variables; two are integrated in
    closed form (a piecewise quadratic), the narrowest by Gauss quadrature.
    """
    half = [jnp.abs(n) * w / 2 for n, w in zip(normal, widths)]
    big = jnp.maximum(jnp.maximum(half[0], half[1]), half[2])
    small = jnp.minimum(jnp.minimum(half[0], half[1]), half[2])
    middle = half[0] + half[1] + half[2] - big - small
    big = jnp.where(big > 0, big, 1.0)
    r = jnp.maximum(middle / big, 3e-3)  # floor: keeps the closed form away from 0/0 at aligned faces
    s = small / big
    square = lambda v: jnp.maximum(v, 0.0) ** 2  # noqa: E731
    total = 0.0
    for node, weight in _GAUSS:
        t = -distance / big - node * s
        f = (square(t + 1 + r) - square(t + 1 - r) - square(t - 1 + r) + square(t - 1 - r)) / (8 * r)
        total = total + weight * f
    return jnp.clip(total, 0.0, 1.0)


class Survey(NamedTuple):
    """Averages at a stack of locations (leading axis)."""

    mean: Any  # <eps>
    inverse: Any  # <1/eps>
    normal: Any  # three arrays, of the sharpest interface in the cell
    sigma: Any
    poles: tuple  # for each structure with poles: its remaining fill fraction
    free: Any  # 0 inside perfect conductors


def _properties(medium, component: int, box, x, y, z):
    if isinstance(medium, Density):
        return medium.sample(box, x, y, z)
    eps = medium.permittivity
    if np.ndim(eps) == 1:
        return eps[component] if component < 3 else (eps[0] + eps[1] + eps[2]) / 3
    return eps


def mode_of(scene: Scene) -> str:
    """Which smoothing applies: "tensor", "diagonal", "mean" or "none".

    Raises:
        UnsupportedError: tensor smoothing asked for where it does not apply.
    """
    media = [scene.background, *(s.medium for s in scene.structures)]
    lossless = all(m.lossless or m.perfect_conductor for m in media)
    isotropic = all(isinstance(m, Density) or np.ndim(m.permittivity) == 0 for m in media)
    if scene.smoothing == "auto":
        return "mean" if not lossless else "tensor" if isotropic else "diagonal"
    if scene.smoothing in ("tensor", "diagonal") and not lossless:
        raise UnsupportedError(
            f"{scene.smoothing} smoothing needs lossless media without poles",
            remedy='smoothing="auto" takes the volume average there, "none" the medium of each point',
        )
    if scene.smoothing == "tensor" and not isotropic:
        raise UnsupportedError("tensor smoothing needs isotropic media", remedy='smoothing="diagonal" or "auto"')
    return scene.smoothing


def survey(scene: Scene, lat: Lattice, kind: str, components: list[int], attribute: str = "permittivity") -> Survey:
    """Averages at E ("e") or H ("h") locations of `components`; 3 stands for the nodes."""
    dtype = jnp.dtype(scene.dtype)
    smooth = scene.smoothing != "none"

    def axis_arrays(which):
        out = []
        for a in range(3):
            rows = []
            for c in components:
                full = (
                    {"coordinate": lat.nodes, "width": lat.width_nodes}[which][a]
                    if c == 3
                    else getattr(lat, which)(kind, c, a)
                )
                rows.append(np.zeros_like(full) if which == "width" and scene.grid.edges[a] is None else full)
            shape = [len(components), 1, 1, 1]
            shape[a + 1] = lat.shape[a]
            out.append(jnp.asarray(np.stack(rows).reshape(shape), dtype))
        return out

    full = (len(components), *lat.shape)
    x, y, z = (jnp.broadcast_to(p, full) for p in axis_arrays("coordinate"))
    widths = axis_arrays("width")

    def constant(medium, box=None):
        if attribute != "permittivity":
            value = getattr(medium, attribute)
            rows = [value[c] if np.ndim(value) == 1 else value for c in components]
        elif isinstance(medium, Density):
            return medium.sample(box, x, y, z)
        else:
            rows = [_properties(medium, c, box, x, y, z) for c in components]
        return jnp.stack([jnp.asarray(r, dtype) for r in rows]).reshape(-1, 1, 1, 1)

    base = jnp.broadcast_to(constant(scene.background), full)
    mean, inverse = base, 1.0 / base
    zero = jnp.zeros(full, dtype)
    normal, sharp, free = (zero, zero, zero), zero, jnp.ones(full, dtype)
    sigma = jnp.broadcast_to(jnp.asarray(scene.background.conductivity, dtype), full)
    fractions: list = [jnp.ones(full, dtype)] if scene.background.poles else []
    for s in scene.structures:
        d, back = jax.vjp(s.shape.distance, x, y, z)
        n = back(jnp.ones_like(d))
        length = norm(*n)
        n = tuple(v / jnp.where(length > 0, length, 1.0) for v in n)
        if s.medium.perfect_conductor:
            free = jnp.where(d < 0, 0.0, free).astype(dtype)
            continue
        free = jnp.where(d < 0, 1.0, free).astype(dtype)
        f = fill_fraction(d, n, widths) if smooth else (d < 0).astype(dtype)
        box = s.shape.bounds() if isinstance(s.medium, Density) else None
        value = constant(s.medium, box)
        mean = (1 - f) * mean + f * value
        inverse = (1 - f) * inverse + f / value
        sigma = (1 - f) * sigma + f * jnp.asarray(s.medium.conductivity, dtype)
        fractions = [(1 - f) * g for g in fractions]
        if s.medium.poles:
            fractions.append(f)
        edge = f * (1 - f)
        sharp = sharp * (1 - f)
        normal = tuple(jnp.where(edge > sharp, a, b) for a, b in zip(n, normal))
        sharp = jnp.maximum(edge, sharp)
    return Survey(mean, inverse, normal, sigma, tuple(fractions), free)
