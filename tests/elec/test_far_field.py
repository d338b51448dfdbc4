"""Near field to far field: dipoles in closed form, the scattering pattern of a cylinder, power, refusals."""

import numpy as np
import pytest

from sciax.core.errors import InputError, UnsupportedError
from sciax.elec import (
    C0,
    PML,
    Z0,
    Boundaries,
    Box,
    Cylinder,
    Dipole,
    FarFieldMonitor,
    GaussianPulse,
    Grid,
    Medium,
    PlaneWave,
    Scene,
    Simulation,
    Structure,
    analytic,
)

UM = 1e-6
F = C0 / UM
PULSE = GaussianPulse(F, F / 3)


def dipole_pattern(component, position, frequency, theta, phi):
    """(E_theta, E_phi) r e^{-ikr} of a unit current element: i k Z/(4 pi) and the direction's share (C. A. Balanis, 4.2)."""
    k = 2 * np.pi * frequency / C0
    a = "xyz".index(component[1])
    t = (np.cos(theta) * np.cos(phi), np.cos(theta) * np.sin(phi), -np.sin(theta))[a]
    p = (-np.sin(phi), np.cos(phi), np.zeros_like(phi))[a]
    towards = (np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta))
    phase = np.exp(-1j * k * sum(q * d for q, d in zip(position, towards))) * 1j * k / (4 * np.pi)
    return (Z0 * t * phase, Z0 * p * phase) if component[0] == "e" else (p * phase, -t * phase)


@pytest.mark.parametrize("component", [pytest.param("ez", marks=pytest.mark.slow), "hx"])
def test_dipole_in_three_dimensions(component, x64):
    """Off the middle of its box; amplitude and phase in every direction, second order in the spacing."""
    theta, phi = np.meshgrid(np.linspace(0.01, 3.1, 7), np.linspace(0.0, 6.0, 8), indexing="ij")
    errors = []
    for cells in (8, 16):
        d = UM / cells
        # at a point of the lattice: between points the current is shared, which smears it by second order
        at = (0.125 * UM, (0.125 * UM) + (d / 2 if component == "hx" else 0.0), d / 2)
        box = (0.5 * UM,) * 3
        scene = Scene(
            Grid.uniform((1.0 * UM + 12 * d,) * 3, d),
            sources=[Dipole("s", at, component, PULSE)],
            monitors=[FarFieldMonitor("far", [F], size=box)],
            boundaries=Boundaries.all(PML(6)),
            duration=16e-15,
            dtype="float64",
        )
        result = Simulation(scene)()
        got = np.stack(result.far_field("far", theta, phi))[:, 0] / result.spectrum("s", [F])[0]
        want = np.stack(dipole_pattern(component, at, F, theta, phi))
        errors.append(np.abs(got - want).max() / np.abs(want).max())
    assert errors[1] < 0.02 and np.log2(errors[0] / errors[1]) > 1.8
    node, weight = np.polynomial.legendre.leggauss(12)
    theta, phi = np.meshgrid(np.arccos(node), np.arange(16) * np.pi / 8, indexing="ij")
    power = np.sum(np.asarray(result.radiation("far", theta, phi))[0] * weight[:, None]) * np.pi / 8
    np.testing.assert_allclose(power, float(result.flux("far")[0]), rtol=0.02)


@pytest.mark.parametrize("component", [pytest.param("ez", marks=pytest.mark.slow), "hz"])
def test_cylinder_scatters_into_directions_as_the_series_says(component, x64):
    """n = 2, size 2: complex pattern at 24 angles, and the optical theorem at the forward one."""
    radius, size = 0.5 * UM, 2.0
    d = radius / 20
    f = np.array([size * C0 / (2 * np.pi * radius)])
    box = 2 * radius + 8 * d
    pulse = GaussianPulse(f[0], f[0] / 5)
    scene = Scene(
        Grid.uniform((box + 36 * d,) * 2, d),
        [Structure("rod", Cylinder((0.0, 0.0), radius), Medium(4.0))],
        [PlaneWave("light", "+x", "ez" if component == "ez" else "ey", pulse, size=(box, box))],
        [FarFieldMonitor("far", f, size=(box + 8 * d,) * 2)],
        duration=pulse.end() + 90 * radius / C0,
        dtype="float64",
    )
    result = Simulation(scene)()
    angle = np.arange(24) * np.pi / 12
    e_theta, e_phi = result.far_field("far", np.full(24, np.pi / 2), angle)
    k = 2 * np.pi * f[0] / C0
    # the pulse's phase belongs to where its box begins, the series' to the axis of the cylinder
    i0 = int(np.argmin(np.abs(scene.grid.edges[0] + box / 2)))
    incident = result.incident("light", f)[0] * np.exp(-1j * k * scene.grid.edges[0][i0])
    field = -e_theta[0] if component == "ez" else e_phi[0]  # Hz = E_phi / Z0, for E0 / Z0 incident
    got = np.asarray(field) * np.sqrt(k) / incident
    want = analytic.cylinder_pattern(2.0, size, angle, component)
    assert np.abs(got - want).max() < 0.03 * np.abs(want).max()
    forward = -np.sqrt(8 * np.pi) / (2 * size) * np.real(got[0] * np.exp(0.25j * np.pi))
    assert forward == pytest.approx(analytic.cylinder_scattering(2.0, size, component), rel=0.03)


def test_analytic_patterns_hold_their_power():
    angle = np.arange(720) * np.pi / 360
    for component in ("ez", "hz"):
        total = np.mean(np.abs(analytic.cylinder_pattern(2.0, 3.0, angle, component)) ** 2) * 2 * np.pi / 6.0
        assert total == pytest.approx(analytic.cylinder_scattering(2.0, 3.0, component), rel=1e-12)


def test_what_has_no_far_field_is_said():
    def make(**more):
        options = {
            "grid": Grid.uniform((2 * UM, 2 * UM), 0.05 * UM),
            "sources": [Dipole("s", (0.0,), "ez", PULSE)],
            "monitors": [FarFieldMonitor("far", [F], size=(0.8 * UM, 0.8 * UM))],
            "duration": 2e-15,
        } | more
        return Simulation(Scene(**options))

    with pytest.raises(InputError, match="'guide' reaches out of its box"):
        make(structures=[Structure("guide", Box((0.0, 0.0), (np.inf, 0.2 * UM)), Medium(4.0))])
    with pytest.raises(InputError, match="must close around"):
        make(monitors=[FarFieldMonitor("far", [F])])
    with pytest.raises(InputError, match="must close around"):
        make(grid=Grid.uniform((2 * UM, 0.8 * UM), 0.05 * UM), boundaries=Boundaries(y="periodic"))
    with pytest.raises(UnsupportedError, match="lossless background"):
        make(background=Medium(2.0, conductivity=10.0))
    result = make()()
    with pytest.raises(InputError, match="lie in its plane"):
        result.far_field("far", np.zeros(3), np.zeros(3))
    with pytest.raises(InputError, match="one shape"):
        result.far_field("far", np.zeros(3), np.zeros(2))
