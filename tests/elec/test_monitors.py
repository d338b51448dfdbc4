"""What monitors record: energy and outflow of a box, snapshots, the lattice's own flux balance."""

import numpy as np
import pytest

from sciax.core.errors import InputError, UnsupportedError
from sciax.elec import (
    C0,
    PML,
    Bloch,
    Boundaries,
    Cylinder,
    Dipole,
    EnergyMonitor,
    FluxMonitor,
    GaussianPulse,
    Grid,
    Medium,
    Probe,
    Scene,
    Simulation,
    SnapshotMonitor,
    Sphere,
    Structure,
)

UM = 1e-6
F = C0 / UM
PULSE = GaussianPulse(F, F / 2, delay=3.0)


def scene(**change):
    options = {
        "grid": Grid.uniform((1.9 * UM, 1.8 * UM), 0.05 * UM),
        "sources": [Dipole("s", (0.0, 0.0), "ez", PULSE)],
        "duration": 20e-15,
        "dtype": "float64",
    } | change
    return Scene(**options)


@pytest.mark.parametrize(
    "what",
    [
        {},
        pytest.param({"sources": [Dipole("s", (0.0, 0.0), "hz", PULSE)]}, marks=pytest.mark.slow),
        {
            "grid": Grid.uniform((0.8 * UM, 0.7 * UM, 0.6 * UM), 0.05 * UM),
            "structures": [Structure("ball", Sphere((0.1 * UM, 0.0, 0.0), 0.2 * UM), Medium(3.0, permeability=1.5))],
            "boundaries": Boundaries(x="periodic", y="pec", z=("pmc", PML(3))),
            "monitors": [EnergyMonitor("w", (0.0, 0.0, -0.1 * UM), (None, 0.5 * UM, 0.2 * UM))],
        },
    ],
    ids=["ez", "hz", "3-D, ball"],
)
def test_energy_that_is_missing_flowed_out(what, x64):
    """Poynting's theorem of the lattice, to rounding, from the end of the source on."""
    smooth = {
        "smoothing": "diagonal",
        "structures": [Structure("disc", Cylinder((0.1 * UM, 0.0), 0.2 * UM), Medium(4.0))],
    }
    built = scene(**({"monitors": [EnergyMonitor("w", size=(0.8 * UM, 0.7 * UM))]} | smooth | what))
    result = Simulation(built)()
    energy = np.asarray(result.signal("w", "electric") + result.signal("w", "magnetic"))
    out = np.asarray(result.signal("w", "outflow"))
    tau = 1 / (2 * np.pi * PULSE.width)
    quiet = int((PULSE.delay + 8.5) * tau / built.dt) + 2  # the Gaussian has fallen below rounding
    assert energy[quiet] > 1.2 * energy[-1] > 0
    balance = energy[quiet + 1 :] - energy[quiet:-1] + built.dt * out[quiet:-1]
    assert np.abs(balance).max() < 1e-11 * energy[quiet]
    assert np.abs(np.diff(energy[quiet:])).max() > 1e-4 * energy[quiet]
    labelled = result["w"]
    assert labelled.outflow.attrs["units"] == "W" and labelled.electric.dims == ("time_energy",)


@pytest.mark.slow
def test_flux_through_a_closed_box_without_sources_vanishes(x64):
    """The same balance in the frequency domain: a lossless ball beside a dipole, ringing down."""
    f = [0.8 * F, F]
    built = scene(
        sources=[Dipole("s", (-0.45 * UM, 0.1 * UM), "ez", PULSE)],
        structures=[Structure("disc", Cylinder((0.15 * UM, 0.0), 0.2 * UM), Medium(2.0))],
        monitors=[
            FluxMonitor("empty", f, (0.15 * UM, 0.0), (0.6 * UM, 0.6 * UM), "box"),
            FluxMonitor("all", f, size=(1.2 * UM, 1.0 * UM), normal="box"),
        ],
        grid=Grid.uniform((2.4 * UM, 2.2 * UM), 0.05 * UM),
        duration=200e-15,
    )
    result = Simulation(built)()
    assert np.abs(np.asarray(result.flux("empty")) / np.asarray(result.flux("all"))).max() < 1e-6


def test_snapshots_are_the_field_of_their_step(x64):
    at = (0.2 * UM, 0.1 * UM)
    built = scene(
        monitors=[
            SnapshotMonitor("film", [8e-15, 13e-15], components=("ez", "hx")),
            Probe("p", (at[0] + 0.025 * UM, at[1] + 0.025 * UM), ("ez",)),
        ]
    )
    result = Simulation(built)()
    film = result["film"]
    assert film.ez.dims == ("time", "x", "y", "z") and film.ez.attrs["units"] == "V m-1"
    assert np.abs(film.time.values - [8e-15, 13e-15]).max() <= built.dt / 2
    signal, time = np.asarray(result.signal("p", "ez")), result.time("ez")
    want = np.interp(film.time.values, time, signal)
    got = film.ez.sel(x=at[0] + 0.025 * UM, y=at[1] + 0.025 * UM, method="nearest").values[:, 0]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.abs(signal).max())
    with pytest.raises(InputError, match="after the end of the run"):
        Simulation(scene(monitors=[SnapshotMonitor("film", [1.0])]))
    with pytest.raises(InputError, match="not negative"):
        SnapshotMonitor("film", [-1.0])


def test_energy_refuses_what_it_cannot_say(x64):
    whole = EnergyMonitor("w", size=(0.8 * UM, 0.8 * UM))
    disc = Cylinder((0.0, 0.0), 0.2 * UM)
    for change, error, says in (
        (
            {"structures": [Structure("d", disc, Medium(2.0, conductivity=5.0))]},
            UnsupportedError,
            "lossy or dispersive 'd'",
        ),
        ({"structures": [Structure("d", disc, Medium(2.0))]}, UnsupportedError, "couples neighbouring"),
        ({"boundaries": Boundaries(y=Bloch(1e6))}, UnsupportedError, "are complex"),
        ({"monitors": [EnergyMonitor("w")]}, InputError, "reaches into the absorber at low x"),
    ):
        with pytest.raises(error, match=says):
            Simulation(scene(**({"monitors": [whole]} | change)))


@pytest.mark.slow
def test_mirror_planes_through_smoothed_interfaces_stay_stable_in_3d(x64):
    """A ball cut by three mirror planes of both kinds, full tensor on the planes: nothing grows (NanoComp/meep#3222)."""
    grid = Grid(*(np.arange(11) * 0.05 * UM,) * 3)
    built = scene(
        grid=grid,
        sources=[Dipole("s", (0.1 * UM, 0.15 * UM, 0.2 * UM), "ey", GaussianPulse(0.6 * F, F / 8, delay=3.0))],
        structures=[Structure("ball", Sphere((0.0, 0.0, 0.0), 0.283 * UM), Medium(12.0))],
        monitors=[Probe("p", (0.3 * UM, 0.15 * UM, 0.1 * UM), ("ey", "ex"))],
        boundaries=Boundaries(x=("pmc", "pec"), y=("pec", "pec"), z=("pec", "pec")),
        duration=2000 * 0.95 * grid.courant_limit(),
    )
    result = Simulation(built)()
    for c in ("ey", "ex"):
        y = np.abs(np.asarray(result.signal("p", c)))
        assert 0 < y[-700:].max() < 1.5 * y[300:1000].max()
