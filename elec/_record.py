"""What monitors cut out of the fields at every step, and how raw blocks become fields at common points."""

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from sciax.core.errors import InputError
from sciax.core.ops.yee import State
from sciax.elec._constants import AXES, COMPONENTS, Z0
from sciax.elec._lattice import Lattice
from sciax.elec._monitors import SnapshotMonitor
from sciax.elec._scene import Scene


def block(array, lo, hi, wrap):
    """array[lo:hi] along three axes; lo may be -1 and hi n + 1: beyond the edge the field wraps or is zero."""
    for a in range(3):
        n = array.shape[a]
        if n == 1:
            continue
        s, e = max(lo[a], 0), min(hi[a], n)
        part = lax.slice_in_dim(array, s, e, axis=a)
        pads = [(0, 0, 0)] * 3
        before, after = s - lo[a], hi[a] - e
        if wrap[a] is None:
            pads[a] = (before, after, 0)
            array = lax.pad(part, jnp.zeros((), array.dtype), pads) if before or after else part
            continue
        pieces = [part]
        if before:
            pieces.insert(0, lax.slice_in_dim(array, n - before, n, axis=a) / jnp.asarray(wrap[a], array.dtype))
        if after:
            pieces.append(lax.slice_in_dim(array, 0, after, axis=a) * jnp.asarray(wrap[a], array.dtype))
        array = jnp.concatenate(pieces, axis=a) if len(pieces) > 1 else part
    return array


def component_of(state: State, name: str):
    return (state.e if name[0] == "e" else state.h)["xyz".index(name[1])]


@dataclass(frozen=True, eq=False)
class Blocks:
    """One set of raw blocks accumulated in the frequency domain."""

    frequencies: np.ndarray
    lo: dict[str, tuple[int, int, int]]
    hi: dict[str, tuple[int, int, int]]

    def zeros(self, dtype) -> dict:
        kind = jnp.result_type(dtype, jnp.complex64)
        return {
            c: jnp.zeros((self.frequencies.size, *(h - l for l, h in zip(self.lo[c], self.hi[c]))), kind)
            for c in self.lo
        }

    def phasors(self, steps: int, dt: float, dtype, offset: float) -> np.ndarray:
        """f dt exp(+i w t) at the times of E (offset 1) or H (offset 1/2), in float64 on the host.

        The factor f makes a spectrum V/m, of ordinary size: in SI, optical fluxes per Hz squared underflow float32.
        """
        t = (np.arange(steps) + offset) * dt
        return (dt * self.frequencies * np.exp(2j * np.pi * np.outer(t, self.frequencies))).astype(
            jnp.result_type(dtype, jnp.complex64)
        )

    def add(self, acc: dict, state: State, phasor_e, phasor_h, wrap) -> dict:
        out = {}
        for name, a in acc.items():
            f = block(component_of(state, name), self.lo[name], self.hi[name], wrap)
            p = phasor_e if name[0] == "e" else phasor_h
            out[name] = a + p[:, None, None, None] * f
        return out


@dataclass(frozen=True, eq=False)
class Moments(Blocks):
    """Blocks of single steps: the running sums of spectra with a one for the step of each time, else zero."""

    complex: bool = False

    def zeros(self, dtype) -> dict:
        spectra = super().zeros(dtype)
        return spectra if self.complex else {c: jnp.real(v) for c, v in spectra.items()}

    def steps(self, dt: float, offset: float) -> np.ndarray:
        return np.maximum(np.rint(self.frequencies / dt - offset).astype(int), 0)

    def phasors(self, steps: int, dt: float, dtype, offset: float) -> np.ndarray:
        return (np.arange(steps)[:, None] == self.steps(dt, offset)[None, :]).astype(dtype)


@dataclass(frozen=True, eq=False)
class Region:
    """A box of cells, and the raw blocks that give fields at their centres."""

    start: tuple[int, int, int]
    stop: tuple[int, int, int]
    blocks: Blocks
    coordinates: tuple[np.ndarray, ...]

    def centred(self, raw: dict) -> dict:
        """Fields at cell centres, H in A/m."""
        out = {}
        for name, f in raw.items():
            c = "xyz".index(name[1])
            for a in range(3):
                on_node = (c != a) == (name[0] == "e")
                n = self.stop[a] - self.start[a]
                if f.shape[a + 1] == 1 and n == 1:
                    continue
                left = lax.slice_in_dim(f, 0, n, axis=a + 1)
                f = 0.5 * (left + lax.slice_in_dim(f, 1, n + 1, axis=a + 1)) if on_node else left
            out[name] = f if name[0] == "e" else f / Z0
        return out


@dataclass(frozen=True, eq=False)
class Surface:
    """A rectangle of cell faces across `axis` at node `index`; outward normal `sign`."""

    axis: int
    index: int
    sign: float
    start: tuple[int, int, int]
    stop: tuple[int, int, int]
    blocks: Blocks
    left_weight: float  # of the half node before the plane
    half: float  # mean distance of the two half nodes from the plane (m)
    edges: tuple  # nodes of the rectangle, one along `axis`, None for an absent axis
    widths: tuple  # of its cells

    def native(self, raw: dict) -> dict:
        """Tangential E, and H (A/m) averaged onto the plane, where the lattice has them: (frequency, nx, ny, nz)."""
        out = {}
        for name, f in raw.items():
            if name[0] == "h":
                w = self.left_weight
                f = w * lax.slice_in_dim(f, 0, 1, axis=self.axis + 1) + (1 - w) * lax.slice_in_dim(
                    f, 1, 2, axis=self.axis + 1
                )
                f = f / Z0
            for a in range(3):
                if a != self.axis and f.shape[a + 1] > 1 and not on_node(name, a):
                    f = lax.slice_in_dim(f, 0, self.stop[a] - self.start[a], axis=a + 1)
            out[name] = f
        return out

    def weight(self, name: str) -> np.ndarray:
        """Area of each point of a component: cells along half axes, trapezoidal rule along nodes (m2; absent axes 1 m)."""
        out = np.ones((1, 1, 1))
        for a in range(3):
            if a != self.axis and self.widths[a] is not None:
                w = trapezoid(self.widths[a]) if on_node(name, a) else self.widths[a]
                out = out * w.reshape([-1 if b == a else 1 for b in range(3)])
        return out

    def points(self, name: str) -> list[np.ndarray]:
        """Coordinates of a component on the plane."""
        out = []
        for a in range(3):
            edges = self.edges[a]
            if edges is None or a == self.axis:
                out.append(np.zeros(1) if edges is None else edges)
            else:
                out.append(edges if on_node(name, a) else 0.5 * (edges[1:] + edges[:-1]))
        return out

    def flux(self, raw: dict) -> Any:
        """Re int E x H* . n dA for each frequency.

        E_b and H_c lie at the same points of a Yee plane. Their product by the trapezoidal rule is the flux of the lattice's
        own Poynting theorem: over a closed box without sources or loss it vanishes to rounding.
        """
        t = self.native(raw)
        b, c = AXES[(self.axis + 1) % 3], AXES[(self.axis + 2) % 3]
        total: Any = 0.0
        for u, v, sign in ((b, c, 1.0), (c, b, -1.0)):
            e, h = t.get(f"e{u}"), t.get(f"h{v}")
            if e is not None and h is not None:
                density = jnp.real(e * jnp.conj(h))
                area = jnp.asarray(sign * self.sign * self.weight(f"e{u}"), density.dtype)
                total = total + jnp.sum(density * area, axis=(1, 2, 3))
        return total


def on_node(name: str, axis: int) -> bool:
    """Whether a component sits at integer indices along an axis."""
    return ("xyz".index(name[1]) != axis) == (name[0] == "e")


def trapezoid(widths: np.ndarray) -> np.ndarray:
    """Weights of the nodes of cells of these widths."""
    return 0.5 * (np.append(widths, 0.0) + np.append(0.0, widths))


def cell_range(scene: Scene, axis: int, center: float, size) -> tuple[int, int]:
    """Cells whose centres lie in [center - size/2, center + size/2]; at least the one that holds the centre."""
    edges = scene.grid.edges[axis]
    if edges is None:
        return 0, 1
    n = edges.size - 1
    if size is None:
        return 0, n
    mids = scene.grid.centers(axis)
    tiny = 1e-6 * np.diff(edges).min()
    inside = np.nonzero((mids >= center - size / 2 - tiny) & (mids <= center + size / 2 + tiny))[0]
    if inside.size:
        return int(inside[0]), int(inside[-1]) + 1
    i = int(np.clip(np.searchsorted(edges, center, side="right") - 1, 0, n - 1))
    return i, i + 1


def region(scene: Scene, lat: Lattice, monitor) -> Region:
    start, stop = zip(*(cell_range(scene, a, monitor.center[a], monitor.size[a]) for a in range(3)))
    lo = {c: start for c in monitor.components}
    if isinstance(monitor, SnapshotMonitor):
        late = float(monitor.times.max())
        if late > scene.steps * scene.dt:
            raise InputError(
                f"monitor {monitor.name!r}: a time lies after the end of the run",
                got=f"{late:.4g} s",
                expected=f"<= {scene.steps * scene.dt:.4g} s",
            )
    hi = {
        c: tuple(s + (1 if scene.grid.edges[a] is not None else 0) for a, s in enumerate(stop))
        for c in monitor.components
    }
    coordinates = tuple(scene.grid.centers(a)[start[a] : stop[a]] for a in range(3))
    if isinstance(monitor, SnapshotMonitor):
        return Region(start, stop, Moments(monitor.times, lo, hi, scene.boundaries.complex), coordinates)
    return Region(start, stop, Blocks(monitor.frequencies, lo, hi), coordinates)


def surface(scene: Scene, lat: Lattice, frequencies, axis: int, index: int, sign: float, start, stop) -> Surface:
    """Plan of one face."""
    lo, hi = {}, {}
    for name in COMPONENTS:
        c = "xyz".index(name[1])
        on = lat.active_e[c] if name[0] == "e" else lat.active_h[c]
        if c == axis or not on:
            continue
        low, high = [], []
        for a in range(3):
            absent = scene.grid.edges[a] is None
            if a == axis:
                low.append(index if name[0] == "e" else index - 1)
                high.append(index + 1)
            else:
                low.append(start[a])
                high.append(stop[a] + (0 if absent else 1))
        lo[name], hi[name] = tuple(low), tuple(high)
    d = scene.grid.steps(axis)
    n = d.size
    before, after = d[(index - 1) % n], d[index % n]
    edges = [
        None if e is None else e[index : index + 1] if a == axis else e[start[a] : stop[a] + 1]
        for a, e in enumerate(scene.grid.edges)
    ]
    return Surface(
        axis,
        index,
        sign,
        tuple(start),
        tuple(stop),
        Blocks(frequencies, lo, hi),
        after / (before + after),
        0.25 * (before + after),
        tuple(edges),
        tuple(None if e is None else np.diff(e) for e in edges),
    )


def surfaces(scene: Scene, lat: Lattice, monitor) -> tuple[Surface, ...]:
    """The face of a plane monitor, or the faces of a box."""
    cells = [cell_range(scene, a, monitor.center[a], monitor.size[a]) for a in range(3)]
    start, stop = [list(v) for v in zip(*cells)]
    if monitor.normal != "box":
        a = AXES.index(monitor.normal)
        edges = scene.grid.edges[a]
        index = int(np.argmin(np.abs(edges - monitor.center[a])))
        return (surface(scene, lat, monitor.frequencies, a, index, 1.0, start, stop),)
    out = []
    for a in scene.grid.active_axes:
        for index, sign in ((start[a], -1.0), (stop[a], 1.0)):
            out.append(surface(scene, lat, monitor.frequencies, a, index, sign, start, stop))
    return tuple(out)


@dataclass(frozen=True, eq=False)
class PointPlan:
    """Linear interpolation of components at a point."""

    components: tuple[str, ...]
    starts: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    weights: dict[str, np.ndarray] = field(default_factory=dict)

    def read(self, state: State) -> dict:
        out = {}
        for name in self.components:
            f, w = component_of(state, name), self.weights[name]
            part = lax.slice(f, self.starts[name], [s + m for s, m in zip(self.starts[name], w.shape)])
            value = jnp.sum(part * jnp.asarray(w, jnp.real(part).dtype))
            out[name] = value if name[0] == "e" else value / Z0
        return out


def point(scene: Scene, lat: Lattice, probe) -> PointPlan:
    starts, all_weights = {}, {}
    for name in probe.components:
        kind, c = name[0], "xyz".index(name[1])
        if not (lat.active_e if kind == "e" else lat.active_h)[c]:
            raise InputError(
                f"monitor {probe.name!r}: no source of this scene excites {name!r}",
                expected=[n for i, n in enumerate(COMPONENTS) if (lat.active_e + lat.active_h)[i]],
            )
        start, w = [], np.ones((1, 1, 1))
        for a in range(3):
            p = lat.coordinate(kind, c, a)
            if p.size == 1:
                start.append(0)
                continue
            i = int(np.clip(np.searchsorted(p, probe.position[a], side="right") - 1, 0, p.size - 2))
            u = (probe.position[a] - p[i]) / (p[i + 1] - p[i])
            start.append(i)
            w = w * np.array([1 - u, u]).reshape([-1 if b == a else 1 for b in range(3)])
        starts[name], all_weights[name] = tuple(start), w
    return PointPlan(probe.components, starts, all_weights)
