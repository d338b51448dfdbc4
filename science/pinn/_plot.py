"""Pictures of solutions and of trainings."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sciax.science.pde import Field


def plot(solution: Any, field: Field, title: str | None, t: Any) -> Figure:
    """Curves, colours over (x, t) or (x, y); vectors by their magnitude."""
    frame = solution.system.frame
    data = solution.to_xarray(count=161, times=101)[field.name]
    if frame.timed and (t is not None or frame.dim > 1):
        data = data.sel(t=frame.upper[-1] if t is None else t, method="nearest")
    if field.components is not None:
        data = np.sqrt((data**2).sum(f"{field.name}_component", skipna=False))
    if frame.dim == 3:
        data = data.isel(z=data.sizes["z"] // 2)
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    dims = list(data.dims)
    if len(dims) == 1:
        axes.plot(data[dims[0]], data)
        axes.set_xlabel(dims[0])
        axes.set_ylabel(field.name)
    else:
        across, up = ("t", "x") if "t" in dims else (dims[0], dims[1])
        values = data.transpose(up, across).values
        bound = np.nanmax(np.abs(values)) or 1.0
        signed = np.nanmin(values) < 0 < np.nanmax(values)
        limits: Any = {"vmin": -bound, "vmax": bound} if signed else {}
        image = axes.pcolormesh(
            data[across],
            data[up],
            values,
            cmap="RdBu_r" if signed else "viridis",
            shading="gouraud" if np.isfinite(values).all() else "nearest",
            **limits,
        )
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        if across != "t":
            axes.set_aspect("equal")
        figure.colorbar(image, ax=axes, label=field.name if field.components is None else f"|{field.name}|")
    axes.set_title(title or f"{field.name}, physics-informed network")
    return figure


def loss_history(ax: Any, info: Any) -> None:
    """Loss against steps, warm-up and second stage told apart."""
    steps = np.arange(1, len(info.loss) + 1)
    ax.semilogy(steps[: info.adam], info.loss[: info.adam], lw=0.8, label="warm-up")
    if len(info.loss) > info.adam:
        ax.semilogy(steps[info.adam :], info.loss[info.adam :], lw=0.8, label=info.optimizer or "second stage")
    ax.set_xlabel("steps")
    ax.set_ylabel("loss")
    ax.legend(frameon=False)
