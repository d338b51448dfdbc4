"""Embedded scenes and pictures of the jobs."""

from typing import Any

import numpy as np

from sciax.elec._grid import Grid
from sciax.elec._media import Medium
from sciax.elec._monitors import FieldMonitor, FluxMonitor
from sciax.elec._scene import Scene, Structure
from sciax.elec._shapes import Cylinder
from sciax.elec._sources import PlaneWave
from sciax.elec._waveforms import GaussianPulse


def cylinder_scene(
    index: float, radius: float, cells: int, component: str, frequencies, dtype: str = "float32"
) -> Scene:
    """A dielectric cylinder in a plane wave along +x; flux monitor "scattered" around it, field monitor "plane"."""
    d = radius / cells
    lo, hi = float(frequencies[0]), float(frequencies[-1])
    middle = 0.5 * (lo + hi)
    pulse = GaussianPulse(middle, max((hi - lo) / 3, middle / 6))
    box = 2.6 * radius
    outside = box + 12 * d
    across = "ez" if component == "ez" else "ey"
    components = ("ez",) if component == "ez" else ("hz",)
    grid = Grid.uniform((outside + 36 * d, outside + 36 * d), d)
    ringing = 40 * index * radius / 299792458.0
    return Scene(
        grid,
        structures=[Structure("cylinder", Cylinder((0.0, 0.0), radius), Medium(index**2))],
        sources=[PlaneWave("light", "+x", across, pulse, size=(box, box))],
        monitors=[
            FluxMonitor("scattered", frequencies, size=(outside, outside), normal="box"),
            FieldMonitor("plane", [middle], components=components),
        ],
        duration=pulse.end() + ringing,
        dtype=dtype,
    )


def scattering_figure(result: Any, component: str, sizes, found, exact, radius: float):
    """Field picture beside the spectrum."""
    from matplotlib.figure import Figure

    data = result["plane"][component]
    field = np.real(data.values[0, :, :, 0].T)
    um = 1e6
    x, y = data.x.values * um, data.y.values * um
    fig = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=(1, 1.25))
    top = np.quantile(np.abs(field), 0.999)
    left.imshow(field / top, extent=(x[0], x[-1], y[0], y[-1]), origin="lower", cmap="RdBu_r", vmin=-1, vmax=1)
    turn = np.linspace(0, 2 * np.pi, 200)
    left.plot(radius * um * np.cos(turn), radius * um * np.sin(turn), "k", lw=1)
    left.set(
        xlabel="x (µm)", ylabel="y (µm)", title=f"Re {component[0].upper()}$_{component[1]}$ at the middle of the band"
    )
    right.plot(sizes, exact, color="0.55", lw=3, label="exact series")
    right.plot(sizes, found, color="C0", lw=1.2, marker="o", ms=3.5, label="FDTD")
    right.set(
        xlabel="size parameter 2π radius / wavelength",
        ylabel="scattering efficiency",
        title="Light scattered by the cylinder",
    )
    right.legend(frameon=False)
    right.grid(alpha=0.3)
    return fig
