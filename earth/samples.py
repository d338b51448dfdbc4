"""Inputs that need no file: a packaged sample of real analyses, and flows the project generates itself."""

import numpy as np
import xarray as xr

from sciax.core.errors import InputError, MissingDependencyError, optional_import


def load(name: str, seed: int = 0) -> tuple[xr.Dataset, str]:
    """(dataset, what it is) of a named sample.

    "sample" falls back to "generated" where the package hvsampledata is not installed, and says so.

    Raises:
        InputError: an unknown name.
    """
    if name == "sample":
        try:
            return ncep_temperature(), (
                "Input: NCEP reanalysis air temperature near the surface (sigma 0.995), six-hourly, 24 to 28 February 2014, North "
                "America, 2.5 degrees; from the package hvsampledata (BSD). Real analyses."
            )
        except MissingDependencyError as error:
            ds, note = load("generated", seed)
            return ds, f"{error.message}; the generated flow is used instead. {note}"
    if name == "generated":
        return nature_run(seed=seed), (
            "Input: synthetic. A random balanced flow on the globe, carried forward by the project's own barotropic model at T63 "
            "with weak damping; the forecast model is not the one that made it, but close: skill on it says nothing about weather."
        )
    raise InputError(f"unknown sample {name!r}", expected="'sample' or 'generated'")


def ncep_temperature() -> xr.Dataset:
    """20 six-hourly analyses of near-surface temperature over North America (from the package hvsampledata).

    Raises:
        MissingDependencyError: the package is not installed.
    """
    module = optional_import("hvsampledata", "earth")
    ds = module.air_temperature("xarray")
    return ds.rename(air="t")


def nature_run(
    *, truncation: int = 63, hours: int = 72, step_hours: int = 6, seed: int = 0, nlat: int = 61, nlon: int = 120
) -> xr.Dataset:
    """Geopotential at 500 hPa of a synthetic flow: westerly jets and random planetary and synoptic waves.

    Args:
        truncation: of the model that makes it.
        hours, step_hours: length and output interval.
        nlat, nlon: equiangular output grid with poles.
    """
    import equinox as eqx
    import jax.numpy as jnp

    from sciax.core.ops.sphere import SphereGrid, sphere_tables, synthesis
    from sciax.earth.dynamics import BarotropicVorticity, geopotential_from_streamfunction
    from sciax.earth.models import helmholtz_from_depth

    truncation = min(truncation, nlat - 3, (nlon - 1) // 2)
    core = BarotropicVorticity(truncation, helmholtz=0.8 * helmholtz_from_depth(), damping_hours=3.0)
    t = core.tables
    rng = np.random.default_rng(seed)
    l, m = np.meshgrid(np.arange(t.lmax + 1), np.arange(truncation + 1))
    amplitude = np.where((l >= m) & (l > 1) & (l <= truncation), 1.4e7 * (l + 1.0) ** -2.0, 0) * np.where(
        m > 0, 1, 0.15
    )
    amplitude *= np.exp(-(((m - 5) / 6.0) ** 2)) + 0.15
    psi = amplitude * (rng.standard_normal(l.shape) + 1j * np.where(m > 0, rng.standard_normal(l.shape), 0))
    # Zonal flow: solid rotation and two mid-latitude jets.
    mu = np.asarray(t.sin_latitude)
    from sciax.core.ops.sphere import analysis, truncate

    jets = -7.0e7 * mu - 2.2e7 * np.tanh((mu - 0.66) / 0.16) - 2.2e7 * np.tanh((mu + 0.66) / 0.16)
    zonal = truncate(analysis(jnp.broadcast_to(jnp.asarray(jets)[:, None], (t.grid.nlat, t.grid.nlon)), t), t)
    state = zonal + jnp.asarray(psi, zonal.dtype)
    grid = SphereGrid("equiangular_poles", nlat, nlon)
    out = sphere_tables(grid, truncation, t.degree.dtype)

    @eqx.filter_jit
    def advance(core, state):
        return core.advance(state, 900.0, int(4 * step_hours))

    @eqx.filter_jit
    def height(state, out):
        return 54500.0 + synthesis(geopotential_from_streamfunction(state, truncation), out)

    fields = []
    for _ in range(hours // step_hours + 1):
        fields.append(np.asarray(height(state, out), dtype=np.float32))
        state = advance(core, state)
    times = np.datetime64("2001-01-01T00", "ns") + np.arange(len(fields)) * np.timedelta64(step_hours, "h")
    return xr.Dataset(
        {"z": (("time", "level", "latitude", "longitude"), np.stack(fields)[:, None], {"units": "m2 s-2"})},
        coords={
            "time": times,
            "level": ("level", [500.0], {"units": "hPa"}),
            "latitude": grid.latitude,
            "longitude": grid.longitude,
        },
        attrs={"title": "synthetic geopotential, barotropic model, not weather"},
    )
