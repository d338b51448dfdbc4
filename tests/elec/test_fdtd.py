"""FDTD scenes against exact answers: absorber, plane wave box, slab, cylinder."""

from dataclasses import replace

import numpy as np
import pytest

from sciax.core.errors import InputError, UnsupportedError
from sciax.elec import (
    C0,
    PML,
    Bloch,
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
    match_dispersion,
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


def oblique_scene(structures, angle: float, cells: int, **more) -> Scene:
    """Ez under a Bloch phase along y that makes `angle` (degrees) at the frequency F."""
    d = UM / 2 / cells
    k = 2 * np.pi * F / C0 * np.sin(np.deg2rad(angle))
    f = F * np.array([0.85, 1.0, 1.2])
    return Scene(
        Grid.uniform((4 * UM, 4 * d), d),
        structures,
        [PlaneWave("light", "+x", "ez", GaussianPulse(1.05 * F, F / 12), size=(1.4 * UM, None))],
        [
            FluxMonitor("back", f, (-0.9 * UM,)),
            FluxMonitor("through", f, (0.5 * UM,)),
            Probe("outside", (-1.0 * UM,)),
            Probe("inside", (0.1 * UM,)),
        ],
        Boundaries(x=PML(20), y=Bloch(k)),
        duration=200e-15,
        dtype="float64",
        **more,
    )


def test_oblique_plane_wave_leaks_only_rounding_and_obeys_fresnel(x64):
    """36 to 56 degrees on a slab of n = 2: s-polarised Airy formula, energy kept; empty box dark outside."""
    empty = Simulation(oblique_scene([], 45.0, 20))()
    inside, outside = (np.abs(empty.signal(n, "ez")).max() for n in ("inside", "outside"))
    assert inside > 0.5 and outside < 1e-12 * inside
    slab = Structure("slab", Box((0.013 * UM,), (0.5 * UM,)), Medium(4.0))
    scene = match_dispersion(oblique_scene([slab], 45.0, 40), F)
    result = Simulation(scene)()
    f = scene.monitors[0].frequencies
    incident = result.incident_power("light", f) * np.ptp(scene.grid.edges[1])
    r, t = -np.asarray(result.flux("back")) / incident, np.asarray(result.flux("through")) / incident
    outer = np.arcsin(F / f * np.sin(np.deg2rad(45.0)))
    inner = np.cos(np.arcsin(np.sin(outer) / 2.0))
    face = (np.cos(outer) - 2 * inner) / (np.cos(outer) + 2 * inner)
    turn = np.exp(2j * 2 * np.pi * f / C0 * 2 * inner * 0.5 * UM)
    want = np.abs(face * (1 - turn) / (1 - face**2 * turn)) ** 2
    np.testing.assert_allclose(r, want, atol=2e-3)
    np.testing.assert_allclose(r + t, 1.0, atol=1e-3)


def test_oblique_plane_waves_say_what_they_need(x64):
    with pytest.raises(UnsupportedError, match="travels along an axis"):
        PlaneWave("light", (1.0, 1.0, 0.0), "ez", GaussianPulse(F, F / 3), size=(UM, UM))  # type: ignore[arg-type]
    base = oblique_scene([], 45.0, 20)
    along = PlaneWave("light", "+x", "ey", GaussianPulse(F, F / 12), size=(1.4 * UM, None))
    with pytest.raises(UnsupportedError, match="across its direction and its polarisation"):
        Simulation(replace(base, sources=[along], monitors=[]))()
    short = PlaneWave("light", "+x", "ez", GaussianPulse(F, F / 12), size=(1.4 * UM, 0.1 * UM))
    with pytest.raises(InputError, match="must span the Bloch axis"):
        Simulation(replace(base, sources=[short], monitors=[]))()
