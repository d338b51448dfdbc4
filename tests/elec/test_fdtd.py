"""FDTD scenes against exact answers: absorber, plane wave box, slab, cylinder."""

import numpy as np
import pytest

from sciax.elec import (
    C0,
    PML,
    Boundaries,
    Box,
    Dipole,
    FluxMonitor,
    GaussianPulse,
    Grid,
    Medium,
    PlaneWave,
    Probe,
    Scene,
    Simulation,
    Structure,
    analytic,
)
from sciax.elec.demo import cylinder_scene

UM = 1e-6
F = C0 / UM


def decibel(a, b):
    return 20 * np.log10(np.abs(a - b).max() / np.abs(b).max())


def dipole_run(cells, faces, dimension, duration, d=0.05 * UM):
    scene = Scene(
        Grid.uniform((cells * d,) * dimension, d),
        sources=[Dipole("s", (0.0,), "ez", GaussianPulse(F, F / 3))],
        monitors=[Probe("side", (8 * d,)), Probe("corner", (8 * d,) * dimension)],
        boundaries=Boundaries.all(faces),
        duration=duration,
        dtype="float64",
    )
    result = Simulation(scene)()
    return [np.asarray(result.signal(n, "ez")) for n in ("side", "corner")]


@pytest.mark.parametrize(("dimension", "far"), [(1, 900), (2, 420)])
def test_absorber_reflects_less_than_minus_80_db(dimension, far, x64):
    """Ten cells of PML, against a domain so large that nothing comes back; probes beside it and in a corner."""
    duration = (20 if dimension == 1 else 17) * UM / C0
    reference = dipole_run(far, "pec", dimension, duration)
    for got, want in zip(dipole_run(40, PML(10), dimension, duration), reference):
        assert decibel(got, want) < -80


@pytest.mark.slow
def test_absorber_reflects_less_than_minus_80_db_in_3d(x64):
    duration = 4.2 * UM / C0
    reference = dipole_run(90, "pec", 3, duration)
    for got, want in zip(dipole_run(40, PML(10), 3, duration), reference):
        assert decibel(got, want) < -80


@pytest.mark.parametrize("direction", ["+x", "-x", "+y"])
def test_plane_wave_box_leaks_only_rounding(direction, x64):
    """Empty box in 2-D: outside it the field is zero to 1e-12 of the incident one."""
    d = 0.05 * UM
    points = [(0.8 * UM, 0.0), (-0.8 * UM, 0.1 * UM), (0.0, 0.6 * UM), (0.6 * UM, -0.5 * UM)]
    outside = [Probe(f"out{i}", p) for i, p in enumerate(points)]
    scene = Scene(
        Grid.uniform((3 * UM, 2.5 * UM), d),
        sources=[PlaneWave("light", direction, "ez", GaussianPulse(F, F / 3), size=(1.0 * UM, 0.8 * UM))],
        monitors=[
            Probe("inside", (0.1 * UM, 0.1 * UM)),
            *outside,
        ],
        duration=25e-15,
        dtype="float64",
    )
    result = Simulation(scene)()
    inside = np.abs(result.signal("inside", "ez")).max()
    assert 0.7 < inside < 1.05
    for i in range(4):
        assert np.abs(result.signal(f"out{i}", "ez")).max() < 1e-12 * inside


def test_plane_wave_box_in_3d_and_on_a_graded_grid(x64):
    d = 0.05 * UM
    taper = np.linspace(d, 0.6 * d, 10)
    fine = np.concatenate([np.full(8, d), taper, np.full(10, 0.6 * d), taper[::-1], np.full(8, d)])
    edges = np.concatenate([[0.0], np.cumsum(fine)])
    edges -= edges[-1] / 2
    u = np.arange(-16, 17) * d
    scene = Scene(
        Grid(edges, u, u),
        sources=[PlaneWave("light", "+x", "ey", GaussianPulse(F, F / 3), size=(24 * d, 14 * d, 14 * d))],
        monitors=[
            Probe("inside", (0.0,), ("ey",)),
            Probe("out", (0.0, 9 * d, 2 * d), ("ey", "ex")),
            Probe("past", (14 * d,), ("ey",)),
        ],
        boundaries=Boundaries.all(PML(6)),
        duration=16e-15,
        dtype="float64",
    )
    result = Simulation(scene)()
    inside = np.abs(result.signal("inside", "ey")).max()
    assert inside > 0.6
    for name, c in (("out", "ey"), ("out", "ex"), ("past", "ey")):
        assert np.abs(result.signal(name, c)).max() < 1e-12 * inside


def slab_scene(cells: int, periodic: bool) -> Scene:
    """n = 2 slab, 0.5 um thick, faces off the grid lines; periodic across in the 2-D version."""
    d = UM / 2 / cells  # cells per wavelength in the slab at 1 um
    f = np.array([0.5, 0.75, 1.0, 1.25]) * F
    size = (4 * UM, 4 * d) if periodic else (4 * UM,)
    whole = (0.9 * UM, None, None)
    return Scene(
        Grid.uniform(size, d),
        structures=[Structure("slab", Box((0.013 * UM,), (0.5 * UM,)), Medium(4.0))],
        sources=[PlaneWave("light", "+x", "ez", GaussianPulse(F, F / 3), size=whole)],
        monitors=[FluxMonitor("back", f, (-0.7 * UM,)), FluxMonitor("through", f, (0.4 * UM,))],
        boundaries=Boundaries(x=PML(12), y="periodic"),
        duration=120e-15,
        dtype="float64",
    )


@pytest.mark.parametrize("periodic", [False, True])
def test_slab_reflects_and_transmits_as_airy_says(periodic, x64):
    scene = slab_scene(40, periodic)
    result = Simulation(scene)()
    f = scene.monitors[0].frequencies
    area = 1.0 if not periodic else np.ptp(scene.grid.y)
    incident = result.incident_power("light", f) * area
    reflected, transmitted = -np.asarray(result.flux("back")) / incident, np.asarray(result.flux("through")) / incident
    r, t = analytic.slab_power(2.0, 0.5 * UM, C0 / f)
    np.testing.assert_allclose(reflected[1:3], r[1:3], atol=2e-3)
    np.testing.assert_allclose(transmitted[1:3], t[1:3], atol=2e-3)
    np.testing.assert_allclose(reflected + transmitted, 1.0, atol=1e-4)


@pytest.mark.parametrize("component", [pytest.param("ez", marks=pytest.mark.slow), "hz"])
def test_cylinder_scatters_as_the_series_says(component, x64):
    sizes = np.array([1.0, 2.0, 3.0])
    f = sizes * C0 / (2 * np.pi * 0.5 * UM)
    result = Simulation(cylinder_scene(2.0, 0.5 * UM, 25, component, f)).run(decay=1e-6)
    found = np.asarray(result.flux("scattered")) / result.incident_power("light", f) / UM
    exact = [analytic.cylinder_scattering(2.0, x, component) for x in sizes]
    np.testing.assert_allclose(found, exact, rtol=0.025)
