"""Energy inside a box and what flows out of it, step by step."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, UnsupportedError
from sciax.core.ops.yee import State
from sciax.elec._checks import vector
from sciax.elec._constants import AXES, C0, COMPONENTS, EPS0
from sciax.elec._materials import mode_of
from sciax.elec._record import Surface, block, cell_range, component_of, on_node, surface, trapezoid

SIGNALS = ("electric", "magnetic", "outflow")


@dataclass(frozen=True, eq=False)
class EnergyMonitor:
    """Energy of the fields in a box of cells, every step, and the power that leaves through its faces.

    Signals of the result: "electric" and "magnetic" (J, at n dt) and "outflow" (W, at (n + 1/2) dt); per m of an absent axis.
    They keep the Poynting theorem of the lattice: without sources, W[n+1] - W[n] = -dt outflow[n] to rounding, where
    W = 1/2 int (eps E^n . E^n + mu H^{n-1/2} . H^{n+1/2}) is the sum of the first two.

    Attributes:
        center, size: box (m); None along an axis: all of it.

    The energy stored in a dispersive medium is not a function of E and H, and a lossy one turns it into heat: media with poles
    or conductivity, and the full tensor of smoothed interfaces, are refused (`Scene(..., smoothing="diagonal")`).
    """

    name: str
    center: Any = (0.0, 0.0, 0.0)
    size: Any = (None, None, None)

    components = SIGNALS

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", vector(self.center, f"center of monitor {self.name!r}"))
        object.__setattr__(self, "size", tuple(self.size) + (None,) * (3 - len(tuple(self.size))))


class EnergyPlan:
    """The box on the lattice: quadrature weights, faces. Weights are energies of unit fields, from the update coefficients."""

    components = SIGNALS

    def __init__(self, scene: Any, lat: Any, monitor: EnergyMonitor):
        who = f"energy monitor {monitor.name!r}"
        for name, m in (("background", scene.background), *((s.name, s.medium) for s in scene.structures)):
            if not (m.lossless or m.perfect_conductor):
                raise UnsupportedError(
                    f"{who}: the energy in the lossy or dispersive {name!r} is not that of the fields"
                )
        if scene.boundaries.complex:
            raise UnsupportedError(f"{who}: fields of a Bloch scene are complex", remedy="FluxMonitor, in its spectra")
        if scene.structures and mode_of(scene) == "tensor" and len(scene.grid.active_axes) > 1:
            raise UnsupportedError(
                f"{who}: the full tensor at smoothed interfaces couples neighbouring points",
                remedy='Scene(..., smoothing="diagonal")',
            )
        for a in scene.grid.active_axes:
            lo, hi = scene.interior(a)
            half = np.inf if monitor.size[a] is None else monitor.size[a] / 2
            if scene.boundaries.thickness(a, 0) and monitor.center[a] - half < lo:
                raise InputError(f"{who} reaches into the absorber at low {AXES[a]}", remedy="give it a size")
            if scene.boundaries.thickness(a, 1) and monitor.center[a] + half > hi:
                raise InputError(f"{who} reaches into the absorber at high {AXES[a]}", remedy="give it a size")
        self.scene, self.lattice = scene, lat
        cells = [cell_range(scene, a, monitor.center[a], monitor.size[a]) for a in range(3)]
        self.start, self.stop = (tuple(v) for v in zip(*cells))
        self.faces: list[Surface] = []
        for a in scene.grid.active_axes:
            closed = self.start[a] == 0 and self.stop[a] == scene.grid.cells[a]
            if closed:  # nothing leaves through a wall, and what leaves a periodic axis comes back
                continue
            for index, sign in ((self.start[a], -1.0), (self.stop[a], 1.0)):
                self.faces.append(surface(scene, lat, np.ones(1), a, index, sign, list(self.start), list(self.stop)))
        on = (*lat.active_e, *lat.active_h)
        self.names = [c for i, c in enumerate(COMPONENTS) if on[i]]
        self._volumes = {c: self._volume(c) for c in self.names}

    def _bounds(self, name: str):
        """Index range of a component in the box; nodes reach one further."""
        absent = [e is None for e in self.scene.grid.edges]
        hi = tuple(s + (1 if on_node(name, a) and not absent[a] else 0) for a, s in enumerate(self.stop))
        return self.start, hi

    def _volume(self, name: str) -> np.ndarray:
        out = np.ones((1, 1, 1))
        for a, e in enumerate(self.scene.grid.edges):
            if e is not None:
                d = np.diff(e)[self.start[a] : self.stop[a]]
                out = out * (trapezoid(d) if on_node(name, a) else d).reshape([-1 if b == a else 1 for b in range(3)])
        return out

    def _square(self, name: str, f, g, k: Any):
        """Sum over the box of f g times volume and permittivity (permeability): those that the update uses."""
        lo, hi = self._bounds(name)
        gain = (k.cb if name[0] == "e" else k.db)["xyz".index(name[1])]
        gain = jnp.broadcast_to(gain, f.shape)
        fields = [block(v, lo, hi, k.wrap) for v in (f, g, gain)]
        cdt = jnp.asarray(C0 * self.scene.dt, fields[2].dtype)
        material = jnp.where(fields[2] > 0, cdt / jnp.where(fields[2] > 0, fields[2], 1.0), 0.0)
        return jnp.sum(fields[0] * fields[1] * material * jnp.asarray(self._volumes[name], material.dtype))

    def read(self, before: State, after: State, k: Any) -> dict:
        """Signals of one step."""
        electric, magnetic, power = 0.0, 0.0, 0.0
        for name in self.names:
            f, g = component_of(before, name), component_of(after, name)
            if name[0] == "e":
                electric = electric + self._square(name, f, f, k)
            else:
                magnetic = magnetic + self._square(name, f, g, k)
        mean = jax.tree.map(lambda a, b: 0.5 * (a + b), before.e, after.e)
        middle = State(mean, after.h)
        for face in self.faces:
            raw = {
                c: block(component_of(middle, c), face.blocks.lo[c], face.blocks.hi[c], k.wrap)[None]
                for c in face.blocks.lo
            }
            power = power + face.flux(raw)[0]
        return {"electric": 0.5 * EPS0 * electric, "magnetic": 0.5 * EPS0 * magnetic, "outflow": power}
