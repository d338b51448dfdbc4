"""Finite volumes: exact Riemann solutions, observed orders, what must hold to round-off, derivatives, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, UnphysicalStateError
from sciax.science import Initial, Interval, Parameter, Periodic, Rectangle, solve
from sciax.science.problems import problem
from sciax.science.solvers.fvm import (
    Conservation,
    Euler,
    NavierStokes,
    NoSlip,
    Reflecting,
    ShallowWater,
    Transmissive,
    exact_riemann,
)

pytestmark = pytest.mark.usefixtures("x64")


def halves(left, right, at=0.5):
    return lambda x: jnp.where(x[0] < at, left, right)


def tube(velocity=0.0, pressure=None):
    gas = Euler()
    return Conservation(
        Interval(0, 1),
        gas,
        Initial(gas.density, halves(1.0, 0.125)),
        Initial(gas.velocity, velocity),
        Initial(gas.pressure, halves(1.0, 0.1) if pressure is None else pressure),
        Transmissive(),
    )


def test_exact_riemann_star_state():
    # Toro, Riemann Solvers (2009), table 4.3, test 1: p* = 0.30313, u* = 0.92745.
    state = exact_riemann((1, 0, 1), (0.125, 0, 0.1), np.array([0.9]))
    np.testing.assert_allclose(state[1:, 0], [0.92745, 0.30313], atol=1e-5)


@pytest.mark.parametrize(
    ("options", "cap"),
    [({}, 2.4e-3), ({"scheme": "muscl"}, 2.5e-3), ({"scheme": "constant"}, 1.4e-2)],
    ids=["weno5", "muscl", "first order"],
)
def test_sod(options, cap):
    cells = 200
    node, weight = np.polynomial.legendre.leggauss(5)
    points = (np.arange(cells)[:, None] + 0.5 + node / 2) / cells
    exact = exact_riemann((1, 0, 1), (0.125, 0, 0.1), (points - 0.5) / 0.2)[0] @ (weight / 2)
    s = solve(tube(), method="fvm", cells=cells, time=(0, 0.2), **options)
    assert np.abs(np.asarray(s.values("rho")) - exact).mean() < cap
    # Mass and energy stay (no wave has reached an end); momentum grows by the difference of the pressures.
    np.testing.assert_allclose(s.totals() - s.totals(0), [0, 0.2 * 0.9, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "cells", "order", "cap"),
    [({}, (20, 40, 80), 4.8, 3e-7), ({"scheme": "muscl", "limiter": "none"}, (40, 80), 1.95, 5e-4)],
    ids=["weno5", "muscl"],
)
def test_observed_order_of_a_smooth_wave(options, cells, order, cap):
    gas = Euler()
    wave = Conservation(
        Interval(0, 1),
        gas,
        Initial(gas.density, lambda x: 1 + 0.2 * jnp.sin(2 * jnp.pi * x[0])),
        Initial(gas.velocity, 1.0),
        Initial(gas.pressure, 1.0),
        Periodic(gas.density),
    )
    errors = []
    for n in cells:  # WENO's steps shrink faster than the cells, so that the order in space shows
        steps = max(int(40 * (n / cells[0]) ** (5 / 3)), 3 * n) if not options else 5 * n
        s = solve(wave, method="fvm", cells=n, time=(0, 1.0), steps=steps, **options)
        errors.append(float(jnp.abs(s.values("rho") - s.snapshot(0).values("rho")).mean()))
    assert errors[-1] < cap
    assert np.log2(errors[-2] / errors[-1]) > order


@pytest.mark.parametrize("level", [1.0, 0.5], ids=["under water", "island"])
def test_lake_at_rest(level):
    def bed(x):
        return 0.8 * jnp.exp(-20 * ((x[0] - 0.5) ** 2 + (x[1] - 0.4) ** 2))

    water = ShallowWater(dim=2, bed=bed)
    lake = Conservation(
        Rectangle(),
        water,
        Initial(water.depth, lambda x: jnp.maximum(0.0, level - bed(x))),
        Initial(water.velocity, 0.0),
        Reflecting(),
    )
    s = solve(lake, method="fvm", cells=24, time=(0, 0.2))
    assert float(jnp.abs(s.values("v")).max()) < 1e-13
    np.testing.assert_allclose(s.values("h"), s.snapshot(0).values("h"), atol=1e-14)


def test_dam_break_onto_dry_ground():
    # Ritter (1892): h = (2 c - x/t)^2 / (9 g) between -c t and 2 c t.
    water = ShallowWater(dim=1, gravity=1.0)
    dam = Conservation(
        Interval(-1, 1),
        water,
        Initial(water.depth, halves(1.0, 0.0, 0.0)),
        Initial(water.velocity, 0.0),
        Transmissive(),
    )
    s = solve(dam, method="fvm", cells=200, time=(0, 0.3))
    front = s.centres[0] / 0.3
    exact = np.where(front < -1, 1, np.where(front > 2, 0, (2 - front) ** 2 / 9))
    depth = np.asarray(s.values("h"))
    assert np.abs(depth - exact).mean() < 1.5e-3 and depth.min() >= 0
    assert abs(s.totals(0)[0] - s.totals()[0]) < 1e-13


@pytest.mark.slow
def test_viscous_flows():
    gas = NavierStokes(dim=2, viscosity=1.0)
    couette = Conservation(
        Rectangle((0, 0), (0.25, 1)),
        gas,
        Initial(gas.density, 1.0),
        Initial(gas.velocity, lambda x: jnp.stack([x[1], 0 * x[1]])),
        Initial(gas.pressure, 100.0),
        Periodic(gas.density, axes=(0,)),
        NoSlip("bottom"),
        NoSlip("top", velocity=np.array([1.0, 0.0])),
    )
    s = solve(couette, method="fvm", cells=(6, 16), time=(0, 0.05))
    assert float(jnp.abs(s.values("v")[..., 0] - s.centres[1]).max()) < 1e-13

    # Taylor and Green at Mach 0.1: the kinetic energy decays as exp(-4 nu t).
    nu = 0.05
    gas = NavierStokes(dim=2, viscosity=nu)
    vortices = Conservation(
        Rectangle((0, 0), (2 * np.pi, 2 * np.pi)),
        gas,
        Initial(gas.density, 1.0),
        Initial(gas.velocity, lambda x: jnp.stack([jnp.sin(x[0]) * jnp.cos(x[1]), -jnp.cos(x[0]) * jnp.sin(x[1])])),
        Initial(gas.pressure, lambda x: 100 / 1.4 + (jnp.cos(2 * x[0]) + jnp.cos(2 * x[1])) / 4),
        Periodic(gas.density),
    )
    s = solve(vortices, method="fvm", cells=32, time=(0, 1.0))
    energy = [float(jnp.mean(jnp.sum(s.snapshot(i).values("v") ** 2, -1))) for i in (0, -1)]
    assert energy[1] / energy[0] == pytest.approx(np.exp(-4 * nu), rel=1e-3)


@pytest.mark.slow
def test_shu_osher_converges_and_weno_resolves_more():
    gas = Euler()
    shock = Conservation(
        Interval(-5, 5),
        gas,
        Initial(gas.density, lambda x: jnp.where(x[0] < -4, 27 / 7, 1 + 0.2 * jnp.sin(5 * x[0]))),
        Initial(gas.velocity, halves(4 * 35**0.5 / 9, 0.0, -4)),
        Initial(gas.pressure, halves(31 / 3, 1.0, -4)),
        Transmissive(),
    )
    fine = solve(shock, method="fvm", cells=3200, time=(0, 1.8)).values("rho")

    def error(n, **options):
        s = solve(shock, method="fvm", cells=n, time=(0, 1.8), **options)
        return float(jnp.abs(s.values("rho") - fine.reshape(n, -1).mean(1)).mean())

    assert error(400) < 0.018 and error(200) < 0.05
    assert error(400) < 0.5 * error(400, scheme="muscl")


@pytest.mark.slow
def test_blast_waves_of_woodward_and_colella():
    # Woodward & Colella, J. Comput. Phys. 54 (1984) 115: at t = 0.038 the density peaks near 6.5 at x = 0.78.
    gas = Euler()
    blast = Conservation(
        Interval(0, 1),
        gas,
        Initial(gas.density, 1.0),
        Initial(gas.velocity, 0.0),
        Initial(gas.pressure, lambda x: jnp.where(x[0] < 0.1, 1000.0, jnp.where(x[0] > 0.9, 100.0, 0.01))),
        Reflecting(),
    )
    s = solve(blast, method="fvm", cells=1600, time=(0, 0.038))
    density = np.asarray(s.values("rho"))
    assert 6.3 < density.max() < 6.6
    assert s.centres[0][density.argmax()] == pytest.approx(0.78, abs=0.01)


@pytest.mark.slow  # half a minute of XLA for the reverse sweep of one step
def test_gradient_of_five_hundred_steps():
    gas = Euler()
    bump = Parameter("bump", 0.2)
    wave = Conservation(
        Interval(0, 1),
        gas,
        Initial(gas.density, 1.0),
        Initial(gas.velocity, 0.0),
        Initial(gas.pressure, 1.0 + bump * (lambda x: jnp.exp(-200 * (x[0] - 0.4) ** 2))),
        Periodic(gas.density),
    )

    def target(value):
        s = solve(wave.with_(bump=value), method="fvm", cells=32, time=(0, 1.0), steps=500)
        return jnp.sum(s.values("rho")[:8] ** 2)

    gradient, h = float(jax.grad(target)(0.2)), 1e-3
    differences = float(
        (8 * (target(0.2 + h) - target(0.2 - h)) - target(0.2 + 2 * h) + target(0.2 - 2 * h)) / (12 * h)
    )
    assert np.isfinite(gradient) and gradient == pytest.approx(differences, rel=1e-7)
    _, tangent = jax.jvp(target, (0.2,), (1.0,))
    assert float(tangent) == pytest.approx(gradient, rel=1e-12)


@pytest.mark.parametrize(("name", "options", "cap"), [("poisson_1d", {}, 3e-5), ("poisson_2d", {"cells": 30}, 1.1e-3)])
def test_ordinary_problems(name, options, cap):
    entry = problem(name)
    s = solve(entry.problem, method="fvm", **options)
    domain = entry.problem.domain
    points = np.random.default_rng(0).uniform(domain.lower, domain.upper, (200, entry.problem.dim))
    exact = np.asarray(jax.vmap(entry.exact)(points))
    assert np.linalg.norm(s(points) - exact) < cap * np.linalg.norm(exact)


def test_bad_input():
    with pytest.raises(UnphysicalStateError, match=r"pressure is not positive[\s\S]*step 1, cell \(24,\)"):
        solve(tube(halves(-20.0, 20.0), 0.4), method="fvm", cells=50, time=(0, 0.01), flux="roe")
    with pytest.raises(InputError, match="time="):
        solve(tube(), method="fvm", cells=50)
    with pytest.raises(InputError, match="scheme"):
        solve(tube(), method="fvm", cells=50, time=(0, 0.1), scheme="weno7")
    gas = Euler()
    with pytest.raises(InputError):
        Conservation(Interval(0, 1), gas, Initial(gas.density, 1.0), Initial(gas.velocity, 0.0), Transmissive())
