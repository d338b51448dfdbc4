"""The body of earth.series."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.core.jobs import Outcome, Run

if TYPE_CHECKING:
    from sciax.earth.jobs import SeriesConfig


def uniform_stretch(ds: xr.Dataset, run: Run) -> xr.Dataset:
    """The longest part of a series without gaps; stamps that are missing or repeated are dropped, and all of it is said."""
    from sciax.earth.data._times import check_times, hours

    if "time" not in ds.dims or "time" not in ds.coords:
        raise InputError("the series has no time axis", got=dict(ds.sizes))
    problems: list[str] = []
    before = ds.sizes["time"]
    ds, _ = check_times(ds, "time", True, problems)
    if ds.sizes["time"] < before:
        run.note(f"{before - ds.sizes['time']} missing or repeated time stamps dropped.")
    steps = hours(np.diff(ds["time"].values))
    breaks = np.flatnonzero(np.abs(steps - np.median(steps)) > 1e-6 * np.median(steps)) + 1
    edges = np.concatenate([[0], breaks, [ds.sizes["time"]]])
    k = int(np.argmax(np.diff(edges)))
    part = ds.isel(time=slice(int(edges[k]), int(edges[k + 1])))
    if part.sizes["time"] < ds.sizes["time"]:
        first, last = (str(t)[:10] for t in part["time"].values[[0, -1]])
        run.note(f"{len(breaks)} gap(s) in time: the longest stretch, {first} to {last}, is used.")
    return part


def series_job(config: "SeriesConfig", run: Run) -> Outcome:
    """Fit on the past, forecast what follows, compare with three baselines, say where there is no skill."""
    from matplotlib.figure import Figure

    from sciax.datasets.gridded import open_gridded
    from sciax.earth import samples
    from sciax.earth.models import SeriesModel, series_baselines, squared_errors
    from sciax.earth.verify import block_bootstrap

    if config.source == "generated":
        ds = samples.oscillation(seed=run.seed)
        run.note(f"{ds.attrs['title']}.")
    else:
        ds = open_gridded(run.input(Path(config.source)))
    ds = uniform_stretch(ds, run)
    names = config.variables or tuple(str(n) for n, v in ds.data_vars.items() if v.dims == ("time",))
    missing = [n for n in (*names, config.target) if n and (n not in ds or ds[n].squeeze().dims != ("time",))]
    if missing or not names:
        raise InputError(
            f"no series (time) named {', '.join(missing) or '...'}", expected=", ".join(map(str, ds.data_vars))
        )
    target = config.target or names[0]
    names = names if target in names else (*names, target)
    series = ds[list(names)].squeeze(drop=True).reset_coords(drop=True).to_dataarray("variable")
    series = series.transpose("time", "variable")
    times = series["time"].values
    until = config.train_until or str(times[int(0.7 * len(times))])[:19]
    model = SeriesModel(
        config.leads,
        lags=config.lags,
        means=config.means,
        random=config.random,
        lengths=config.lengths,
        ridges=config.ridges,
        seed=run.seed,
    )
    with run.progress("fitting", total=1) as bar:
        fitted = model.fit(series, until)
        bar.advance()
    first, last = str(times[0])[:10], str(times[-1])[:10]
    run.note(
        f"Trained on {first} to {fitted.trained_until[:10]}, judged on what follows to {last}; length scale and ridge "
        f"{fitted.chosen} by cross-validation inside the training period."
    )
    forecasts = {"model": fitted.predict(series)} | series_baselines(series, config.leads, until, model.annual)
    errors = {n: squared_errors(f, series, until).sel(variable=target, drop=True) for n, f in forecasts.items()}
    rmse = {n: e.mean("time") ** 0.5 for n, e in errors.items()}
    rivals = [n for n in errors if n != "model"]
    lines = [" " * 22 + "".join(f"{lead:>10d}" for lead in config.leads)]
    lines += [f"{n:<22}" + "".join(f"{v:>10.4g}" for v in r.values) for n, r in rmse.items()]
    run.note("RMSE by lead (steps)\n" + "\n".join(lines))
    skills, without = [], []
    for lead in config.leads:
        best = min(rivals, key=lambda n: float(rmse[n].sel(lead=lead)))
        pair = (errors[n].sel(lead=lead) for n in ("model", best))
        difference = block_bootstrap(*pair, block=config.block, samples=500, seed=run.seed)
        skills.append(1 - float(rmse["model"].sel(lead=lead)) / float(rmse[best].sel(lead=lead)))
        if not bool(difference.high < 0):
            without.append(str(lead))
    run.note(
        f"No skill over the best baseline at lead(s) {', '.join(without)} (block bootstrap, 95 %)."
        if without
        else "Better than the best baseline at every lead (block bootstrap, 95 %)."
    )
    run.dataset(xr.Dataset(rmse).assign(skill=("lead", skills)), "scores", "RMSE by lead, skill over the best baseline")
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    units = str(ds[target].attrs.get("units", ""))
    for name, values in rmse.items():
        left.plot(config.leads, values, "o-", ms=3.5, label=name.replace("_", " "))
    left.set(xlabel="lead (steps)", ylabel=f"RMSE of {target}" + (f" ({units})" if units else ""), ylim=(0, None))
    left.legend(frameon=False, fontsize=8)
    colours = ["#b0b0b0" if str(lead) in without else "#1f5fa8" for lead in config.leads]
    right.bar([str(lead) for lead in config.leads], 100 * np.array(skills), color=colours)
    right.axhline(0, color="black", lw=0.6)
    right.set(xlabel="lead (steps)", ylabel="skill over the best baseline (%)")
    right.set_title("grey: not significant", fontsize=9)
    run.figure(figure, "skill", f"Forecasts of {target} after the training period")
    lead = config.leads[0]
    best = min(rivals, key=lambda n: float(rmse[n].sel(lead=lead)))
    return Outcome(
        f"RMSE of {target}, {lead} step(s) ahead" + (f" ({units})" if units else ""),
        float(rmse["model"].sel(lead=lead)),
        float(rmse[best].sel(lead=lead)),
        None,
        f"best baseline, {best.replace('_', ' ')}; skill {100 * skills[0]:.0f} %",
    )
