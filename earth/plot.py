"""Pictures of fields and scores: matplotlib only, no map library."""

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.figure import Figure

from sciax.core.errors import InputError
from sciax.earth.data import VARIABLES, hours

_COLOURS = ("#1f5fa8", "#c0392b", "#6b6b6b", "#2e8b57", "#b8860b", "#7d3c98")


def _label(name: str) -> str:
    base, at, level = str(name).partition("@")
    known = VARIABLES.get(base)
    text = known.standard_name.replace("_", " ") if known else base
    return f"{text}, {level} hPa" if at else text


def _units(name: str) -> str:
    known = VARIABLES.get(str(name).partition("@")[0])
    return known.units if known else ""


def score_curves(data: xr.Dataset, score: str = "rmse") -> Figure:
    """Score against lead time: a panel for each channel (row) and region (column), a line for each model."""
    if score not in data:
        raise InputError(f"no score {score!r}", expected=", ".join(map(str, data.data_vars)))
    channels, regions = data["channel"].values, data["region"].values
    fig = Figure(figsize=(3.4 * len(regions) + 0.6, 2.7 * len(channels) + 0.5), layout="constrained")
    axes = fig.subplots(len(channels), len(regions), squeeze=False, sharex=True)
    lead = hours(data["lead_time"].values)
    for i, channel in enumerate(channels):
        for j, region in enumerate(regions):
            ax = axes[i, j]
            for k, model in enumerate(data["model"].values):
                values = data[score].sel(model=model, channel=channel, region=region).values
                ax.plot(
                    lead,
                    values,
                    "o-",
                    ms=3.5,
                    lw=1.6,
                    color=_COLOURS[k % len(_COLOURS)],
                    label=str(model).replace("_", " "),
                )
            ax.set_title(str(region), fontsize=10)
            ax.grid(alpha=0.3, lw=0.5)
            ax.spines[["top", "right"]].set_visible(False)
            if score in ("rmse", "mae", "crps", "spread"):
                ax.set_ylim(bottom=0)
            if j == 0:
                ax.set_ylabel(f"{score.upper()} of {_label(channel)}\n({_units(channel)})", fontsize=9)
            if i == len(channels) - 1:
                ax.set_xlabel("lead time (h)", fontsize=9)
    axes[0, 0].legend(fontsize=8, frameon=False)
    return fig


def score_card(skill: xr.DataArray, baseline: str, score: str = "rmse") -> Figure:
    """Skill against a baseline: rows are models, channels and regions, columns are leads; blue is better."""
    lead = hours(skill["lead_time"].values)
    rows, labels = [], []
    for model in skill["model"].values:
        if model == baseline:
            continue
        for channel in skill["channel"].values:
            for region in skill["region"].values:
                rows.append(skill.sel(model=model, channel=channel, region=region).values)
                labels.append(f"{str(model).replace('_', ' ')}  {channel}  {region}")
    if not rows:
        raise InputError("nothing to compare with the baseline", got=list(skill["model"].values))
    table = np.array(rows)
    limit = max(0.1, float(np.nanmax(np.abs(table[np.isfinite(table)]), initial=0.0)))
    fig = Figure(figsize=(1.2 + 2.6 + 0.62 * len(lead), 0.9 + 0.34 * len(rows)), layout="constrained")
    ax = fig.subplots()
    image = ax.imshow(table, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    ax.set_xticks(range(len(lead)), [f"{h:g}" for h in lead], fontsize=8)
    ax.set_yticks(range(len(rows)), labels, fontsize=8)
    ax.set_xlabel("lead time (h)", fontsize=9)
    for i, j in np.ndindex(table.shape):
        dark = abs(table[i, j]) > 0.6 * limit
        ax.text(
            j, i, f"{100 * table[i, j]:.0f}", ha="center", va="center", fontsize=7, color="white" if dark else "#333333"
        )
    ax.set_title(f"{score.upper()} skill over {baseline.replace('_', ' ')}, %", fontsize=10)
    fig.colorbar(image, ax=ax, shrink=0.9).ax.tick_params(labelsize=7)
    return fig


def maps(
    fields: dict[str, xr.DataArray], *, units: str | None = None, difference: set[str] | None = None, columns: int = 3
) -> Figure:
    """Maps side by side; those named in `difference` share a scale symmetric about zero, the others one of their own.

    Global fields are drawn with contours of their own values, so that the eye has lines to follow without a coastline.
    """
    difference = difference or set()
    shared = [f.values for n, f in fields.items() if n not in difference]
    apart = [f.values for n, f in fields.items() if n in difference]
    low, high = _limits(shared)
    reach = max((float(np.nanmax(np.abs(a))) for a in apart), default=1.0) or 1.0
    rows = -(-len(fields) // columns)
    first = next(iter(fields.values()))
    aspect = (
        first.sizes["lat"]
        * abs(float(first["lat"][1] - first["lat"][0]))
        / (first.sizes["lon"] * abs(float(first["lon"][1] - first["lon"][0])))
    )
    width = 4.1
    fig = Figure(figsize=(width * min(columns, len(fields)), rows * (width * aspect + 0.9)), layout="constrained")
    axes = np.atleast_1d(fig.subplots(rows, min(columns, len(fields)), squeeze=False)).ravel()
    for ax, (name, field) in zip(axes, fields.items()):
        field = field.squeeze().transpose("lat", "lon")
        lat, lon, values = field["lat"].values, field["lon"].values, field.values
        if name in difference:
            drawn = ax.pcolormesh(
                lon, lat, values, cmap="RdBu_r", vmin=-reach, vmax=reach, shading="nearest", rasterized=True
            )
        else:
            drawn = ax.pcolormesh(
                lon, lat, values, cmap="viridis", vmin=low, vmax=high, shading="nearest", rasterized=True
            )
            if np.isfinite(values).all() and high > low:
                ax.contour(
                    lon, lat, values, levels=np.linspace(low, high, 11)[1:-1], colors="white", linewidths=0.5, alpha=0.7
                )
        ax.set_title(name, fontsize=10)
        ax.set_aspect("equal")
        ax.tick_params(labelsize=8)
        fig.colorbar(drawn, ax=ax, orientation="horizontal", shrink=0.85, pad=0.03, aspect=30).ax.tick_params(
            labelsize=7
        )
    for ax in axes[len(fields) :]:
        ax.set_visible(False)
    label = units if units is not None else str(first.attrs.get("units", ""))
    if label:
        fig.supxlabel(f"colours in {label}", fontsize=9)
    return fig


def _limits(arrays: list[np.ndarray]) -> tuple[float, float]:
    finite = np.concatenate([a[np.isfinite(a)].ravel() for a in arrays]) if arrays else np.array([0.0, 1.0])
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def spectra(curves: dict[str, xr.DataArray], title: str = "") -> Figure:
    """Power spectra on log-log axes."""
    fig = Figure(figsize=(5.2, 3.6), layout="constrained")
    ax = fig.subplots()
    for k, (name, curve) in enumerate(curves.items()):
        x = curve[curve.dims[-1]].values
        ax.loglog(x[1:], np.maximum(curve.values[1:], 1e-300), lw=1.6, color=_COLOURS[k % len(_COLOURS)], label=name)
    ax.set_xlabel(str(next(iter(curves.values())).dims[-1]))
    ax.set_ylabel("variance")
    ax.set_title(title, fontsize=10)
    ax.grid(alpha=0.3, lw=0.5, which="both")
    ax.legend(fontsize=8, frameon=False)
    return fig


def animation(
    field: xr.DataArray,
    path: str | Path,
    *,
    over: str = "lead_time",
    every: int = 1,
    width: int = 480,
    cmap: str = "viridis",
) -> Path:
    """An animated GIF of a field (over, lat, lon), north up; one colour scale throughout.

    Raises:
        InputError: other dimensions left, or a path that is not .gif.
    """
    from PIL import Image

    path = Path(path)
    field = field.squeeze().transpose(over, "lat", "lon")
    if path.suffix != ".gif":
        raise InputError("animations are written as .gif", got=str(path))
    low, high = _limits([field.values])
    table = colormaps[cmap]
    frames = []
    for k in range(0, field.sizes[over], every):
        x = (field.isel({over: k}).values[::-1] - low) / max(high - low, 1e-300)
        rgb = (table(np.clip(x, 0, 1))[..., :3] * 255).astype(np.uint8)
        height = max(1, round(width * rgb.shape[0] / rgb.shape[1]))
        frames.append(Image.fromarray(rgb).resize((width, height), Image.Resampling.BILINEAR))
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=120, loop=0)
    return path
