"""Guided modes of three-dimensional scenes: where they lie on the lattice, source, monitor."""

from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, UnsupportedError
from sciax.elec._constants import AXES, C0, Z0
from sciax.elec._eigenmodes import Section, VectorMode, vector_modes

_COEFFICIENTS: WeakKeyDictionary[Any, tuple] = WeakKeyDictionary()  # of a scene, for all its mode sources and monitors


class Window:
    """Rectangle of nodes on which modes are solved: axis along, first and one past the last node across."""

    def __init__(self, scene: Any, lat: Any, axis: int, center, size: Any, who: str):
        self.scene, self.lattice, self.axis = scene, lat, axis
        self.across = ((axis + 1) % 3, (axis + 2) % 3)
        self.node = int(np.argmin(np.abs(scene.grid.edges[axis] - center[axis])))
        self.along = float(scene.grid.steps(axis)[min(self.node, scene.grid.cells[axis] - 1)])
        sizes = tuple(size) if isinstance(size, tuple | list) else (size,) * 3
        if len(sizes) != 3:
            raise InputError(f"{who}: a size has one number, or three along x, y, z", got=size)
        self.first, self.last = [], []
        for a in self.across:
            nodes = lat.nodes[a]
            lo, hi = scene.interior(a) if sizes[a] is None else (center[a] - sizes[a] / 2, center[a] + sizes[a] / 2)
            tiny = 1e-6 * float(scene.grid.steps(a).min())
            inside = np.nonzero((nodes >= lo - tiny) & (nodes <= hi + tiny))[0]
            if inside.size < 4:
                raise InputError(f"{who}: its cross-section has fewer than four cells along {AXES[a]}", got=sizes[a])
            self.first.append(int(inside[0]))
            self.last.append(int(inside[-1]) + 1)

    def cut(self, array: np.ndarray) -> np.ndarray:
        """The cross-section (u, v) of an array of the whole lattice."""
        plane = np.take(array, self.node, axis=self.axis)
        if self.axis == 1:  # u = z, v = x
            plane = plane.T
        return plane[self.first[0] : self.last[0], self.first[1] : self.last[1]]

    def section(self) -> Section:
        k = _COEFFICIENTS.get(self.scene)
        if k is None:
            from sciax.elec._prepare import coefficients

            program = jax.jit(lambda: coefficients(self.scene, self.scene, self.lattice)).lower().compile()
            found = program()
            k = ([np.broadcast_to(np.asarray(c), self.lattice.shape) for c in found.cb], found.offdiagonal)
            if found.poles or any(c is not None for c in found.ca):
                raise UnsupportedError(
                    "modes are solved in lossless media without poles", remedy="keep loss and poles away from the guide"
                )
            _COEFFICIENTS[self.scene] = k
        cdt = C0 * self.scene.dt
        u, v = self.across
        with np.errstate(divide="ignore"):
            eps = tuple(cdt / self.cut(np.asarray(k[0][a], float)) for a in (u, v, self.axis))
        entry = k[1][u + v - 1]
        mixed = None if entry is None else self.cut(np.broadcast_to(np.asarray(entry, float), self.lattice.shape)) / cdt
        cuts = [slice(f, n) for f, n in zip(self.first, self.last)]
        inv_e, inv_h = (
            tuple(inv[a][c] for a, c in zip(self.across, cuts)) for inv in (self.lattice.inv_e, self.lattice.inv_h)
        )
        faces = self.scene.boundaries.faces
        mirror = [f == 0 and faces[a][0] == "pmc" for f, a in zip(self.first, self.across)]
        return Section(eps, inv_e, inv_h, mixed, (mirror[0], mirror[1]))

    def modes(self, frequency: float, count: int) -> list[VectorMode]:
        return vector_modes(self.section(), frequency, dt=self.scene.dt, along=self.along, count=count)

    def lay(self, plane):
        """An array (u, v) as one plane of the lattice."""
        plane = jnp.asarray(plane)
        plane = plane.T if self.axis == 1 else plane
        return jnp.expand_dims(plane, self.axis)

    def box(self, index: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        start, size = [0, 0, 0], [1, 1, 1]
        start[self.axis] = index
        for a, f, n in zip(self.across, self.first, self.last):
            start[a], size[a] = f, n - f
        return (start[0], start[1], start[2]), (size[0], size[1], size[2])


def mode_patches(source: Any, static: Any, lat: Any, k: Any, concrete: Any):
    """Surface currents of a mode on one grid plane: a face of the box of a total field."""
    from sciax.elec._prepare import Patch, gain_at

    axis, forward = AXES.index(static.direction[1]), static.direction[0] == "+"
    window = Window(concrete, lat, axis, static.center, static.size, f"source {static.name!r}")
    frequency = float(static.waveform.frequency)
    mode = window.modes(frequency, static.order + 1)[static.order]
    dtype, dt = jnp.dtype(concrete.dtype), concrete.dt
    node, half, side = window.node, window.node - (1 if forward else 0), 1.0 if forward else -1.0
    u, v = window.across
    n = np.arange(concrete.steps)
    later = float(concrete.grid.steps(axis)[half]) / 2 * mode.wavenumber / (2 * np.pi * frequency)
    patches, tables = [], []

    def add(index: int, at: int, profile, time) -> None:
        start, _ = window.box(at)
        patches.append(Patch(index, start, profile.astype(dtype)))
        rows = jnp.asarray(source.waveform(time), dtype) * jnp.asarray(source.amplitude, dtype)
        tables.append(rows.reshape(-1, 1, 1, 1))

    start, size = window.box(node)
    # curl of the incident H that the other side does not contain: E_u takes H_v, E_v takes H_u
    curl = {
        u: jnp.asarray(side * lat.inv_h[axis][node] * side * mode.h[1] * Z0, dtype),
        v: jnp.asarray(-side * lat.inv_h[axis][node] * side * mode.h[0] * Z0, dtype),
    }
    for to in (u, v):
        total = window.lay(curl[to]) * jnp.broadcast_to(gain_at(k, lat, to, start, size), size)
        entry = k.offdiagonal[u + v - 1]
        if entry is not None:
            other = v if to == u else u
            cut = tuple(slice(s, s + m) for s, m in zip(start, size))
            shared = _mean(window.lay(curl[other]), other, 1) * jnp.broadcast_to(entry, lat.shape)[cut]
            total = total + _mean(shared, to, -1)
        add(to, node, total, (n + 0.5) * dt + later)
    start, size = window.box(half)
    for to, field, sign in ((u, mode.e[1], 1.0), (v, mode.e[0], -1.0)):
        factor = jnp.asarray(-side * sign * lat.inv_e[axis][half] * field, dtype)
        add(3 + to, half, window.lay(factor) * jnp.broadcast_to(gain_at(k, lat, 3 + to, start, size), size), n * dt)
    return patches, tables


def _mean(a, axis: int, offset: int):
    """Mean of neighbours as the off-diagonal tensor takes it; fields beyond the window are zero."""
    from sciax.core.ops.yee._curl import shift

    return 0.5 * (a + shift(a, axis, offset))


class VectorModePlan:
    """A mode monitor of a three-dimensional scene, its modes solved once for the scene as it is stated."""

    def __init__(self, scene: Any, lat: Any, monitor: Any):
        from sciax.elec._record import surface

        axis = AXES.index(monitor.normal)
        window = Window(scene, lat, axis, monitor.center, monitor.size, f"monitor {monitor.name!r}")
        start, stop = [0, 0, 0], [1, 1, 1]
        for a, f, n in zip(window.across, window.first, window.last):
            start[a], stop[a] = f, n - 1
        self.face = surface(scene, lat, monitor.frequencies, axis, window.node, 1.0, start, stop)
        self.blocks, self.window = self.face.blocks, window
        count = max(monitor.orders) + 1
        self.modes = [[window.modes(float(f), count)[o] for o in monitor.orders] for f in monitor.frequencies]
        self.index = np.array([[m.index for m in row] for row in self.modes])

    def amplitudes(self, raw: dict):
        """(forward, backward), each (frequency, order), by the overlap with both fields of a mode."""
        t, w = self.face.native(raw), self.window
        u, v = (AXES[a] for a in w.across)
        real = jnp.real(t["e" + u]).dtype
        area_u, area_v = (self.face.weight("e" + c) for c in (u, v))

        def overlap(e_u, e_v, h_u, h_v):
            return jnp.sum(e_u * h_v * jnp.asarray(area_u, real)) - jnp.sum(e_v * h_u * jnp.asarray(area_v, real))

        rows = []
        for m, row in enumerate(self.modes):
            # the surface ends half a cell earlier along u for E_u (H_v), along v for E_v (H_u)
            nu, nv = w.last[0] - w.first[0], w.last[1] - w.first[1]
            fit = {("e", u): (nu - 1, nv), ("h", v): (nu - 1, nv), ("e", v): (nu, nv - 1), ("h", u): (nu, nv - 1)}
            field = {key: t[key[0] + key[1]][m] for key in fit}
            found = []
            for mode in row:
                # H of the surface is the mean of two planes half a cell away
                turn = np.cos(mode.wavenumber * w.along / 2)
                plain = {
                    ("e", u): mode.e[0],
                    ("e", v): mode.e[1],
                    ("h", u): mode.h[0] * turn,
                    ("h", v): mode.h[1] * turn,
                }
                own = {key: w.lay(jnp.asarray(p[: fit[key][0], : fit[key][1]], real)) for key, p in plain.items()}
                power = overlap(own["e", u], own["e", v], own["h", u], own["h", v])
                a = overlap(field["e", u], field["e", v], own["h", u], own["h", v])
                b = overlap(own["e", u], own["e", v], field["h", u], field["h", v])
                found.append(jnp.stack([a + b, a - b]) / (2 * jnp.sqrt(power)))
            rows.append(jnp.stack(found))
        both = jnp.stack(rows)
        return both[..., 0], both[..., 1]
