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
