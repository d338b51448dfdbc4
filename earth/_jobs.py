"""The bodies of the earth jobs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sciax.core.errors import InputError
from sciax.core.jobs import Outcome, Run
from sciax.core.ops.sphere import SphereGrid
from sciax.earth._forecast import Forecast
from sciax.earth._grid import is_global
from sciax.earth._regrid import Regrid
from sciax.earth.data import canonicalise, channels_of, hours, stack
from sciax.earth.dynamics import gauss_grid
from sciax.earth.models import Barotropic, Climatology, DampedPersistence, ModelConfig, Persistence

if TYPE_CHECKING:
    from sciax.earth.jobs import ForecastConfig, WavesConfig


def _model(config: "ForecastConfig", ds) -> ModelConfig:
    name = config.model
    channels = {str(c) for c in channels_of(ds)}
    level = float(config.channel.partition("@")[2] or 500)
    if name == "auto":
        global_z = f"z@{level:g}" in channels and is_global(ds["lon"].values)
        name = "barotropic" if global_z else "damped_persistence"
    if name == "barotropic":
        return Barotropic(truncation=config.truncation, level=level)
    if name == "damped_persistence":
        days = ds.sizes["time"] and float(hours(ds["time"].values[-1] - ds["time"].values[0])) / 24
        # A few days cannot tell a correlation from noise: keep the anomaly, correct the time of day.
        return DampedPersistence(rho=1.0 if days < 60 else None)
    return {"persistence": Persistence, "climatology": Climatology}[name]()


def forecast_job(config: "ForecastConfig", run: Run, source: Any) -> Outcome:
    """Body of earth.forecast."""
    import xarray as xr

    from sciax.datasets.gridded import open_gridded
    from sciax.earth import plot

    opened = source if isinstance(source, xr.Dataset) else open_gridded(source)
    canonical, layout = canonicalise(opened)
    for note in layout.notes:
        run.note(note)
    if "time" not in canonical.dims:
        raise InputError("the source has no time axis", got=dict(canonical.sizes))
    model = _model(config, canonical)
    fitted = isinstance(model, DampedPersistence | Climatology)
    start: Any = config.start or None
    times = canonical["time"].values
    if start is None and fitted:
        start = times[max(len(times) - config.steps - 1, 3)] if len(times) > 4 else times[0]
    regrid = None
    if config.regrid != "none":
        grid: SphereGrid = gauss_grid(config.truncation)
        truncation = config.truncation if config.regrid == "spectral" else None
        regrid = Regrid(config.regrid, grid=grid, truncation=truncation)
    channels = (config.channel,) if config.channel else None
    fc = Forecast(
        canonical, model, regrid, config.steps, config.members, config.step_hours, start, channels, seed=run.seed
    )
    with run.progress(f"{fc.built().name} forecast", total=config.steps) as bar:
        done = 0

        def advance(step: int) -> None:
            nonlocal done
            bar.advance(step - done)
            done = step

        result = fc.run(chunk=4, progress=advance)
    run.dataset(
        layout.restore(result) if config.regrid == "none" else result,
        "forecast",
        "the forecast, in the source's layout",
    )
    baselines = config.baselines or (("persistence", "climatology") if fitted else ("persistence",))
    scores = fc.verify(baselines=baselines)
    for note in scores.notes:
        run.note(note)
    run.note(scores.table())
    run.dataset(scores.data, "scores", "scores by model, lead time, field and region")
    for lead in scores.data["lead_time"].values:
        for name in scores.data["model"].values:
            run.metric(
                model=str(name),
                lead_hours=float(hours(lead)),
                rmse=float(scores.data["rmse"].sel(model=name, lead_time=lead).isel(channel=0, region=0)),
            )
    run.figure(scores.plot(), "scores", "RMSE against lead time; the baselines start from the same analysis")
    lead_index = _last_scored(scores, fc)
    channel = fc.coords().channels[0]
    observed = stack(fc.data().sel(time=fc.valid_times()[lead_index]), (channel,)).isel(channel=0)
    predicted = stack(result.isel(init_time=0, lead_time=lead_index), (channel,)).isel(channel=0, member=0)
    if "member" in observed.dims:
        observed = observed.isel(member=0)
    lead_hours = float(hours(fc.leads()[lead_index]))
    units = str(result[channel.name].attrs.get("units", ""))
    fields = {
        f"forecast, {lead_hours:g} h": predicted,
        "analysis": observed,
        "forecast minus analysis": predicted - observed,
    }
    run.figure(
        plot.maps(fields, units=units, difference={"forecast minus analysis"}),
        "maps",
        f"{channel} at {lead_hours:g} h, member 0",
    )
    region = "nh" if "nh" in scores.data["region"].values else str(scores.data["region"].values[0])
    at = 24.0 if 24.0 in hours(scores.data["lead_time"].values) else lead_hours
    if fitted and 12.0 in hours(scores.data["lead_time"].values):
        at = 12.0
    name = fc.built().name
    value = scores.value("rmse", name, at, str(channel), region)
    base = scores.value("rmse", "persistence", at, str(channel), region)
    where = {"nh": "20-90N", "domain": "domain"}.get(region, region)
    return Outcome(
        f"{at:g} h RMSE of {channel}, {where} ({units})",
        value,
        base,
        None,
        f"persistence; skill {100 * (1 - value / base):.0f} %",
    )


def _last_scored(scores, fc: Forecast) -> int:
    last = scores.data["lead_time"].values[-1]
    return int(np.flatnonzero(fc.leads() == last)[0])


def waves_job(config: "WavesConfig", run: Run) -> Outcome:
    """Body of earth.waves."""
    import equinox as eqx
    import jax.numpy as jnp
    import xarray as xr
    from matplotlib.figure import Figure

    from sciax.core.ops.sphere import analysis, synthesis, truncate
    from sciax.earth.dynamics import BarotropicVorticity, rossby_haurwitz_speed, rossby_haurwitz_streamfunction

    core = BarotropicVorticity(config.truncation, damping_hours=None, radius=6.37122e6)
    t = core.tables
    psi = rossby_haurwitz_streamfunction(t.grid.latitude, t.grid.longitude)
    state = truncate(analysis(jnp.asarray(psi), t), t)
    dt = 60 * config.step_minutes
    steps = max(1, round(config.days * 86400 / dt / 8))

    @eqx.filter_jit
    def advance(core, state):
        return core.advance(state, dt, steps)

    phases, times, fields = [], [], []
    with run.progress("rotating the wave", total=8) as bar:
        for k in range(9):
            phases.append(float(jnp.angle(state[4, 5])) / 4)
            times.append(k * steps * dt / 86400)
            fields.append(np.asarray(synthesis(state, t)))
            if k < 8:
                state = advance(core, state)
                bar.advance()
            run.metric(day=times[-1], phase=phases[-1])
    # The wave moves east: e^{4 i (lon - c t)}, so the coefficient's phase falls.
    degrees = -np.degrees(np.unwrap(np.array(phases) * 4) / 4)
    speed = float(np.polyfit(times, degrees, 1)[0])
    exact = rossby_haurwitz_speed()
    fig = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=(3, 2))
    drawn = left.pcolormesh(t.grid.longitude, t.grid.latitude, fields[-1] / 1e6, cmap="RdBu_r", shading="nearest")
    left.set_title(f"stream function at day {times[-1]:.1f}", fontsize=10)
    left.set(xlabel="longitude", ylabel="latitude")
    fig.colorbar(drawn, ax=left, label="10$^6$ m$^2$ s$^{-1}$")
    right.plot(times, degrees - degrees[0], "o", color="#1f5fa8", label="model")
    right.plot(times, np.array(times) * exact, "-", color="#c0392b", lw=1.2, label=f"exact, {exact:.3f} degrees/day")
    right.set(xlabel="day", ylabel="longitude moved (degrees)")
    right.legend(frameon=False, fontsize=8)
    right.grid(alpha=0.3)
    run.figure(fig, "wave", "Rossby-Haurwitz wave 4 in the barotropic vorticity equation")
    ds = xr.Dataset(
        {
            "streamfunction": (
                ("time", "lat", "lon"),
                np.array(fields),
                {"units": "m2 s-1", "standard_name": "atmosphere_horizontal_streamfunction"},
            )
        },
        coords={
            "time": ("time", times, {"long_name": "days from the start"}),
            "lat": t.grid.latitude,
            "lon": t.grid.longitude,
        },
    )
    run.dataset(ds, "wave")
    return Outcome(
        "Rossby-Haurwitz 4 speed (degrees/day)", speed, exact, None, "Haurwitz (1940), closed form", tolerance=0.01
    )
