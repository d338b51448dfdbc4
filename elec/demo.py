"""Embedded scenes and pictures of the jobs."""

import itertools
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


def bend_scene(
    density: Any, wavelength: float = 1.55e-6, points: int = 3, dtype: str = "float32", picture: bool = True
) -> Scene:
    """A 90 degree bend of a silicon-like guide (eps 12.25 in 2.25, 400 nm) over a square of 1.6 um to be designed.

    Light comes in along +x from the left ("in") and is wanted along +y at the top ("out"). `picture` adds the monitor "plane"
    of the field everywhere, which a gradient would carry along for nothing.
    """
    from sciax.elec._media import Density
    from sciax.elec._modes import ModeMonitor, ModeSource
    from sciax.elec._shapes import Box

    um, d = 1e-6, 0.04e-6
    f0 = 299792458.0 / wavelength
    f = f0 * np.linspace(0.985, 1.015, points) if points > 1 else np.array([f0])
    pulse = GaussianPulse(f0, 0.1 * f0, delay=3.0)
    half = 0.8 * um
    reach = 1.44 * um  # to the absorber
    edge = reach + 10 * d
    # Guides reach under the square: at a seam of two structures that only touch, a cell would keep some of the background.
    far, lap = 3 * um, 0.2 * um
    guides = [
        Structure("left", Box((-(far + half - lap) / 2, 0.0), (far - half + lap, 0.4 * um)), Medium(12.25)),
        Structure("top", Box((0.0, (far + half - lap) / 2), (0.4 * um, far - half + lap)), Medium(12.25)),
    ]
    square = Structure("design", Box((0.0, 0.0), (2 * half, 2 * half)), Density(density, 2.25, 12.25))
    return Scene(
        Grid.uniform((2 * edge, 2 * edge), d),
        structures=[*guides, square],
        sources=[ModeSource("in", "+x", (-1.28 * um, 0.0), pulse, size=1.6 * um)],
        monitors=[
            ModeMonitor("arriving", f, (-1.0 * um, 0.0), "x", size=1.6 * um),
            ModeMonitor("leaving", f, (0.0, 1.0 * um), "y", size=1.6 * um),
            *([FieldMonitor("plane", [f0], components=("ez",))] if picture else []),
        ],
        duration=pulse.end() + 70e-15,
        background=Medium(2.25),
        dtype=dtype,
    )


def converter_scene(
    density: Any, spacing: float = 20e-9, points: int = 5, tail: float = 60e-15, dtype: str = "float32"
) -> Scene:
    """A converter of the fundamental into the second mode of a guide: 400 nm of eps 12.25 in 2.25, over a square of 1.6 um.

    Light comes in along +x ("in") and is wanted in the odd mode to the right; monitors "arriving" and "leaving" record both
    modes from 1260 to 1300 nm.

    Args:
        density: pixels of the square.
        spacing: of the grid (m).
        tail: time after the pulse (s); designs that ring want more.

    Source: the mode converter of the photonics-opt-testbed (M. F. Schubert et al., ACS Photonics 9 (2022) 2327).
    """
    from sciax.elec._boundaries import PML, Boundaries
    from sciax.elec._media import Density
    from sciax.elec._modes import ModeMonitor, ModeSource
    from sciax.elec._shapes import Box

    um = 1e-6
    f = 299792458.0 / (np.linspace(1.30, 1.26, points) * um)
    f0 = 299792458.0 / (1.28 * um)
    pulse = GaussianPulse(f0, 0.08 * f0, delay=3.0)
    half, far, lap, layers = 0.8 * um, 3 * um, 0.2 * um, 12
    edge = 1.4 * um + layers * spacing
    guides = [
        Structure("left", Box((-(far + half - lap) / 2, 0.0), (far - half + lap, 0.4 * um)), Medium(12.25)),
        Structure("right", Box(((far + half - lap) / 2, 0.0), (far - half + lap, 0.4 * um)), Medium(12.25)),
    ]
    square = Structure("design", Box((0.0, 0.0), (2 * half, 2 * half)), Density(density, 2.25, 12.25))
    return Scene(
        Grid.uniform((2 * edge, 2 * edge), spacing),
        structures=[*guides, square],
        sources=[ModeSource("in", "+x", (-1.3 * um, 0.0), pulse, size=2 * um)],
        monitors=[
            ModeMonitor("arriving", f, (-1.06 * um, 0.0), "x", size=2 * um, orders=(0, 1)),
            ModeMonitor("leaving", f, (1.06 * um, 0.0), "x", size=2 * um, orders=(0, 1)),
        ],
        boundaries=Boundaries.all(PML(layers)),
        duration=pulse.end() + tail,
        background=Medium(2.25),
        dtype=dtype,
    )


def converter_powers(result: Any):
    """(wanted, reflected): power into the odd mode, and back into the fundamental, of the arriving power; each (frequency,)."""
    import jax.numpy as jnp

    arriving, back = result.modes("arriving")
    leaving, _ = result.modes("leaving")
    return jnp.abs(leaving[:, 1] / arriving[:, 0]) ** 2, jnp.abs(back[:, 0] / arriving[:, 0]) ** 2


def inversion_scene(content: Any, dtype: str = "float32") -> Scene:
    """The two-disc inversion of MindElec: 1 m x 1 m of air, four line sources, eight receivers, unknown inner 40 cm.

    Args:
        content: pixels (40, 40) of the inner square, density 0 to 1 for permittivity 1 to 6; None: the truth, two discs of
            permittivity 4. Sources are "s0" ... "s3" (switch them by "s0.amplitude"), receivers "r0" ... "r7".

    Source: MindElec 0.2, AD_FDTD inverse scattering tutorial (sources 30 cm, receivers 25 cm from the middle).
    """
    from sciax.elec._media import Density
    from sciax.elec._monitors import Probe
    from sciax.elec._shapes import Box
    from sciax.elec._sources import Dipole
    from sciax.elec._waveforms import Ricker

    cm = 0.01
    structures = (
        [
            Structure("first", Cylinder((-8 * cm, -6 * cm), 6 * cm), Medium(4.0)),
            Structure("second", Cylinder((8 * cm, 7 * cm), 6 * cm), Medium(4.0)),
        ]
        if content is None
        else [Structure("unknown", Box((0.0, 0.0), (40 * cm, 40 * cm)), Density(content, 1.0, 6.0))]
    )
    pulse = Ricker(0.6e9)
    places = [(x * cm, y * cm) for x in (-25, 0, 25) for y in (-25, 0, 25) if x or y]
    return Scene(
        Grid.uniform((1.0, 1.0), cm),
        structures=structures,
        sources=[Dipole(f"s{i}", (30 * cm * c, 30 * cm * s), "ez", pulse) for i, (c, s) in enumerate(_ROUND)],
        monitors=[Probe(f"r{i}", at, ("ez",)) for i, at in enumerate(places)],
        duration=9e-9,
        dtype=dtype,
    )


_ROUND = ((-1, 0), (0, -1), (1, 0), (0, 1))


def inversion_signals(simulation: Any, params: dict):
    """Ez at all receivers for each source alone, (source, receiver, time)."""
    import jax
    import jax.numpy as jnp

    def one(amplitudes):
        result = simulation({**params, **{f"s{i}.amplitude": amplitudes[i] for i in range(4)}})
        return jnp.stack([result.signal(f"r{i}", "ez") for i in range(8)])

    return jax.vmap(one)(jnp.eye(4, dtype=simulation.scene.dtype))


def design_figure(result: Any, density, history, pixel: float):
    """Design, field and history."""
    from matplotlib.figure import Figure

    um = 1e6
    data = result["plane"]["ez"]
    field = np.abs(data.values[0, :, :, 0].T) ** 2
    x, y = data.x.values * um, data.y.values * um
    fig = Figure(figsize=(12.5, 3.9), layout="constrained")
    left, middle, right = fig.subplots(1, 3)
    half = density.shape[0] * pixel * um / 2
    left.imshow(1 - density.T, extent=(-half, half, -half, half), origin="lower", cmap="gray", vmin=0, vmax=1)
    left.set(title="Design (black: high index)", xlabel="x (µm)", ylabel="y (µm)")
    middle.imshow(
        field / np.quantile(field, 0.998),
        extent=(x[0], x[-1], y[0], y[-1]),
        origin="lower",
        cmap="inferno",
        vmax=1,
        vmin=0,
    )
    middle.contour(
        x[np.abs(x) < half],
        y[np.abs(y) < half],
        _resample(density, (np.abs(x) < half).sum()).T,
        levels=[0.5],
        colors="w",
        linewidths=0.6,
    )
    middle.set(title="|E$_z$|² at 1.55 µm", xlabel="x (µm)", ylabel="y (µm)")
    right.plot([s.iteration for s in history], [s.value for s in history], "o-", ms=3.5)
    for s, t in itertools.pairwise(history):
        if t.beta != s.beta:
            right.axvline(s.iteration + 0.5, color="0.8", lw=1)
    right.set(
        title="Transmitted less reflected power",
        xlabel="iteration (lines: steeper projection)",
        ylabel="mean |S$_{21}$|² - |S$_{11}$|²",
        ylim=(0, 1.02),
    )
    right.grid(alpha=0.3)
    return fig


def _resample(density, n: int):
    from scipy import ndimage

    return ndimage.zoom(np.asarray(density), n / density.shape[0], order=1)
