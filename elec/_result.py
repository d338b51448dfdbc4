"""What a run returns: raw arrays that gradients pass through, and labelled data on request."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sciax.core.errors import InputError, did_you_mean
from sciax.elec._constants import AXES, Z0
from sciax.elec._energy import EnergyMonitor
from sciax.elec._farfield import FarFieldMonitor, background_of, far_field
from sciax.elec._modes import ModeMonitor
from sciax.elec._monitors import FieldMonitor, FluxMonitor, Probe, SnapshotMonitor

MONITORS = (Probe, EnergyMonitor, FieldMonitor, SnapshotMonitor, FluxMonitor, ModeMonitor)
UNITS = {"e": "V m-1", "h": "A m-1"}


# One program each: operation by operation, a first look at a result would wait for dozens of small compilations.
@partial(jax.jit, static_argnums=0)
def _centred(region, raw):
    return region.centred(raw)


@partial(jax.jit, static_argnums=0)
def _total_flux(faces, raws):
    return sum(face.flux(raw) for face, raw in zip(faces, raws))


class Result(eqx.Module):
    """Records of a run.

    `result.flux("out")`, `result.field("plane", "ez")` and `result.signal("probe", "ez")` are plain arrays, so objectives
    and gradients are made of them; `result["out"]` is the same as labelled xarray data, `dataset()` all of it.
    """

    raw: dict  # name -> blocks, list of blocks, or time series
    final: Any  # State after the last step
    plan: Any = eqx.field(static=True)

    def _monitor(self, name: str, kinds: tuple):
        known = {m.name: m for m in self.plan.scene.monitors}
        if name not in known:
            raise InputError(f"no monitor named {name!r}", remedy=did_you_mean(name, known))
        if not isinstance(known[name], kinds):
            raise InputError(
                f"monitor {name!r} is a {type(known[name]).__name__}", expected=" or ".join(k.__name__ for k in kinds)
            )
        return known[name]

    def signal(self, name: str, component: str):
        """Time series of a probe, E at (n + 1) dt, H at (n + 1/2) dt, or of an energy monitor (see there)."""
        m = self._monitor(name, (Probe, EnergyMonitor))
        if component not in m.components:
            raise InputError(
                f"monitor {name!r} does not record {component!r}", remedy=did_you_mean(component, m.components)
            )
        return self.raw[name][component]

    def fields(self, name: str) -> dict:
        """Components of a field monitor at cell centres, (frequency or time, nx, ny, nz)."""
        self._monitor(name, (FieldMonitor, SnapshotMonitor))
        return _centred(self.plan.monitors[name], self.raw[name])

    def field(self, name: str, component: str):
        """One component of a field or snapshot monitor."""
        m = self._monitor(name, (FieldMonitor, SnapshotMonitor))
        if component not in m.components:
            raise InputError(
                f"monitor {name!r} does not record {component!r}", remedy=did_you_mean(component, m.components)
            )
        return self.fields(name)[component]

    def flux(self, name: str) -> Any:
        """Flux of a flux monitor, Re int E x H* . dA of the spectra, one value a frequency (W)."""
        self._monitor(name, (FluxMonitor,))
        faces = self.plan.monitors[name]
        return _total_flux(tuple(faces), self.raw[name])

    def far_field(self, name: str, theta, phi) -> tuple:
        """(E_theta, E_phi) far away, each (frequency, *directions): V, times e^{ikr}/r is the spectrum in V/m.

        In two dimensions theta is pi/2, E_theta = -Ez, and the factor is e^{ikr}/sqrt(r).

        Args:
            name: of a `FarFieldMonitor`.
            theta, phi: polar angle from +z and azimuth from +x (rad), of one shape.
        """
        m = self._monitor(name, (FarFieldMonitor,))
        return far_field(self.plan.scene, self.plan.monitors[name], self.raw[name], m.frequencies, theta, phi)

    def radiation(self, name: str, theta, phi):
        """Radiated power a solid angle (W/sr; W/rad a metre in 2-D) of the spectra, (frequency, *directions).

        Its integral over all directions is `flux(name)`; 4 pi radiation / flux is the directivity.
        """
        a, b = self.far_field(name, theta, phi)
        _, impedance = background_of(self.plan.scene, f"monitor {name!r}")
        return (jnp.abs(a) ** 2 + jnp.abs(b) ** 2) / impedance

    def modes(self, name: str) -> tuple:
        """Amplitudes (forward, backward) of a mode monitor, each (frequency, order); |a|^2 is power (W/m)."""
        self._monitor(name, (ModeMonitor,))
        return self.plan.monitors[name].amplitudes(self.raw[name])

    def scattering(self, excited: str, inward: Mapping[str, str], order: int = 0) -> dict:
        """One column of the scattering matrix: outgoing amplitude of each port over the ingoing one of the excited port.

        Args:
            excited: name of the mode monitor where the light comes in.
            inward: name of each port's mode monitor -> "+" or "-", the direction along its normal that goes into the device.
            order: position in the excited port's `orders` of the mode that comes in.

        Returns:
            Port -> complex S, (frequency, order). By both directions of the modes, without a normalising run.
        """
        if excited not in inward:
            raise InputError(f"the excited port {excited!r} has no direction", remedy=did_you_mean(excited, inward))
        for port, sense in inward.items():
            if sense not in ("+", "-"):
                raise InputError(f"port {port!r}: a direction is '+' or '-'", got=sense)
        waves = {p: self.modes(p) if sense == "+" else self.modes(p)[::-1] for p, sense in inward.items()}
        entering = waves[excited][0][:, order, None]
        return {p: leaving / entering for p, (_, leaving) in waves.items()}

    def time(self, component: str = "ez") -> np.ndarray:
        """Times of a probe's samples (s)."""
        return (np.arange(self.plan.steps) + (1.0 if component[0] == "e" else 0.5)) * self.plan.scene.dt

    def spectrum(self, source: str, frequencies) -> np.ndarray:
        """f times the Fourier transform of a source's waveform (its units), for normalising."""
        from sciax.elec._scene import find

        s = find(self.plan.scene.sources, source, "source")
        t = (np.arange(self.plan.steps) + 0.5) * self.plan.scene.dt
        w = np.asarray(s.waveform(t), np.float64)
        f = np.atleast_1d(np.asarray(frequencies, np.float64))
        return self.plan.scene.dt * f * (np.exp(2j * np.pi * np.outer(f, t)) @ w)

    def incident(self, source: str, frequencies, params: dict | None = None) -> np.ndarray:
        """Spectrum (V/m) of a plane wave's electric field where its total-field box begins, as the grid carries it."""
        return self._incident(source, frequencies, params)[0]

    def incident_power(self, source: str, frequencies, params: dict | None = None) -> np.ndarray:
        """Flux density (W/m2) of the spectrum of the incident plane wave by the formula of the flux monitors.

        Ratios of fluxes to it keep the balance R + T = 1 of the grid.
        """
        e, h = self._incident(source, frequencies, params)
        return np.abs(np.real(e * np.conj(h))) / Z0

    def _incident(self, source, frequencies, params):
        from sciax.elec._params import apply
        from sciax.elec._prepare import incident_signals
        from sciax.elec._scene import find

        scene = apply(self.plan.scene, params or {})
        wave = find(scene.sources, source, "source")
        n = np.arange(self.plan.steps)
        out = []
        for signal, late in zip(incident_signals(wave, scene, self.plan.lattice), (0.0, 0.5)):
            turn = np.exp(2j * np.pi * np.outer(np.atleast_1d(frequencies), (n + late) * scene.dt))
            out.append(scene.dt * np.atleast_1d(frequencies) * (turn @ np.asarray(signal, np.float64)))
        return out

    def __getitem__(self, name: str) -> xr.Dataset:
        m = self._monitor(name, MONITORS)
        if isinstance(m, EnergyMonitor):
            dt, n = self.plan.scene.dt, np.arange(self.plan.steps)
            data = {}
            for c, late, unit in (("electric", 0.0, "J"), ("magnetic", 0.0, "J"), ("outflow", 0.5, "W")):
                axis = "time_power" if late else "time_energy"
                data[c] = xr.DataArray(
                    np.asarray(self.raw[name][c]),
                    dims=(axis,),
                    coords={axis: (axis, (n + late) * dt, {"units": "s"})},
                    attrs={"units": unit},
                )
            return xr.Dataset(data)
        if isinstance(m, Probe):
            data = {}
            for c in m.components:
                data[c] = xr.DataArray(
                    np.asarray(self.raw[name][c]),
                    dims=(f"time_{c[0]}",),
                    attrs={"units": UNITS[c[0]], "long_name": f"{c} at {name}"},
                    coords={f"time_{c[0]}": (f"time_{c[0]}", self.time(c), {"units": "s"})},
                )
            return xr.Dataset(data)
        if isinstance(m, SnapshotMonitor):
            kept = self.plan.monitors[name].blocks
            first = ("time", (kept.steps(self.plan.scene.dt, 1.0) + 1) * self.plan.scene.dt, {"units": "s"})
        else:
            first = ("frequency", m.frequencies, {"units": "Hz"})
        if isinstance(m, ModeMonitor):
            dims = ("frequency", "order")
            both = [xr.DataArray(np.asarray(a), dims=dims, attrs={"units": "W0.5 m-0.5"}) for a in self.modes(name)]
            return xr.Dataset(
                {"forward": both[0], "backward": both[1]}, coords={first[0]: first, "order": list(m.orders)}
            )
        if isinstance(m, FluxMonitor):
            flux = xr.DataArray(
                np.asarray(self.flux(name)),
                dims="frequency",
                attrs={"units": "W", "long_name": "flux of the spectra"},
            )
            return xr.Dataset({"flux": flux}, coords={first[0]: first})
        region = self.plan.monitors[name]
        coords = {a: (a, p, {"units": "m", "axis": a.upper()}) for a, p in zip(AXES, region.coordinates)}
        data = {}
        for c, f in self.fields(name).items():
            data[c] = xr.DataArray(
                np.asarray(f),
                dims=(first[0], *AXES),
                attrs={"units": UNITS[c[0]], "long_name": c if first[0] == "time" else f"spectral {c}"},
            )
        return xr.Dataset(data, coords={first[0]: first, **coords})

    def dataset(self) -> xr.Dataset:
        """Everything as one dataset of real variables (complex ones split into _re and _im), ready for NetCDF."""
        merged = {}
        for m in self.plan.scene.monitors:
            if not isinstance(m, MONITORS):
                continue
            ds = self[m.name]
            ds = ds.rename({d: f"{m.name}_{d}" for d in ds.dims})
            for key, v in ds.data_vars.items():
                for part, values in (("_re", v.real), ("_im", v.imag)) if np.iscomplexobj(v.values) else (("", v),):
                    merged[f"{m.name}_{key}{part}"] = values.assign_attrs(v.attrs)
        return xr.Dataset(
            merged, attrs={"Conventions": "CF-1.11", "title": "sciax FDTD run", "time_step_s": self.plan.scene.dt}
        )

    def check(self) -> None:
        """Raises if any record is not finite."""
        for leaf in jax.tree.leaves(self.raw):
            if not bool(jnp.all(jnp.isfinite(leaf))):
                from sciax.core.errors import ConvergenceError

                raise ConvergenceError("the recorded fields are not finite")
