"""Gaussian beams: the angular spectrum of the lattice, launched to one side from a plane."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, UnsupportedError
from sciax.elec._checks import finite, one_of, positive, vector
from sciax.elec._constants import AXES, C0, COMPONENTS
from sciax.elec._sources import DIRECTIONS


@dataclass(frozen=True)
class GaussianBeam:
    """A beam from a plane across an axis, E exp(-r^2 / waist^2) at its waist, to one side.

    The waist's profile is split into plane waves of the lattice's own dispersion relation, each with the magnetic field that
    goes with it, so the beam is exact beyond the paraxial approximation, and nothing goes backwards at the frequency of the
    waveform (towards the edges of its band a little does). Near the axis, with z from the waist, zR = pi n waist^2 / lambda,

        E = E0 (waist/W) exp(-r^2/W^2 + i k z + i k r^2/(2 R) - i gouy),  W^2 = waist^2 (1 + z^2/zR^2),  R = z + zR^2/z,

    gouy = atan(z/zR) in three dimensions; in two waist/W is (waist/W)^(1/2) and the Gouy phase is half of that.

    Attributes:
        name: unique in the scene.
        direction: "+x" ... "-z".
        polarization: electric component across the direction, "ex" ... "ez".
        waveform: signal; its `frequency` is where the spectrum of plane waves is taken.
        center: of the plane, on the beam's axis (m). The plane spans the grid between the absorbers.
        waist: radius at which the field has fallen to 1/e (m).
        focus: distance from the plane to the waist, positive along the beam (m).
        tilt: slope angles (rad) of the beam towards the two axes across, in cyclic order after the direction's axis.
        amplitude: E0 at the waist (V/m).

    Source: A. E. Siegman, Lasers (1986), section 16.3; M. Born, E. Wolf, Principles of Optics, 7th ed., section 11.4.2.
    """

    name: str
    direction: str
    polarization: str
    waveform: Callable
    center: Any
    waist: Any
    focus: float = 0.0
    tilt: tuple[float, float] = (0.0, 0.0)
    amplitude: Any = 1.0

    def __post_init__(self) -> None:
        one_of(self.direction, DIRECTIONS, "direction")
        one_of(self.polarization, COMPONENTS[:3], "polarization")
        if self.polarization[1] == self.direction[1]:
            raise InputError(
                f"source {self.name!r}: the polarization lies along the direction of travel",
                got=(self.direction, self.polarization),
                expected="a component across it",
            )
        object.__setattr__(self, "center", vector(self.center, f"center of source {self.name!r}"))
        positive(self.waist, f"waist of source {self.name!r}")
        finite(self.amplitude, f"amplitude of source {self.name!r}")
        if len(self.tilt) != 2 or max(map(abs, self.tilt)) > 1.2:
            raise InputError(f"source {self.name!r}: two tilts, below 1.2 rad", got=self.tilt)
        if not hasattr(self.waveform, "frequency"):
            raise InputError(
                f"source {self.name!r}: its waveform has no frequency to make the beam at",
                got=type(self.waveform).__name__,
            )

    @property
    def position(self) -> tuple:
        return self.center

    def patches(self, static: "GaussianBeam", lat: Any, k: Any, scene: Any, concrete: Any):
        """Currents on the face between two half spaces: as the mode source, in phase and in quadrature."""
        from sciax.elec._prepare import Patch, gain_at

        axis, forward = AXES.index(static.direction[1]), static.direction[0] == "+"
        side = 1.0 if forward else -1.0
        node = int(np.argmin(np.abs(concrete.grid.edges[axis] - static.center[axis])))
        half = node - 1 if forward else node
        fields, spans, beta = self._fields(static, concrete, lat, axis, side)
        b = "xyz".index(static.polarization[1])
        c = 3 - axis - b
        frequency, dt, dtype = float(static.waveform.frequency), concrete.dt, jnp.dtype(concrete.dtype)
        n = np.arange(concrete.steps)
        later = float(concrete.grid.steps(axis)[half]) / 2 * beta / (2 * np.pi * frequency)
        quarter = 0.25 / frequency
        patches, tables = [], []

        def add(index: int, at: int, factor: float, name: str, time) -> None:
            comp = index % 3
            if not (lat.active_e if index < 3 else lat.active_h)[comp]:
                return
            start, size = [0, 0, 0], [1, 1, 1]
            start[axis] = at
            for a, (first, last) in spans.items():
                start[a], size[a] = first, last - first
            gain = jnp.broadcast_to(gain_at(k, lat, index, start, size), tuple(size))
            # exp(-i w t) in phase is the waveform, i times it is the waveform a quarter of a period later
            for part, delay in ((np.real(fields[name]), 0.0), (np.imag(fields[name]), quarter)):
                if np.max(np.abs(part)) > 1e-7 * np.max(np.abs(fields[name])):
                    profile = jnp.asarray(factor * part.reshape(size), dtype) * gain
                    patches.append(Patch(index, (start[0], start[1], start[2]), profile))
                    rows = jnp.asarray(self.waveform(time - delay), dtype) * jnp.asarray(self.amplitude, dtype)
                    tables.append(rows.reshape(-1, 1, 1, 1))

        for t, name in ((b, "hc"), (c, "hb")):  # E_t takes the other H across
            g = -1.0 if t == (axis + 1) % 3 else 1.0
            add(t, node, -side * g * float(lat.inv_h[axis][node]), name, (n + 0.5) * dt + later)
        g = -1.0 if c == (axis + 1) % 3 else 1.0
        add(3 + c, half, side * g * float(lat.inv_e[axis][half]), "eb", n * dt)
        return patches, tables

    def _fields(self, static: "GaussianBeam", scene: Any, lat: Any, axis: int, side: float):
        """E_b, and H_c, H_b (times Z0) at their points of the plane; index ranges; mean wave number along the axis."""
        medium, who = scene.background, f"source {static.name!r}"
        if np.ndim(medium.permittivity) or np.ndim(medium.permeability) or not medium.lossless:
            raise UnsupportedError(f"{who}: a beam starts in an isotropic, lossless background")
        eps, mu = float(np.asarray(medium.permittivity)), float(np.asarray(medium.permeability))
        w = 2 * np.pi * float(static.waveform.frequency)
        w_hat = 2 / (C0 * scene.dt) * np.sin(w * scene.dt / 2)
        b = "xyz".index(static.polarization[1])
        c = 3 - axis - b
        spans, waves, points, hats = {}, {}, {}, {}
        tilt = dict(zip(((axis + 1) % 3, (axis + 2) % 3), static.tilt))
        for a in (b, c):
            if scene.grid.edges[a] is None:
                waves[a], points[a], hats[a] = np.zeros(1), np.zeros(1), np.zeros(1)
                continue
            lo, hi = scene.interior(a)
            inside = np.nonzero((lat.nodes[a] >= lo * (1 - 1e-12)) & (lat.nodes[a] <= hi))[0]
            first, last = int(inside[0]), int(inside[-1]) + 1
            d = scene.grid.steps(a)[first : last - 1]
            if np.ptp(d) > 1e-6 * d.max():
                raise UnsupportedError(
                    f"{who}: a beam needs equal cells along {AXES[a]}", remedy="a uniform grid there"
                )
            reach = min(static.center[a] - lo, hi - static.center[a])
            if reach < 1.5 * static.waist:
                raise InputError(
                    f"{who}: the grid cuts the beam off along {AXES[a]}",
                    got=f"{reach:.4g} m from its axis to the absorber",
                    expected=f">= 1.5 waists = {1.5 * static.waist:.4g} m",
                    remedy="a larger grid or a smaller waist",
                )
            spans[a] = (first, last)
            n = 4 * (last - first)
            waves[a] = 2 * np.pi * np.fft.fftfreq(n, d[0])
            hats[a] = 2 / d[0] * np.sin(waves[a] * d[0] / 2)
            points[a] = lat.coordinate("e", b, a)[first] + np.arange(n) * d[0]
        k_t = {a: waves[a][:, None] if a == b else waves[a][None, :] for a in (b, c)}
        hat = {a: hats[a][:, None] if a == b else hats[a][None, :] for a in (b, c)}
        along = 0.0
        profile: Any = 1.0
        k0 = np.sqrt(eps * mu) * w / C0
        for a in (b, c):
            if scene.grid.edges[a] is None:
                continue
            x = points[a] - static.center[a]
            x = x - (x.size * (x[1] - x[0])) * np.round(x / (x.size * (x[1] - x[0])))  # periodic distance
            line = np.exp(-((x / static.waist) ** 2) + 1j * k0 * np.sin(tilt.get(a, 0.0)) * x)
            profile = profile * (line[:, None] if a == b else line[None, :])
        spectrum = np.fft.fft2(np.broadcast_to(profile, (points[b].size, points[c].size)))
        squared = w_hat**2 * eps * mu - hat[b] ** 2 - hat[c] ** 2
        floor = (0.05 * w_hat) ** 2 * eps * mu
        travels = squared > floor  # what travels along the plane, or dies off it, is left out
        along = np.sqrt(np.where(travels, squared, 1.0))
        d_a = float(np.mean(scene.grid.steps(axis)))
        true = 2 / d_a * np.arcsin(np.minimum(along * d_a / 2, 1.0))
        spectrum = np.where(travels, spectrum * np.exp(-1j * true * static.focus), 0.0)
        along = side * along
        e_a = -hat[b] * spectrum / along
        h_c = (along * spectrum - hat[b] * e_a) / (w_hat * mu)
        h_b = hat[c] * e_a / (w_hat * mu)
        # cyclic order: (axis, b, c) may be left-handed
        if b != (axis + 1) % 3:
            h_c, h_b = -h_c, -h_b
        step = {a: float(scene.grid.steps(a)[0]) if scene.grid.edges[a] is not None else 0.0 for a in (b, c)}
        h_b = h_b * np.exp(-0.5j * k_t[b] * step[b] + 0.5j * k_t[c] * step[c])
        cut = tuple(slice(0, spans[a][1] - spans[a][0]) if a in spans else slice(0, 1) for a in (b, c))
        fields = {}
        for name, s in (("eb", spectrum), ("hc", h_c), ("hb", h_b)):
            plane = np.fft.ifft2(s)[cut]
            plane = plane if b < c else plane.T  # ascending axes, as the lattice is laid out
            fields[name] = np.expand_dims(plane, axis)
        weight = np.abs(spectrum) ** 2
        return fields, spans, float(np.sum(true * weight) / np.sum(weight))


__all__ = ["GaussianBeam"]
