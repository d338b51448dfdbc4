"""Guided modes, mode source and monitor, ring resonator, resonances, smoothing order."""

import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, ShapeError, UnsupportedError
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
    ModeMonitor,
    ModeSource,
    Probe,
    Scene,
    Simulation,
    Structure,
    analytic,
    resonances,
    ring,
    slab_modes,
)

UM = 1e-6


def test_slab_mode_converges_to_the_exact_index():
    """220 nm of 3.48 in 1.44 at 1.55 um: TE 2.851356345 (closed form), second order in the spacing."""
    errors = []
    for d in (10e-9, 5e-9):
        y = (np.arange(round(2e-6 / d)) - round(1e-6 / d)) * d
        eps = np.clip((0.11e-6 - np.abs(y)) / d + 0.5, 0, 1) * (3.48**2 - 1.44**2) + 1.44**2
        errors.append(abs(slab_modes(eps, d, C0 / 1.55e-6)[0].index - 2.851356345))
    assert errors[1] < 2e-4 and np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    assert analytic.slab_mode(3.48, 1.44, 0.22, 1.55) == pytest.approx(2.851356345, abs=1e-9)
    assert analytic.slab_mode(3.48, 1.44, 0.22, 1.55, "tm") == pytest.approx(2.052731412, abs=1e-9)
    with pytest.raises(InputError, match="guides 0 modes"):
        slab_modes(np.ones(50), 1e-8, C0 / 1.55e-6)


@pytest.mark.parametrize("direction", ["+x", pytest.param("-y", marks=pytest.mark.slow)])
def test_mode_source_launches_to_one_side(direction, x64):
    """Straight guide: nothing backwards below -75 dB at the centre, -50 dB at +-3 %; power is what the flux monitor sees."""
    f0 = C0 / (1.55 * UM)
    f = np.array([0.97, 1.0, 1.03]) * f0
    axis, s = direction[1], 1 if direction[0] == "+" else -1
    along = (lambda t: (t * s * UM, 0.0)) if axis == "x" else (lambda t: (0.0, t * s * UM))
    guide = Box((0.0, 0.0), (np.inf, 0.4 * UM) if axis == "x" else (0.4 * UM, np.inf))
    scene = Scene(
        Grid.uniform((3.4 * UM, 3.4 * UM), 0.05 * UM),
        [Structure("guide", guide, Medium(12.25))],
        [ModeSource("m", direction, along(-0.4), GaussianPulse(f0, f0 * 0.05))],
        [
            ModeMonitor("on", f, along(0.6), axis),
            ModeMonitor("back", f, along(-0.8), axis),
            FluxMonitor("power", f, along(0.6), normal=axis),
        ],
        duration=220e-15,
        background=Medium(2.25),
        dtype="float64",
    )
    result = Simulation(scene)()
    on, back = (np.array(result.modes(n))[:, :, 0][::s] for n in ("on", "back"))
    decibel = 20 * np.log10(np.abs(back[1] / on[0]))
    assert decibel[1] < -75 and np.all(decibel < -50)
    assert np.all(20 * np.log10(np.abs(on[1] / on[0])) < -70)  # the absorber takes the guided mode
    np.testing.assert_allclose(s * np.asarray(result.flux("power")), np.abs(on[0]) ** 2, rtol=2e-4)
    # the power of the grid differs from the unit of the mode by second order in the spacing
    np.testing.assert_allclose(np.abs(on[0]), np.abs(result.spectrum("m", f)), rtol=0.05)


def test_modes_say_what_they_need(x64):
    f0 = C0 / (1.55 * UM)
    source = ModeSource("m", "+x", (-0.4 * UM, 0.0), GaussianPulse(f0, f0 * 0.05))
    scene = Scene(Grid.uniform((3 * UM, 3 * UM), 0.05 * UM), sources=[source], duration=1e-14)
    with pytest.raises(InputError, match="guides 0 modes"):
        Simulation(scene)()
    up = ModeSource("m", "+z", (0.0, 0.0), GaussianPulse(f0, f0 * 0.05))
    with pytest.raises(InputError, match="lie along x or y"):
        Simulation(Scene(Grid.uniform((3 * UM, 3 * UM), 0.05 * UM), sources=[up], duration=1e-14))()
    high = ModeSource("m", "+z", (0.7 * UM, 0.0, 0.7 * UM), GaussianPulse(f0, f0 * 0.05))
    across = Grid(np.arange(30) * 0.05 * UM, None, np.arange(30) * 0.05 * UM)
    with pytest.raises(UnsupportedError, match="x-y and x-y-z"):
        Simulation(Scene(across, sources=[high], boundaries=Boundaries.all(PML(3)), duration=1e-14))()


def test_resonances_of_a_known_signal():
    dt, n = 0.5, np.arange(4000)
    f = np.array([0.1182 - 0.0008j, 0.147 - 0.0002j])
    y = sum(
        (0.3 + i) * np.cos(2 * np.pi * v.real * n * dt + 0.3) * np.exp(2 * np.pi * v.imag * n * dt)
        for i, v in enumerate(f)
    )
    got = resonances(y, dt, (0.1, 0.16))
    np.testing.assert_allclose(np.sort_complex(got.frequency), f, rtol=1e-9)
    np.testing.assert_allclose(np.sort(got.quality), np.sort(-f.real / 2 / f.imag), rtol=1e-6)
    noise = 1e-4 * np.random.default_rng(0).standard_normal(n.size)
    np.testing.assert_allclose(
        np.sort_complex(resonances(y + noise, dt, (0.1, 0.16), tolerance=1e-3).frequency).real, f.real, rtol=1e-5
    )
    with pytest.raises(InputError, match="too short"):
        resonances(y[:20], dt, (0.1, 0.16))
    with pytest.raises(InputError, match="band"):
        resonances(y, dt, (0.1, 2.0))
    with pytest.raises(InputError, match="zero or not finite"):
        resonances(0 * y, dt, (0.1, 0.16))
    with pytest.raises(ShapeError):
        resonances(y[None], dt, (0.1, 0.16))


def ring_mode(component, inner, outer, order, guess, cells, periods, smoothing="auto"):
    """One quarter of the ring between mirror planes; the resonance nearest to the exact one, and the exact one (c/um)."""
    exact = analytic.ring_resonance(3.4, inner, outer, order, guess, component)
    frequency = exact.real * C0 / UM
    pml = PML(max(10, round(0.6 * cells)))
    edges = np.arange(round((outer + 0.6) * cells) + pml.cells + 1) * UM / cells
    even = order % 2 == 0
    first = "pmc" if even == (component == "ez") else "pec"
    middle = 0.5 * (inner + outer) * UM
    pulse = GaussianPulse(frequency, 0.05 * frequency)
    scene = Scene(
        Grid(edges, edges),
        [Structure("ring", ring((0.0, 0.0), inner * UM, outer * UM), Medium(3.4**2))],
        [Dipole("s", (middle, 0.0), component, pulse)],
        [Probe("p", (middle * np.cos(np.pi / order), middle * np.sin(np.pi / order)), (component,))],
        Boundaries(x=(first, pml), y=("pmc" if component == "ez" else "pec", pml)),
        duration=pulse.end() + periods / frequency,
        smoothing=smoothing,
        dtype="float64",
    )
    signal = np.asarray(Simulation(scene)().signal("p", component))[round(pulse.end() / scene.dt) :]
    found = resonances(signal, scene.dt, (0.9 * frequency, 1.1 * frequency))
    f = found.frequency * UM / C0
    return f[np.argmin(np.abs(f - exact))], exact


def test_ring_resonator_converges_to_the_exact_frequency_and_quality(x64):
    """n = 3.4, radii 1 and 2, m = 3, Ez: f = 0.1181916937, Q = 77.2554 (Bessel determinant), second order."""
    errors = []
    for cells in (10, 20):
        f, exact = ring_mode("ez", 1.0, 2.0, 3, 0.118 - 0.0007j, cells, 60)
        errors.append(abs(f.real / exact.real - 1))
    assert exact.real == pytest.approx(0.1181916937, abs=1e-9)
    assert -exact.real / exact.imag / 2 == pytest.approx(77.2554, abs=1e-3)
    assert -f.real / f.imag / 2 == pytest.approx(77.2554, rel=0.003)
    assert errors[1] < 4e-4 and np.log2(errors[0] / errors[1]) > 1.8


@pytest.mark.slow
def test_tensor_smoothing_on_the_ring_with_discontinuous_field(x64):
    """Hz, radii 2 and 3, m = 11: E jumps at the walls."""
    errors = []
    for cells in (10, 20, 40):
        f, exact = ring_mode("hz", 2.0, 3.0, 11, 0.249 - 1e-8j, cells, 150)
        errors.append(abs(f.real / exact.real - 1))
    assert np.log2(errors[0] / errors[1]) > 1.75 and np.log2(errors[1] / errors[2]) > 1.75


def test_smoothing_gives_second_order_at_a_wall_that_cuts_cells(x64):
    """1-D cavity with a dielectric whose face lies anywhere in a cell: frequency of the lowest mode, field along and across."""

    def error(cells, smoothing):
        d = UM / cells
        face = 0.3717 * UM
        exact = _layer_mode(face / UM) * C0 / UM
        pulse = GaussianPulse(exact, 0.1 * exact)
        scene = Scene(
            Grid(np.arange(cells + 1) * d),
            [Structure("layer", Box((face / 2,), (face,)), Medium(6.0))],
            [Dipole("s", (0.21 * UM,), "ez", pulse)],
            [Probe("p", (0.4 * UM,))],
            Boundaries.all("pec"),
            duration=pulse.end() + 40 / exact,
            smoothing=smoothing,
            dtype="float64",
        )
        y = np.asarray(Simulation(scene)().signal("p", "ez"))[round(pulse.end() / scene.dt) :]
        f = resonances(y, scene.dt, (0.8 * exact, 1.2 * exact)).frequency
        return abs(f[np.argmin(np.abs(f - exact))].real / exact - 1)

    smooth = [error(n, "auto") for n in (20, 40, 80)]
    rough = [error(n, "none") for n in (20, 40, 80)]
    assert np.log2(smooth[0] / smooth[2]) / 2 > 1.8
    assert rough[2] > 4 * smooth[2]


def _layer_mode(face):
    """Lowest frequency (c/um) of a unit conducting cavity filled with eps 6 up to `face`."""
    from scipy.optimize import brentq

    n = np.sqrt(6.0)

    def g(f):
        inside, outside = 2 * np.pi * f * n * face, 2 * np.pi * f * (1 - face)
        return n * np.cos(inside) * np.sin(outside) + np.sin(inside) * np.cos(outside)

    grid = np.linspace(0.01, 0.6, 600)
    values = g(grid)
    i = int(np.nonzero(values[:-1] * values[1:] < 0)[0][0])
    return brentq(g, grid[i], grid[i + 1], xtol=1e-14)


def test_tensor_smoothing_keeps_energy(x64):
    """Conducting box, tilted boundary of high contrast: nothing grows over 10 000 steps."""
    from sciax.elec import Cylinder, Polygon

    corners = np.array([[-0.4, -0.31], [0.33, -0.42], [0.41, 0.2]]) * UM
    scene = Scene(
        Grid.uniform((1.2 * UM, 1.2 * UM), 0.06 * UM),
        [
            Structure("p", Polygon(corners), Medium(12.0)),
            Structure("d", Cylinder((0.1 * UM, 0.2 * UM), 0.21 * UM), Medium(3.0)),
        ],
        [Dipole("s", (0.05 * UM, -0.1 * UM), "hz", GaussianPulse(C0 / (1.2 * UM), C0 / (6 * UM)))],
        [Probe("q", (-0.2 * UM, 0.1 * UM), ("hz",))],
        Boundaries.all("pec"),
        duration=10_000 * 0.95 * Grid.uniform((1.2 * UM, 1.2 * UM), 0.06 * UM).courant_limit(),
        dtype="float64",
    )
    y = jnp.abs(Simulation(scene)().signal("q", "hz"))
    assert float(y[-5000:].max()) < 1.5 * float(y[1000:6000].max())
