"""Scores of several models side by side: one dataset, a table, a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth._grid import is_global
from sciax.earth.data import hours, stack
from sciax.earth.models import ClimatologyFields, Coords, calendar_of
from sciax.earth.verify import _deterministic as det
from sciax.earth.verify import _ensemble as ens

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Scores:
    """Scores by (model, lead_time, channel, region); `notes` says what could not be scored."""

    data: xr.Dataset
    notes: tuple[str, ...] = ()

    def value(
        self, score: str, model: str, lead_hours: float, channel: str | None = None, region: str | None = None
    ) -> float:
        """One number."""
        da = self.data[score].sel(model=model)
        da = da.sel(channel=channel) if channel else da.isel(channel=0)
        da = da.sel(region=region) if region else da.isel(region=0)
        lead = hours(da["lead_time"].values)
        index = np.flatnonzero(np.abs(lead - lead_hours) < 1e-6)
        if index.size == 0:
            raise InputError(f"no scores at lead {lead_hours:g} h", expected=", ".join(f"{h:g}" for h in lead))
        return float(da.isel(lead_time=int(index[0])))

    def skill(self, baseline: str, score: str = "rmse") -> xr.DataArray:
        """1 - score / score of the baseline: positive where a model is better."""
        return 1 - self.data[score] / self.data[score].sel(model=baseline, drop=True)

    def table(self, score: str = "rmse") -> str:
        """Text table: a block for every channel and region, a row for every model, a column for every lead."""
        lead = hours(self.data["lead_time"].values)
        lines = []
        for channel in self.data["channel"].values:
            for region in self.data["region"].values:
                lines.append(f"{score} of {channel}, {region}")
                lines.append(" " * 22 + "".join(f"{h:>9g} h" for h in lead))
                for model in self.data["model"].values:
                    row = self.data[score].sel(model=model, channel=channel, region=region).values
                    lines.append(f"{model:<22}" + "".join(f"{v:>11.4g}" for v in row))
        return "\n".join(lines)

    def plot(self, score: str = "rmse") -> "Figure":
        """Score against lead time, a panel for each channel and region."""
        from sciax.earth.plot import score_curves

        return score_curves(self.data, score)

    def card(self, baseline: str, score: str = "rmse") -> "Figure":
        """Score card: skill against a baseline as coloured cells, lead by channel and region."""
        from sciax.earth.plot import score_card

        return score_card(self.skill(baseline, score), baseline, score)


def score_models(
    results: dict[str, xr.Dataset],
    truth: xr.Dataset,
    coords: Coords,
    climatology: ClimatologyFields | None = None,
    regions: Sequence[str] | None = None,
) -> Scores:
    """Score forecasts (dims init_time, lead_time, member, ...) against analyses (dim time) at their valid times.

    With members on both sides (an ensemble of analyses) each member is scored against its own; with members in the forecast
    only, their mean is scored and spread, fair CRPS and spread-skill ratio are added.

    Raises:
        InputError: no valid time in the truth.
    """
    first = next(iter(results.values()))
    valid = first["valid_time"].values.ravel()
    have = set(truth["time"].values.tolist())
    keep = [i for i, t in enumerate(valid.tolist()) if t in have]
    notes = []
    if len(keep) < len(valid):
        notes.append(f"{len(valid) - len(keep)} of {len(valid)} valid times are not in the truth and are left out")
    if not keep:
        raise InputError(
            "no valid time of the forecast is in the truth",
            got=f"{str(valid[0])[:19]} to {str(valid[-1])[:19]}",
            expected=f"truth has {str(truth['time'].values[0])[:19]} to {str(truth['time'].values[-1])[:19]}",
        )
    if regions is None:
        regions = ("globe", "nh", "sh", "tropics") if _covers_globe(truth) else ("domain",)
    observed = stack(truth.sel(time=valid[keep]), coords.channels).rename(time="lead_time")
    observed = observed.assign_coords(lead_time=first["lead_time"].values[keep])
    clim = None
    if climatology is not None:
        fields = np.stack([np.asarray(climatology(w)) for w in calendar_of(valid[keep])])
        clim = observed.isel(member=0, drop=True) if "member" in observed.dims else observed
        clim = clim.transpose("lead_time", "channel", "lat", "lon").copy(data=fields.astype(clim.dtype))
    scored = []
    for result in results.values():
        fc = stack(result.isel(init_time=0), coords.channels).isel(lead_time=keep)
        per_region = [_scores(fc, observed, clim, r) for r in regions]
        scored.append(xr.concat(per_region, dim="region").assign_coords(region=list(regions)))
    data = xr.concat(scored, dim="model").assign_coords(model=list(results))
    data["lead_time"].attrs = {"standard_name": "forecast_period"}
    # One pass over lazy data: a table, a picture and a skill would each read them again.
    return Scores(data.transpose("model", "lead_time", "channel", "region").load(), tuple(notes))


def _scores(fc: xr.DataArray, observed: xr.DataArray, clim: xr.DataArray | None, name: str) -> xr.Dataset:
    if name != "domain":
        fc, observed = (det.region(x, name) for x in (fc, observed))
        clim = det.region(clim, name) if clim is not None else None
    out: dict[str, xr.DataArray] = {}
    paired = "member" in observed.dims
    over = ("lat", "lon", "member") if paired else ("lat", "lon")
    center = fc if paired else fc.mean("member")
    if paired:
        observed = observed.isel(member=slice(0, fc.sizes["member"])).assign_coords(member=fc["member"].values)
    out["rmse"] = det.rmse(center, observed, over)
    out["mae"] = det.mae(center, observed, over)
    out["bias"] = det.bias(center, observed, over)
    if clim is not None:
        out["acc"] = det.acc(center, observed, clim, over)
    if not paired and fc.sizes["member"] > 1:
        out["crps"] = det.weighted_mean(ens.crps(fc, observed, fair=True), ("lat", "lon"))
        out["spread"] = ens.spread(fc, over=("lat", "lon"))
        out["spread_skill"] = ens.spread_skill_ratio(fc, observed, over=("lat", "lon"))
    return xr.Dataset(out).drop_vars("valid_time", errors="ignore")


def _covers_globe(ds: xr.Dataset) -> bool:
    lat = ds["lat"].values
    return is_global(ds["lon"].values) and lat[0] < -75 and lat[-1] > 75
