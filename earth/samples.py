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


def shallow_water_runs(
    runs: int,
    days: float,
    *,
    step_hours: float = 12.0,
    spin_up_days: float = 20.0,
    truncation: int = 31,
    out: int = 21,
    jet_speed: float = 75.0,
    jet_width: float = 7.0,
    relaxation_days: float = 5.0,
    seed: int = 0,
) -> xr.Dataset:
    """Synthetic weather: forced shallow water over a mountain, relaxed to unstable jets; u, v, h on a Gauss grid.

    The flow forgets its random start in the spin-up and goes on for ever, so that it has a climate. Dims (run, time, lat, lon),
    float32, truncated to `out`.
    """
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from sciax.core.ops.sphere import sphere_tables, synthesis, vector_synthesis
    from sciax.earth.dynamics import ShallowWater, gauss_grid

    grid, small = gauss_grid(truncation), gauss_grid(out)
    lat, lon = np.radians(grid.latitude)[:, None], np.radians(grid.longitude)[None]
    hill = 1500 * np.exp(-(((lat - 0.7) / 0.25) ** 2) - ((np.angle(np.exp(1j * (lon - 1.5))) / 0.35) ** 2))
    model = ShallowWater(truncation, mean_depth=8000.0, orography=hill, damping_hours=6.0, dtype=jnp.float32)
    # Westerly jets at 45 degrees of both hemispheres, steep enough to be unstable, in gradient-wind balance in the mean.
    mu = grid.sin_latitude
    u = jet_speed * np.exp(-(((np.abs(np.degrees(np.arcsin(mu))) - 45) / jet_width) ** 2))
    force = u * (2 * model.rotation * mu + np.tan(np.arcsin(mu)) * u / model.radius) * model.radius / model.gravity
    theta = np.arcsin(mu)
    drop = np.concatenate([[0.0], np.cumsum((force[1:] + force[:-1]) / 2 * np.diff(theta))])
    h = 8000 - drop + (drop * grid.weights).sum() / 2
    wide = np.ones((1, grid.nlon))
    target = model.state(u[:, None] * wide, 0 * lat * wide, h[:, None] * wide - hill)
    dt, rest = 1200.0, 1200.0 / (relaxation_days * 86400)
    tables = sphere_tables(small, out, jnp.float32)
    steps = round(step_hours * 3600 / dt)

    def relaxed(state, _):
        new = model.step(state, dt)
        return jax.tree.map(lambda x, goal: x + rest * (goal - x), new, goal), None

    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((runs, *model.tables.spectral_shape)) + 1j * rng.standard_normal(
        (runs, *model.tables.spectral_shape)
    )
    l = np.arange(model.tables.lmax + 1)
    noise = np.triu(noise) * np.where((l > 1) & (l < 12), 4e-6, 0)
    noise[:, 0] = noise[:, 0].real
    state = jax.tree.map(lambda x: jnp.broadcast_to(x[..., None, :, :], (*x.shape[:-2], runs, *x.shape[-2:])), target)
    goal = state
    state = state._replace(vorticity=state.vorticity + jnp.asarray(noise, jnp.complex64))
    cut = (slice(None), slice(0, out + 1), slice(0, out + 2))

    @eqx.filter_jit
    def advance(state):
        state, _ = jax.lax.scan(relaxed, state, None, length=steps)
        zeta, delta, phi = (x[cut].at[..., -1].set(0) for x in state[:3])
        u, v = vector_synthesis(zeta, delta, tables, model.radius)
        return state, jnp.stack([u, v, synthesis(phi, tables) / model.gravity])

    fields = []
    spin, count = round(spin_up_days * 24 / step_hours), round(days * 24 / step_hours)
    for k in range(spin + count):
        state, snapshot = advance(state)
        if k >= spin:
            fields.append(np.asarray(snapshot))
    array = np.stack(fields, axis=2)  # (field, run, time, lat, lon)
    times = np.datetime64("2001-01-01", "ns") + np.arange(count) * np.timedelta64(round(step_hours * 60), "m")
    dims = ("run", "time", "lat", "lon")
    data = {n: (dims, a, {"units": unit}) for n, a, unit in zip(("u", "v", "h"), array, ("m s-1", "m s-1", "m"))}
    return xr.Dataset(
        data,
        coords={"time": times, "lat": small.latitude, "lon": small.longitude},
        attrs={"title": "synthetic: forced shallow water, not weather"},
    )


def oscillation(steps: int = 4000, *, period: float = 45.0, keep: float = 0.97, noise: float = 0.25, seed: int = 0):
    """Two daily series "a", "b": x(t + 1) = keep R(2 pi / period) x(t) + noise, plus an annual cycle of amplitude 3.

    Synthetic. The best possible RMSE at lead L is noise sqrt(sum_{j < L} keep^(2 j)).
    """
    rng = np.random.default_rng(seed)
    turn = 2 * np.pi / period
    step = keep * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    x = np.zeros((steps, 2))
    for k in range(1, steps):
        x[k] = step @ x[k - 1] + noise * rng.standard_normal(2)
    x += 3 * np.cos(2 * np.pi * np.arange(steps) / 365.25)[:, None]
    time = np.datetime64("1990-01-01", "ns") + np.arange(steps) * np.timedelta64(1, "D")
    title = "Synthetic: a damped, noisy oscillation with an annual cycle, not an index of weather"
    return xr.Dataset({"a": ("time", x[:, 0]), "b": ("time", x[:, 1])}, coords={"time": time}, attrs={"title": title})
