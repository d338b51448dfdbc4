"""Incompressible flows by Taylor-Hood elements against published values, and a shape optimised through one."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.science import Dirichlet, Periodic, Rectangle, solve
from sciax.science.flows import CENTRE, RADIUS, cylinder_flow, flow, lid_cavity, pressure, taylor_green, velocity

pytestmark = pytest.mark.usefixtures("x64")


def test_couette_flow_between_periodic_ends():
    """A wall that slides: a linear profile, given exactly; the pressure is pinned."""
    walls = Dirichlet(velocity, np.array([1.0, 0.0]), on="top"), Dirichlet(velocity, 0, on="bottom")
    ends = Periodic(velocity, (0,)), Periodic(pressure, (0,))
    s = solve(flow(Rectangle(), *walls, *ends, nu=0.1), order=2, cells=3, kind="quad")
    assert float(s.error(lambda x: jnp.stack([x[1], 0 * x[1]]))) < 1e-12
    assert float(s.flux("top", "v")[0]) == pytest.approx(0.1, rel=1e-10)


@pytest.mark.slow
def test_cylinder_at_reynolds_20():
    """DFG 2D-1 (Schaefer & Turek 1996; reference values of Nabh 1998)."""
    s = solve(cylinder_flow(14), order=2)
    drag, lift = -np.asarray(s.flux("cylinder", "v")) * 2 / (0.2**2 * 0.1)
    front, back = s([[0.15, 0.2], [0.25, 0.2]], "p", outside="nearest")
    assert drag == pytest.approx(5.57953523384, rel=1e-3)
    assert lift == pytest.approx(0.010618948146, rel=1e-2)
    assert float(front - back) == pytest.approx(0.11752016697, rel=1e-3)


@pytest.mark.slow
def test_lid_cavity_at_reynolds_1000():
    """Extrema on the centre lines (Botella & Peyret 1998)."""
    s = solve(lid_cavity(36), order=2, continuation={"re": (100.0, 400.0)})
    t = np.linspace(0.001, 0.999, 4001)
    u = np.asarray(s(np.stack([0 * t + 0.5, t], 1)))[:, 0]
    v = np.asarray(s(np.stack([t, 0 * t + 0.5], 1)))[:, 1]
    assert u.min() == pytest.approx(-0.3885698, rel=1e-3)
    assert v.max() == pytest.approx(0.3769447, rel=1e-3)
    assert v.min() == pytest.approx(-0.5270771, rel=1e-3)


@pytest.mark.slow
def test_taylor_green_vortices():
    problem, exact = taylor_green(0.05)
    options = {"order": 2, "stepper": "imex", "time": (0.0, 0.5), "steps": 50, "saves": 1, "kind": "quad"}
    errors = [float(solve(problem, cells=n, **options).error(lambda x: exact(x, 0.5))) for n in (12, 24)]
    # Third order at the least; the even grid and the waves' symmetry give 4.1.
    assert np.log2(errors[0] / errors[1]) > 2.95
    assert errors[1] < 3.2e-3


@pytest.mark.slow
def test_drag_of_an_obstacle_descends():
    """The outline's two coefficients move the mesh; the gradient is the adjoint's, checked against central differences."""
    problem = cylinder_flow(3)
    points = jnp.asarray(problem.domain.mesh().points)
    d = points - CENTRE
    r, angle = jnp.sqrt((d**2).sum(axis=1)), jnp.arctan2(d[:, 1], d[:, 0])
    fade = jnp.clip((0.15 - (r - RADIUS)) / 0.15, 0, 1) ** 2

    def drag(c):
        outline = 1 + c[0] * jnp.cos(2 * angle) + c[1] * jnp.cos(3 * angle)
        outline = outline / jnp.sqrt(1 + jnp.sum(c**2) / 2)  # the area stays
        moved = points + (d / r[:, None]) * (RADIUS * (outline - 1) * fade)[:, None]
        return -500 * solve(problem.with_points(moved), order=2).flux("cylinder", "v")[0]

    both = jax.value_and_grad(drag)
    c = jnp.array([0.1, -0.05])
    _, slope = both(c)
    for k in range(2):
        step = 1e-5 * np.eye(2)[k]
        assert float(slope[k]) == pytest.approx(float(drag(c + step) - drag(c - step)) / 2e-5, rel=1e-6)
    c, values = jnp.zeros(2), []
    for _ in range(5):
        value, slope = both(c)
        values.append(float(value))
        c = c - 0.03 * slope
    assert all(b < a for a, b in itertools.pairwise(values))


@pytest.mark.slow  # a quarter of an hour
def test_vortex_street_has_the_frequency_of_the_benchmark():
    """DFG 2D-2: Strouhal number 0.3018 (reference interval 0.2950 to 0.3050 of Schaefer & Turek 1996), from the velocity across
    the wake."""
    problem = cylinder_flow(17, reynolds=100.0, transient=True)
    options = {"order": 2, "time": (0.0, 6.9), "steps": 23 * 1000, "saves": 1000, "stepper": "imex"}
    s = solve(problem, method="fem", **options)
    across = np.array([np.asarray(s.snapshot(k)([[0.35, 0.22]], "v"))[0, 1] for k in range(680, 1001)])
    across, times = across - (across.max() + across.min()) / 2, s.times[680:]
    up = np.flatnonzero((across[:-1] < 0) & (across[1:] >= 0))
    crossings = times[up] - across[up] * np.diff(times)[up] / np.diff(across)[up]
    strouhal = 0.1 * (len(crossings) - 1) / (crossings[-1] - crossings[0])  # diameter 0.1 m, mean velocity 1 m/s
    assert strouhal == pytest.approx(0.3018, rel=0.005)
