"""Jobs of sciax.earth."""

from typing import Literal

from pydantic import Field

from sciax.core.jobs import JobConfig, Outcome, Run, job


class ForecastConfig(JobConfig):
    """Settings of earth.forecast."""

    source: str = Field(
        "sample",
        description='analyses: a NetCDF, GRIB or Zarr path; "sample" (six-hourly NCEP temperature over North America, from '
        'the package hvsampledata); "generated" (a global flow made by the project\'s own model)',
    )
    model: Literal["auto", "barotropic", "persistence", "damped_persistence", "climatology"] = Field(
        "auto",
        description="forecast model; auto: barotropic where there is global geopotential, else damped persistence",
    )
    channel: str = Field(
        "", description="field to forecast, as z@500 or t2m; empty: what the model is bound to, or all"
    )
    steps: int = Field(6, gt=0, description="forecast steps")
    step_hours: float | None = Field(None, description="hours in a step; default: the source's time step")
    members: int = Field(1, gt=0, description="ensemble members")
    start: str = Field(
        "", description="initial time; empty: the first time, or the middle of the source for fitted models"
    )
    regrid: Literal["none", "bilinear", "conservative", "spectral"] = Field(
        "none", description="regridding before the model"
    )
    truncation: int = Field(42, gt=1, description="truncation of spectral models and of the regridding target")
    baselines: tuple[str, ...] = Field((), description="baselines; empty: all that can be fitted to the source")


@job("earth.forecast", ForecastConfig, summary="A weather forecast from file to verification", tour=True)
def forecast(config: ForecastConfig, run: Run) -> Outcome:
    """Open, check, forecast, write CF NetCDF, verify against baselines, draw."""
    from pathlib import Path

    from sciax.earth import samples
    from sciax.earth._jobs import forecast_job

    if config.source in ("sample", "generated"):
        source, note = samples.load(config.source, seed=run.seed)
        run.note(note)
    else:
        source = run.input(Path(config.source))
    return forecast_job(config, run, source)


class WavesConfig(JobConfig):
    """Settings of earth.waves."""

    truncation: int = Field(21, ge=6, description="triangular truncation")
    days: float = Field(4.0, gt=0, description="length of the run")
    step_minutes: float = Field(20.0, gt=0, description="time step")


@job("earth.waves", WavesConfig, summary="A Rossby-Haurwitz wave against its exact phase speed", tour=True)
def waves(config: WavesConfig, run: Run) -> Outcome:
    """The wavenumber-4 wave of Haurwitz (1940) moves at an exactly known rate in the barotropic vorticity equation."""
    from sciax.earth._jobs import waves_job

    return waves_job(config, run)


class EmulatorConfig(JobConfig):
    """Settings of earth.emulator."""

    network: Literal["sfno", "afno"] = Field("sfno", description="spherical or adaptive Fourier neural operator")
    runs: int = Field(4, ge=2, description="generated runs; the last is kept for judging")
    days: float = Field(32.0, ge=6, description="length of each run")
    spin_up_days: float = Field(12.0, gt=0, description="days before them that are thrown away")
    channels: int = Field(20, gt=0, description="width of the network (afno: a multiple of 4)")
    depth: int = Field(2, gt=0, description="blocks of the network")
    train_steps: int = Field(200, gt=0, description="optimiser steps at one step ahead; a fifth as many follow at two")
    batch: int = Field(12, gt=0, description="pieces of trajectories in a step")
    rate: float = Field(4e-3, gt=0, description="peak learning rate")


@job("earth.emulator", EmulatorConfig, summary="A neural emulator of a synthetic flow, trained and judged")
def emulator(config: EmulatorConfig, run: Run) -> Outcome:
    """Train SFNO or AFNO on the project's own shallow-water runs; RMSE on an unseen run against three baselines."""
    from sciax.earth._emulator_job import emulator_job

    return emulator_job(config, run)


class SeriesConfig(JobConfig):
    """Settings of earth.series."""

    source: str = Field(
        "generated", description='a NetCDF file with series in time; "generated" (a noisy oscillation, synthetic)'
    )
    variables: tuple[str, ...] = Field((), description="series the model sees; empty: all that have only a time")
    target: str = Field("", description="the series that is judged; empty: the first")
    train_until: str = Field("", description="last time of the training period; empty: 70 % of the series")
    leads: tuple[int, ...] = Field((1, 5, 10, 15, 20), description="leads, in time steps")
    lags: tuple[int, ...] = Field((0, 1, 2, 4, 7), description="lagged values among the predictors")
    means: tuple[int, ...] = Field((15, 40, 120), description="running means (steps) among the predictors")
    random: int = Field(300, ge=0, description="random features; 0 for a linear model")
    lengths: tuple[float, ...] = Field((4.0, 8.0), description="length scales of the random features to choose from")
    ridges: tuple[float, ...] = Field((3.0, 10.0, 30.0, 100.0), description="ridges to choose from")
    block: int = Field(30, gt=0, description="block of the bootstrap, in time steps")


@job("earth.series", SeriesConfig, summary="A statistical forecast of a series, and where its skill ends")
def series(config: SeriesConfig, run: Run) -> Outcome:
    """Ridge autoregression with random features on a chronological split, against three baselines."""
    from sciax.earth._series_job import series_job

    return series_job(config, run)
