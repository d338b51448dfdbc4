"""Full-vector modes: slab, fibre and strip; derivatives of the index; mode source and S-parameters in three dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, ShapeError
from sciax.elec import (
    C0,
    PML,
    Boundaries,
    Box,
    FluxMonitor,
    GaussianPulse,
    Grid,
    Medium,
    ModeMonitor,
    ModeSource,
    Scene,
    Section,
    Simulation,
    Structure,
    analytic,
    effective_index,
    vector_modes,
)

UM = 1e-6
F0 = C0 / (1.55 * UM)


def fill(points, half, d):
    """Share of a cell of width d about each point that lies within |x| < half."""
    return np.clip((half - np.abs(points)) / d + 0.5, 0.0, 1.0)


def slab_section(d):
    n = 2 * round(1.1 * UM / d)
    y = (np.arange(n) - n / 2) * d
    at_nodes, at_halves = fill(y, 0.11 * UM, d), fill(y + d / 2, 0.11 * UM, d)
    core, clad = 3.48**2, 1.44**2
    along, across = clad + at_nodes * (core - clad), 1 / (1 / clad + at_halves * (1 / core - 1 / clad))
    eps = tuple(np.tile(p, (3, 1)) for p in (along, across, along))
    return Section(eps, (1.0, 1 / d), (1.0, 1 / d))  # metres wide: nothing varies along u


def test_slab_modes_of_both_polarisations_converge():
    """220 nm of 3.48 in 1.44 at 1.55 um: TE 2.851356345, TM 2.052731412, second order, 1e-5 by Richardson."""
    found = {}
    for d in (10e-9, 5e-9, 2.5e-9):
        modes = [m.index for m in vector_modes(slab_section(d), F0, count=5)]
        found[d] = max(modes), min(modes)
    for which, exact in ((0, 2.851356345), (1, 2.052731412)):
        a, b, c = (found[d][which] for d in found)
        assert np.log2(abs(a - exact) / abs(b - exact)) == pytest.approx(2.0, abs=0.15)
        assert abs(c - exact) < 2e-4 and abs(c + (c - b) / 3 - exact) < 1e-5


def fibre_section(cells, radius, reach, core, cladding):
    """Quarter of a fibre between mirror planes (magnetic at low u, electric at low v); subpixel fractions by sampling."""
    d = radius / cells
    n = round(reach / d)
    sub = (np.arange(8) + 0.5) / 8 - 0.5

    def share(su, sv):
        x = ((np.arange(n) + su)[:, None] + sub).ravel() * d
        y = ((np.arange(n) + sv)[:, None] + sub).ravel() * d
        inside = (x[:, None] ** 2 + y[None, :] ** 2 < radius**2).astype(float)
        return inside.reshape(n, 8, n, 8).mean((1, 3))

    eps = [cladding**2 + share(*s) * (core**2 - cladding**2) for s in ((0.5, 0.0), (0.0, 0.5), (0.0, 0.0))]
    dual = np.full(n, 1 / d)
    dual[0] *= 2  # the magnetic wall halves the dual cell
    return Section(tuple(eps), (1 / d, 1 / d), (dual, np.full(n, 1 / d)), mirror=(True, False))


def test_fibre_mode_is_the_one_of_bessel_functions():
    """HE11 of core 1.45, radius 1 um, in air, full vector; the mean permittivity of cut cells is first order."""
    exact = analytic.fibre_mode(1.45, 1.0, 1.0, 1.55)
    errors = []
    for cells in (8, 16):
        section = fibre_section(cells, 1.0 * UM, 2.75 * UM, 1.45, 1.0)
        errors.append(abs(vector_modes(section, F0)[0].index - exact))
    assert errors[1] < 1e-3 and errors[0] / errors[1] > 1.7
    weak = analytic.fibre_mode(1.45, 1.4499, 8.2, 1.55)
    assert 1.4499 < weak < 1.45


def strip_section(d, width=0.5 * UM, height=0.22 * UM, reach=(1.5 * UM, 1.2 * UM)):
    nu, nv = (2 * round(r / 2 / d) for r in reach)
    x, y = (np.arange(nu) - nu / 2) * d, (np.arange(nv) - nv / 2) * d
    hi, lo = 3.48**2, 1.44**2
    u, uh, v, vh = (
        fill(x, width / 2, d),
        fill(x + d / 2, width / 2, d),
        fill(y, height / 2, d),
        fill(y + d / 2, height / 2, d),
    )
    column, row = lo + (hi - lo) * v, lo + (hi - lo) * u
    eps_u = 1 / (1 / lo + uh[:, None] * (1 / column[None, :] - 1 / lo))
    eps_v = 1 / (1 / lo + vh[None, :] * (1 / row[:, None] - 1 / lo))
    return Section((eps_u, eps_v, lo + (hi - lo) * np.outer(u, v)), (1 / d, 1 / d), (1 / d, 1 / d))


def test_derivatives_of_the_index_are_exact(x64):
    """By the mode and its left vector, against central differences: permittivity of every point, and the frequency."""
    d = 50e-9
    section = strip_section(d)
    eps = tuple(map(jnp.asarray, section.eps))
    index = lambda e, f: effective_index(e, (d, d), 0, np.float64, f)  # noqa: E731
    slope_eps, slope_f = jax.grad(index, argnums=(0, 1))(eps, F0)
    rng = np.random.default_rng(0)
    turn = [rng.standard_normal(e.shape) for e in eps]
    got = sum(float(jnp.sum(a * b)) for a, b in zip(slope_eps, turn))

    def at(h, f=F0):
        return vector_modes(section._replace(eps=tuple(e + h * t for e, t in zip(section.eps, turn))), f)[0].index

    assert got == pytest.approx((at(1e-4) - at(-1e-4)) / 2e-4, rel=1e-6)
    h = 1e-5 * F0
    assert float(slope_f) == pytest.approx((at(0.0, F0 + h) - at(0.0, F0 - h)) / (2 * h), rel=1e-6)
    mode = vector_modes(section, F0)[0]
    assert mode.group_index == pytest.approx(mode.index + F0 * float(slope_f), rel=1e-9)
    _, tangent = jax.jvp(lambda e: index(e, F0), (eps,), (tuple(map(jnp.asarray, turn)),))
    assert float(tangent) == pytest.approx(got, rel=1e-12)


def test_modes_are_orthogonal_and_of_unit_power():
    section = strip_section(40e-9)
    a, b = vector_modes(section, F0, count=2)
    area = 40e-9**2
    cross = lambda p, q: area * float(np.sum(p.e[0] * q.h[1] - p.e[1] * q.h[0]))  # noqa: E731
    assert cross(a, a) == pytest.approx(1.0, rel=1e-9) and cross(b, b) == pytest.approx(1.0, rel=1e-9)
    assert abs(cross(a, b)) < 1e-6 and abs(cross(b, a)) < 1e-6
    # the field of a symmetric guide is symmetric (E_u of the first mode in v)
    e = a.e[0][:, 1:]
    np.testing.assert_allclose(np.abs(e), np.abs(e[:, ::-1]), atol=1e-6 * np.abs(e).max())


def test_refusals_of_the_mode_solver():
    with pytest.raises(InputError, match="guides 0 modes"):
        vector_modes(Section((np.ones((8, 8)),) * 3, (1e7, 1e7), (1e7, 1e7)), F0)
    with pytest.raises(ShapeError, match="one 2-D shape"):
        vector_modes(Section((np.ones((8, 8)), np.ones((8, 8)), np.ones(8)), (1e7, 1e7), (1e7, 1e7)), F0)


@pytest.mark.parametrize(
    "direction", ["-y", pytest.param("+x", marks=pytest.mark.slow), pytest.param("+z", marks=pytest.mark.slow)]
)
def test_straight_guide_in_three_dimensions(direction, x64):
    """S21 = 1 and S11 = 0: what enters leaves, in amplitude and phase, and nothing goes back."""
    a, s, d = "xyz".index(direction[1]), 1 if direction[0] == "+" else -1, 0.05 * UM
    f = np.array([0.98, 1.0, 1.02]) * F0
    size, domain = [0.5 * UM] * 3, [1.4 * UM] * 3
    size[a], size[(a + 2) % 3] = np.inf, 0.3 * UM
    domain[a] = 1.9 * UM
    at = lambda t: tuple(t * s * UM if i == a else 0.0 for i in range(3))  # noqa: E731
    pulse = GaussianPulse(F0, F0 * 0.06, delay=4.0)
    scene = Scene(
        Grid.uniform(domain, d),
        [Structure("guide", Box((0.0,) * 3, tuple(size)), Medium(12.1))],
        [ModeSource("m", direction, at(-0.4), pulse)],
        [
            ModeMonitor("in", f, at(-0.25), direction[1]),
            ModeMonitor("out", f, at(0.4), direction[1]),
            ModeMonitor("back", f, at(-0.5), direction[1]),
            FluxMonitor("power", f, at(0.4), normal=direction[1]),
        ],
        Boundaries.all(PML(7)),
        duration=pulse.end() + 40e-15,
        background=Medium(2.07),
        dtype="float64",
    )
    sim = Simulation(scene)
    result = sim()
    enters, leaves, back = (np.array(result.modes(n))[:, :, 0][::s] for n in ("in", "out", "back"))
    beta = np.array([row[0].wavenumber for row in sim.plan.monitors["out"].modes])
    np.testing.assert_allclose(leaves[0] / enters[0], np.exp(1j * beta * 0.65 * UM), atol=0.01)
    assert 20 * np.log10(np.abs(back[1] / leaves[0]))[1] < -55  # the source launches to one side
    assert np.all(20 * np.log10(np.abs(leaves[1] / leaves[0])) < -45)  # S11: the absorber takes the mode
    np.testing.assert_allclose(s * np.asarray(result.flux("power")), np.abs(leaves[0]) ** 2, rtol=0.03)
    column = result.scattering("in", {"in": "+" if s > 0 else "-", "out": "-" if s > 0 else "+"})
    np.testing.assert_allclose(column["out"][:, 0], leaves[0] / enters[0])
    np.testing.assert_allclose(np.abs(column["in"]), np.abs(enters[1] / enters[0])[:, None])
    labelled = result["out"]
    assert labelled.forward.dims == ("frequency", "order")


def test_guides_in_three_dimensions_say_what_they_need():
    source = ModeSource("m", "+x", (0.0, 0.0, 0.0), GaussianPulse(F0, F0 / 20))
    grid = Grid.uniform((1.5 * UM,) * 3, 0.1 * UM)
    with pytest.raises(InputError, match="guides 0 modes"):
        Simulation(Scene(grid, sources=[source], boundaries=Boundaries.all(PML(3)), duration=1e-15))()
    small = ModeSource("m", "+x", (0.0, 0.0, 0.0), GaussianPulse(F0, F0 / 20), size=0.2 * UM)
    with pytest.raises(InputError, match="fewer than four cells"):
        Simulation(Scene(grid, sources=[small], boundaries=Boundaries.all(PML(3)), duration=1e-15))()
