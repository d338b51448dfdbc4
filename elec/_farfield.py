"""Near field to far field: what a closed surface of recorded fields radiates.

Surface equivalence: J = n x H and M = E x n on the box radiate what is inside it, into the homogeneous background outside,

    E_theta = i k e^{ikr}/(4 pi r) (L_phi + Z N_theta),  E_phi = -i k e^{ikr}/(4 pi r) (L_theta - Z N_phi),
    N = int J e^{-i k r^.r'} dA,  L = int M e^{-i k r^.r'} dA                            (time dependence e^{-i w t})

Source: C. A. Balanis, Antenna Theory, 3rd ed. (2005), section 12.2; A. Taflove, S. C. Hagness, Computational Electrodynamics,
3rd ed. (2005), chapter 8. Two-dimensional: i k e^{ikr}/(4 pi r) becomes i k e^{i k r + i pi/4} / sqrt(8 pi k r).
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, ShapeError, UnsupportedError
from sciax.core.ops.yee import radiate
from sciax.elec._checks import is_traced, one_of
from sciax.elec._constants import AXES, C0, Z0
from sciax.elec._monitors import FluxMonitor


@dataclass(frozen=True, eq=False)
class FarFieldMonitor(FluxMonitor):
    """Fields on a closed box, for the far field of all that is inside it; also a flux monitor of that box.

    Everything that scatters or radiates, and no source of a plane wave's total field, lies inside; outside is only the
    background. Two-dimensional scenes are x-y scenes.

    Attributes:
        frequencies: Hz.
        center, size: box (m), clear of the absorbers.
    """

    normal: str = "box"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.normal, ("box",), f"normal of far-field monitor {self.name!r}")


def background_of(scene: Any, who: str) -> tuple[float, float]:
    """(index, impedance in ohm) of the background, which must carry waves without loss.

    Raises:
        UnsupportedError: lossy, dispersive or anisotropic background; grids that have no far field.
    """
    medium = scene.background
    plain = np.ndim(medium.permittivity) == 0 and np.ndim(medium.permeability) == 0 and medium.lossless
    if not plain:
        raise UnsupportedError(
            f"{who}: far fields need an isotropic, lossless background", remedy="put the loss into a structure"
        )
    if scene.grid.active_axes not in ((0, 1), (0, 1, 2)):
        raise UnsupportedError(
            f"{who}: far fields are computed in x-y and x-y-z scenes", got=f"axes {scene.grid.active_axes}"
        )
    eps, mu = float(np.asarray(medium.permittivity)), float(np.asarray(medium.permeability))
    return float(np.sqrt(eps * mu)), Z0 * float(np.sqrt(mu / eps))


def check_box(scene: Any, monitor: FarFieldMonitor) -> None:
    """The box is closed and lies in the background.

    Raises:
        InputError: it touches an absorber, a wall, or a structure passes through it.
    """
    background_of(scene, f"monitor {monitor.name!r}")
    for a in scene.grid.active_axes:
        lo, hi = scene.interior(a)
        size = np.inf if monitor.size[a] is None else monitor.size[a]
        low, high = monitor.center[a] - size / 2, monitor.center[a] + size / 2
        edge = scene.grid.steps(a).max()
        if low < lo + edge or high > hi - edge:
            raise InputError(
                f"far-field monitor {monitor.name!r}: its box must close around the scene, inside the absorbers",
                got=f"{AXES[a]} from {low:.4g} to {high:.4g} m",
                expected=f"within {lo + edge:.4g} to {hi - edge:.4g} m",
                remedy="give it a size; mirror planes and periodic faces cannot be part of the box",
            )
    for s in scene.structures:
        try:
            box = s.shape.bounds()
        except (TypeError, ValueError):  # traced parameters have no concrete bounds
            continue
        for a in scene.grid.active_axes:
            half = monitor.size[a] / 2
            if box[a][0] < monitor.center[a] - half or box[a][1] > monitor.center[a] + half:
                raise InputError(
                    f"far-field monitor {monitor.name!r}: structure {s.name!r} reaches out of its box",
                    got=f"{AXES[a]} from {box[a][0]:.4g} to {box[a][1]:.4g} m",
                    remedy="a larger box: outside of it only the background may be",
                )


def far_field(scene: Any, faces: tuple, raw: list, frequencies: np.ndarray, theta: Any, phi: Any) -> tuple[Any, Any]:
    """(E_theta, E_phi), each (frequency, *directions), without the factor e^{ikr}/r, or e^{ikr}/sqrt(r) in 2-D."""
    if np.shape(theta) != np.shape(phi):
        raise ShapeError("theta and phi have one shape", got=(np.shape(theta), np.shape(phi)))
    shape = np.shape(theta)
    index, impedance = background_of(scene, "far field")
    flat = scene.grid.edges[2] is None
    if flat and not is_traced(theta) and not np.allclose(np.asarray(theta, float), np.pi / 2):
        raise InputError("directions of a two-dimensional scene lie in its plane", expected="theta = pi/2")
    theta, phi = jnp.asarray(theta), jnp.asarray(phi)
    st, ct, sp, cp = jnp.sin(theta), jnp.cos(theta), jnp.sin(phi), jnp.cos(phi)
    st, ct, sp, cp = (v.reshape(-1) for v in (st, ct, sp, cp))
    towards = (st * cp, st * sp, ct)
    out_theta, out_phi = [], []
    for m, f in enumerate(frequencies):
        k = 2 * np.pi * float(f) * index / C0
        currents = [0.0] * 3  # N
        magnetic = [0.0] * 3  # L
        for face, values in zip(faces, raw):
            for name, field in face.native(values).items():
                axis, c = face.axis, "xyz".index(name[1])
                u, v = (axis + 1) % 3, (axis + 2) % 3
                at, area = face.points(name), face.weight(name)
                real = jnp.real(field).dtype
                plane = jnp.transpose((field[m] * jnp.asarray(area, real)), (axis, u, v))[0]
                wave = [jnp.asarray(k, real) * d.astype(real) for d in towards]
                total = radiate(plane, jnp.asarray(at[u], real), jnp.asarray(at[v], real), wave[u], wave[v])
                total = total * jnp.exp(-1j * wave[axis] * jnp.asarray(at[axis][0], real))
                # n x c is +v for c = u and -u for c = v; J = n x H, M = E x n = -n x E
                target, sign = (v, 1.0) if c == u else (u, -1.0)
                if name[0] == "h":
                    currents[target] = currents[target] + face.sign * sign * total
                else:
                    # E acts from the two planes whose mean H is
                    half = jnp.cos(wave[axis] * jnp.asarray(face.half, real))
                    magnetic[target] = magnetic[target] - face.sign * sign * half * total
        n, l = currents, magnetic
        n_theta, l_theta = (w[0] * ct * cp + w[1] * ct * sp - w[2] * st for w in (n, l))
        n_phi, l_phi = (w[1] * cp - w[0] * sp for w in (n, l))
        factor = 1j * k / (4 * np.pi) if not flat else 1j * k * np.exp(0.25j * np.pi) / np.sqrt(8 * np.pi * k)
        out_theta.append((factor * (l_phi + impedance * n_theta)).reshape(shape))
        out_phi.append((-factor * (l_theta - impedance * n_phi)).reshape(shape))
    return jnp.stack(out_theta), jnp.stack(out_phi)
