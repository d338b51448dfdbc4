"""Guided modes: source and monitor; solver of two-dimensional scenes.

The mode solves the difference equations of the grid themselves: with w^ = 2 sin(w dt/2)/(c dt) and k^ = 2 sin(k dx/2)/dx,
(w^2 eps - K) e = k^2 e across the guide, K the second difference. A source made of it launches to one side up to the width of
its band, and what a monitor projects on it is not blurred by numerical dispersion.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg

from sciax.core.errors import InputError, UnsupportedError
from sciax.elec._checks import finite, one_of, vector
from sciax.elec._constants import AXES, C0, Z0
from sciax.elec._monitors import _frequencies


class Mode(NamedTuple):
    """One guided mode.

    Attributes:
        index: effective index.
        e: electric field (V/m) at the points of the profile, unit power per metre: sum e h d = 1 W/m.
        h: transverse magnetic field (A/m), positive for positive e.
        wavenumber: k along the guide (rad/m), of the grid.
    """

    index: float
    e: np.ndarray
    h: np.ndarray
    wavenumber: float


def slab_modes(eps, spacing, frequency: float, *, dt: float = 0.0, along: float = 0.0, count: int = 1) -> list[Mode]:
    """Modes with the electric field along the slab (TE, Ez of a 2-D scene), by difference equations on points across.

    Args:
        eps: relative permittivity at the points.
        spacing: their distance (m), one number.
        frequency: Hz.
        dt, along: time step and spacing along the guide of the FDTD grid that will carry the mode; 0: the continuous ones.
        count: how many, from the highest index down.

    Raises:
        InputError: fewer guided modes than asked for.
    """
    eps = np.asarray(eps, float)
    n = eps.size
    w = 2 * np.pi * frequency
    w_hat = (2 / dt * np.sin(w * dt / 2) if dt else w) / C0
    diagonal = w_hat**2 * eps - 2 / spacing**2
    values, vectors = linalg.eigh_tridiagonal(diagonal, np.full(n - 1, 1 / spacing**2))
    order = np.argsort(-values)[:count]
    cladding = float(max(eps[0], eps[-1]))
    modes = []
    for i in order:
        squared = values[i]
        if squared <= cladding * w_hat**2 * (1 + 1e-9):
            raise InputError(
                f"the cross-section guides {len(modes)} modes, {count} are asked for",
                got=f"index squared {squared / w_hat**2:.4g} beside {cladding:.4g} of the cladding",
                remedy="a wider core, a higher frequency, or a lower order",
            )
        k_hat = np.sqrt(squared)
        k = 2 / along * np.arcsin(k_hat * along / 2) if along else k_hat
        e = vectors[:, i] * np.sign(vectors[np.argmax(np.abs(vectors[:, i])), i])
        h = k_hat / w_hat * e / Z0
        scale = 1 / np.sqrt(np.sum(e * h) * spacing)
        modes.append(Mode(float(k * C0 / w), e * scale, h * scale, float(k)))
    return modes


def _span(scene: Any, axis: int, center, size) -> tuple[int, int]:
    """First and last node across the guide."""
    nodes = scene.grid.edges[axis]
    if size is None:
        lo, hi = scene.interior(axis)
    else:
        lo, hi = center - size / 2, center + size / 2
    inside = np.nonzero((nodes[:-1] >= lo) & (nodes[:-1] <= hi))[0]
    return int(inside[0]), int(inside[-1]) + 1


_GAINS: WeakKeyDictionary[Any, np.ndarray] = WeakKeyDictionary()  # of a scene, for all its mode sources and monitors


def _profile(scene: Any, lat: Any, axis: int, node: int, first: int, last: int) -> np.ndarray:
    """Permittivity that the grid carries at Ez points on a line across `axis`."""
    from sciax.elec._prepare import coefficients

    gain = _GAINS.get(scene)
    if gain is None:
        # One program, compiled here even inside someone's trace; piece by piece it would be a hundred small ones.
        program = jax.jit(lambda: coefficients(scene, scene, lat).cb[2]).lower().compile()
        gain = np.broadcast_to(np.asarray(program()), lat.shape)
        _GAINS[scene] = gain
    line = gain[node, first:last, 0] if axis == 0 else gain[first:last, node, 0]
    if np.any(line <= 0):
        raise InputError("a mode's cross-section runs through a conductor")
    return C0 * scene.dt / line


def _modes(
    scene: Any, lat: Any, axis: int, node: int, first: int, last: int, frequency: float, count: int
) -> list[Mode]:
    d = scene.grid.steps(1 - axis)[first:last]
    if np.ptp(d) > 1e-6 * d.max():
        raise UnsupportedError("modes are solved on equal cells across the guide", remedy="keep the grid uniform there")
    along = float(scene.grid.steps(axis)[min(node, scene.grid.cells[axis] - 1)])
    eps = _profile(scene, lat, axis, node, first, last)
    return slab_modes(eps, float(d[0]), frequency, dt=scene.dt, along=along, count=count)


def _two_dimensional(scene: Any, name: str, axis: int) -> None:
    if scene.grid.active_axes != (0, 1):
        raise UnsupportedError(
            f"{name!r}: modes are offered in x-y and x-y-z scenes", got=f"axes {scene.grid.active_axes}"
        )
    if axis == 2:
        raise InputError(f"{name!r}: guides of a two-dimensional scene lie along x or y", got="z")


@dataclass(frozen=True)
class ModeSource:
    """Launches a guided mode to one side: Ez in two dimensions, the full vector in three.

    Attributes:
        direction: "+x" ... "-z".
        center, size: middle of the line or rectangle (m), and its length across the guide (None: between the absorbers;
            three numbers along x, y, z in three dimensions).
        waveform: signal; its `frequency` is where the mode is solved and where nothing goes backwards.
        order: 0 for the fundamental mode.
        amplitude: square root of the power (W; W/m in two dimensions) at the peak of a unit waveform.

    The mode belongs to the scene as it is stated: parameters that change the guide under the source do not change it.
    """

    name: str
    direction: str
    center: Any
    waveform: Callable
    size: Any = None
    order: int = 0
    amplitude: Any = 1.0
    component: str = "ez"

    def __post_init__(self) -> None:
        one_of(self.direction, ("+x", "-x", "+y", "-y", "+z", "-z"), "direction")
        one_of(self.component, ("ez",), "component")
        object.__setattr__(self, "center", vector(self.center, f"center of source {self.name!r}"))
        finite(self.amplitude, f"amplitude of source {self.name!r}")
        if not hasattr(self.waveform, "frequency"):
            raise InputError(
                f"source {self.name!r}: its waveform has no frequency to solve the mode at",
                got=type(self.waveform).__name__,
            )

    @property
    def position(self) -> tuple:
        return self.center

    def mode(self, scene: Any, lat: Any) -> Mode:
        axis = AXES.index(self.direction[1])
        first, last = _span(scene, 1 - axis, self.center[1 - axis], self.size)
        node = int(np.argmin(np.abs(scene.grid.edges[axis] - self.center[axis])))
        return _modes(scene, lat, axis, node, first, last, float(self.waveform.frequency), self.order + 1)[self.order]

    def patches(self, static: "ModeSource", lat: Any, k: Any, scene: Any, concrete: Any):
        """Surface currents of the mode on one grid plane: see the plane wave's box, of which this is one face."""
        from sciax.elec._prepare import Patch, gain_at

        if len(concrete.grid.active_axes) == 3:
            from sciax.elec._guides import mode_patches

            return mode_patches(self, static, lat, k, concrete)
        _two_dimensional(concrete, self.name, AXES.index(static.direction[1]))
        axis, forward = AXES.index(static.direction[1]), static.direction[0] == "+"
        u = 1 - axis
        first, last = _span(concrete, u, static.center[u], static.size)
        node = int(np.argmin(np.abs(concrete.grid.edges[axis] - static.center[axis])))
        mode = static.mode(concrete, lat)
        dtype, dt = jnp.dtype(concrete.dtype), concrete.dt
        lay = (1, -1, 1) if axis == 0 else (-1, 1, 1)
        half = node - 1 if forward else node
        g_e = -1.0 if (axis + 1) % 3 == 2 else 1.0
        g_h = -1.0 if (axis + 1) % 3 == u else 1.0
        side = 1.0 if forward else -1.0
        h_in = g_h * side * mode.h * Z0
        patches, tables = [], []
        n = np.arange(concrete.steps)
        later = (
            float(concrete.grid.steps(axis)[half])
            / 2
            * mode.wavenumber
            / (2 * np.pi * float(static.waveform.frequency))
        )
        for index, at, factor, field, t in (
            (2, node, -side * g_e * lat.inv_h[axis][node], h_in, (n + 0.5) * dt + later),
            (3 + u, half, side * g_h * lat.inv_e[axis][half], mode.e, n * dt),
        ):
            start, size = [0, 0, 0], [1, 1, 1]
            start[axis], start[u], size[u] = at, first, last - first
            gain = jnp.broadcast_to(gain_at(k, lat, index, start, size), tuple(size))
            profile = jnp.asarray((factor * field).reshape(lay), dtype) * gain
            patches.append(Patch(index, (start[0], start[1], start[2]), profile))
            tables.append(
                (jnp.asarray(self.waveform(t), dtype) * jnp.asarray(self.amplitude, dtype)).reshape(-1, 1, 1, 1)
            )
        return patches, tables


@dataclass(frozen=True, eq=False)
class ModeMonitor:
    """Amplitudes of guided modes that pass a line (Ez) or a rectangle, both ways.

    |amplitude|^2 is power (W; W/m in two dimensions) of the spectra.

    Attributes:
        normal: "x", "y" or "z", the guide's direction; forward is towards larger coordinates.
        center, size: as `ModeSource`.
        orders: modes.
    """

    name: str
    frequencies: Any
    center: Any
    normal: str = "x"
    size: Any = None
    orders: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequencies", _frequencies(self.frequencies, self.name))
        object.__setattr__(self, "center", vector(self.center, f"center of monitor {self.name!r}"))
        one_of(self.normal, AXES, "normal")
        object.__setattr__(self, "orders", tuple(self.orders))

    @property
    def position(self) -> tuple:
        return self.center


class ModePlan:
    """A monitor's surface and the modes on it, solved once for the scene as it is stated."""

    def __init__(self, scene: Any, lat: Any, monitor: ModeMonitor):
        from sciax.elec._record import surface

        _two_dimensional(scene, monitor.name, AXES.index(monitor.normal))
        axis = AXES.index(monitor.normal)
        u = 1 - axis
        first, last = _span(scene, u, monitor.center[u], monitor.size)
        node = int(np.argmin(np.abs(scene.grid.edges[axis] - monitor.center[axis])))
        start, stop = [0, 0, 0], [1, 1, 1]
        start[u], stop[u] = first, last - 1
        self.face = surface(scene, lat, monitor.frequencies, axis, node, 1.0, start, stop)
        self.blocks = self.face.blocks
        self.axis, self.u = axis, u
        modes = [
            _modes(scene, lat, axis, node, first, last, float(f), max(monitor.orders) + 1) for f in monitor.frequencies
        ]
        d = scene.grid.steps(u)[first]
        pick = [[row[o] for o in monitor.orders] for row in modes]
        e = np.array([[m.e for m in row] for row in pick])
        # H of the surface is the mean of two planes half a cell away: its mode carries cos(k dx / 2)
        along = scene.grid.steps(axis)[min(node, scene.grid.cells[axis] - 1)]
        h = np.array([[m.h * np.cos(m.wavenumber * along / 2) for m in row] for row in pick])
        scale = 1 / np.sqrt(np.sum(e * h, axis=-1, keepdims=True) * d)
        self.e, self.h, self.d = e * scale, h * scale, float(d)
        self.sign = -1.0 if (axis + 1) % 3 == u else 1.0
        self.index = np.array([[m.index for m in row] for row in pick])

    def amplitudes(self, raw: dict):
        """(forward, backward), each (frequency, order)."""
        t = self.face.native(raw)
        shape = (self.e.shape[0], 1, self.e.shape[2])
        e, h = t["ez"].reshape(shape), self.sign * t["h" + AXES[self.u]].reshape(shape)
        dtype = jnp.real(e).dtype
        from_e = jnp.sum(e * jnp.asarray(self.h * self.d, dtype), axis=-1)
        from_h = jnp.sum(h * jnp.asarray(self.e * self.d, dtype), axis=-1)
        return 0.5 * (from_e + from_h), 0.5 * (from_e - from_h)
