"""Vector and mixed fields: Cook's membrane, rigid motions, a flow with a pressure."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from sciax.science import (
    Dirichlet,
    Domain,
    Field,
    Neumann,
    Problem,
    Rectangle,
    box_mesh,
    div,
    grad,
    isotropic,
    solve,
    sym,
    trace,
)

pytestmark = pytest.mark.usefixtures("x64")

v, p = Field("v", 2), Field("p")


def test_cooks_membrane():
    """Plane stress, E = 1, nu = 1/3, unit shear load: 23.96 at the middle of the loaded side (Cook, Malkus & Plesha 1989)."""
    mesh = box_mesh([0, 0], [1, 1], 10, "quad")
    x, y = mesh.points.T
    mesh = replace(mesh, points=np.stack([48 * x, (1 - y) * 44 * x + y * (44 + 16 * x)], axis=1), cache={})
    mu, lam = 1 / (2 * (1 + 1 / 3)), (1 / 3) / (1 - 1 / 9)
    strain = sym(grad(v))
    problem = Problem(
        Domain.from_mesh(mesh),
        -div(2 * mu * strain + lam * isotropic(trace(strain), strain)) == 0,
        Dirichlet(v, 0, on="left"),
        Neumann(v, np.array([0.0, 1 / 16]), on="right"),
        Neumann(v, 0, on=("top", "bottom")),
    )
    s = solve(problem, order=2)
    assert float(s([48.0, 52.0])[1]) == pytest.approx(23.96, abs=0.06)
    assert np.allclose(s.flux("left"), [0.0, -1.0], atol=1e-9)  # the support carries the load


def test_channel_flow_is_exact():
    """Poiseuille: quadratic velocity, linear pressure, given by Taylor-Hood elements to rounding; the outlet is free."""

    def inflow(x):
        return jnp.stack([4 * x[1] * (1 - x[1]), 0 * x[0]])

    problem = Problem(
        Rectangle((0, 0), (2, 1)),
        -div(grad(v)) + grad(p) == 0,
        div(v) == 0,
        Dirichlet(v, inflow, on=("left", "top", "bottom")),
        Dirichlet(v[1], 0, on="right"),
        Neumann(v[0], 0, on="right"),
    )
    s = solve(problem, order=2, cells=(4, 3))
    assert float(s.error(inflow)) < 1e-11
    points = np.random.default_rng(0).uniform([0, 0], [2, 1], (20, 2))
    assert np.allclose(s(points, "p"), 8 * (2 - points[:, 0]), atol=1e-9)
