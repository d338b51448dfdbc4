"""Weak forms given by hand, periodic sides, moved points, hyperelasticity, steps in time, and refusals of the element method."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import ConvergenceError, InputError, SingularError, UnsupportedError
from sciax.science import (
    Dirichlet,
    Domain,
    Field,
    Initial,
    Interval,
    Mesh,
    Neumann,
    Parameter,
    Periodic,
    Problem,
    Rectangle,
    Robin,
    apply,
    box_mesh,
    div,
    dot,
    dt,
    grad,
    solve,
)

pytestmark = pytest.mark.usefixtures("x64")

u, v, k = Field("u"), Field("v", 2), Parameter("k", 1.5)


def test_given_weak_form_is_the_derived_one():
    parts = Dirichlet(u, 0, on="left"), Neumann(u, 0.3, on="right"), Robin(u, 2.0, 1.0, on=("top", "bottom"))
    strong = Problem(Rectangle(), -div(k * grad(u)) + u**3 == 1, *parts)
    weak = Problem(Rectangle(), *parts, weak={u: lambda w: dot(k * grad(u), grad(w)) + (u**3 - 1) * w})
    a, b = (solve(p, order=2, cells=4) for p in (strong, weak))
    assert np.allclose(a.coefficients, b.coefficients, rtol=0, atol=1e-12)
    slopes = [jax.grad(lambda c, p=p: solve(p.with_(k=c), order=2, cells=4).integrate(u))(1.2) for p in (strong, weak)]
    assert float(slopes[0]) == pytest.approx(float(slopes[1]), rel=1e-11)
    with pytest.raises(UnsupportedError, match="method='fem'"):
        solve(weak, method="spectral")
    with pytest.raises(InputError, match="not linear in its test function"):
        solve(Problem(Rectangle(), Dirichlet(u, 0), weak={u: lambda w: dot(grad(u), grad(w)) * w}))


def test_weak_form_of_a_vector_field():
    """Linear elasticity under its own weak form: a linear displacement is reproduced."""
    exact = lambda x: jnp.stack([0.1 * x[0] + 0.2 * x[1], -0.3 * x[0] + 0.4 * x[1]])  # noqa: E731
    form = lambda w: dot(grad(v)[0], grad(w)[0]) + dot(grad(v)[1], grad(w)[1])  # noqa: E731
    s = solve(Problem(Rectangle(), Dirichlet(v, exact), weak={v: form}), cells=3)
    assert float(s.error(exact)) < 1e-13


@pytest.mark.parametrize("order", [1, 2])
def test_periodic_sides(order):
    """-lap u + u = f, periodic along x: observed order, and equal values on both sides."""

    def exact(x):
        return jnp.sin(2 * jnp.pi * x[0] + 0.3) * jnp.cos(jnp.pi * x[1])

    problem = Problem(
        Rectangle(),
        -div(grad(u)) + u == (lambda x: (5 * jnp.pi**2 + 1) * exact(x)),
        Periodic(u, (0,)),
        Neumann(u, 0, on="rest"),
    )
    errors = []
    for cells in (12, 24):
        s = solve(problem, order=order, cells=cells)
        errors.append(float(s.error(exact)))
    y = np.linspace(0.1, 0.9, 5)
    assert np.allclose(s(np.stack([0 * y, y], 1)), s(np.stack([0 * y + 1, y], 1)), atol=1e-12)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order + 1, abs=0.08)
    assert errors[1] < (8e-3, 2e-4)[order - 1]


def test_mesh_without_matching_sides_is_refused():
    mesh = box_mesh([0, 0], [1, 1], 4)
    points = mesh.points.copy()
    points[np.flatnonzero((points[:, 0] == 1) & (points[:, 1] == 0.5)), 1] = 0.6
    domain = Domain.from_mesh(replace(mesh, points=points, cache={}))
    with pytest.raises(InputError, match="do not match"):
        solve(Problem(domain, -div(grad(u)) + u == 1, Periodic(u, (0,)), Neumann(u, 0, on="rest")))


@pytest.mark.slow
def test_gradient_in_the_points_of_the_mesh():
    """Against central differences, and: moving inner points only changes the discretisation error."""
    mesh = box_mesh([0, 0], [1, 1], 6)
    problem = Problem(
        Domain.from_mesh(mesh), -div(grad(u)) + u**3 == 1, Dirichlet(u, 0, on="left"), Neumann(u, 0, on="rest")
    )
    direction = np.random.default_rng(0).standard_normal(mesh.points.shape) * 0.1

    def objective(a):
        s = solve(problem.with_points(mesh.points + a * direction), order=2)
        return s.integrate(u**2) + s.flux("left")

    slope, step = float(jax.grad(objective)(0.05)), 1e-5
    central = float(objective(0.05 + step) - objective(0.05 - step)) / (2 * step)
    assert slope == pytest.approx(central, rel=1e-7)
    stretched = mesh.points * np.array([2.0, 1.0])
    assert float(solve(problem.with_points(stretched)).integrate(lambda x: x[0])) == pytest.approx(2.0, rel=1e-12)
    with pytest.raises(InputError, match="folds cells"):
        solve(problem.with_points(mesh.points * np.array([-1.0, 1.0])))
    with pytest.raises(UnsupportedError, match="could be moved"):
        solve(problem.with_points(mesh.points), method="fdm")


def neo_hookean(g):
    """First Piola stress of a compressible neo-Hookean solid, mu = 1, lambda = 2 (plane strain)."""
    f = g + jnp.eye(2, dtype=g.dtype)
    j = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]
    inverse = jnp.array([[f[1, 1], -f[1, 0]], [-f[0, 1], f[0, 0]]]) / j  # F^-T
    return f - inverse + 2.0 * jnp.log(j) * inverse


def test_hyperelastic_bar():
    """Uniaxial stretch with free sides: the transverse stretch solves P_yy = 0 and the load is P_xx, in closed form."""
    from scipy.optimize import brentq

    stretch = 1.5
    p_yy = lambda b: b - 1 / b + 2 * np.log(stretch * b) / b  # noqa: E731
    across = brentq(p_yy, 0.3, 1.0)
    load = stretch - 1 / stretch + 2 * np.log(stretch * across) / stretch
    problem = Problem(
        Rectangle(), -div(apply(neo_hookean, grad(v))) == 0,
        Dirichlet(v[0], 0, on="left"), Dirichlet(v[0], stretch - 1, on="right"), Neumann(v[0], 0, on=("top", "bottom")),
        Dirichlet(v[1], 0, on="bottom"), Neumann(v[1], 0, on=("left", "right", "top")),
    )  # fmt: skip
    s = solve(problem, order=2, cells=3)
    exact = lambda x: jnp.stack([(stretch - 1) * x[0], (across - 1) * x[1]])  # noqa: E731
    assert float(s.error(exact)) < 1e-10
    assert float(s.flux("right")[0]) == pytest.approx(load, rel=1e-9)


def test_semi_implicit_steps_are_of_second_order():
    """Burgers' travelling wave; the same answer as the implicit steps."""
    nu = 0.1
    wave = lambda x, t: 1 - jnp.tanh((x[0] - t) / (2 * nu))  # noqa: E731
    problem = Problem(
        Interval(-1, 2),
        dt(u) + u * grad(u)[0] - div(nu * grad(u)) == 0,
        Dirichlet(u, wave),
        Initial(u, lambda x: wave(x, 0.0)),
    )
    options = {"order": 3, "cells": 60, "time": (0.0, 0.4), "saves": 1}
    errors = [float(solve(problem, steps=n, stepper="imex", **options).error(lambda x: wave(x, 0.4))) for n in (40, 80)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    assert errors[1] < 4e-4


def test_flux_of_a_transient_solution():
    """Heat through the ends balances the change of content at each saved time."""
    problem = Problem(
        Interval(), dt(u) - div(grad(u)) == 0, Dirichlet(u, 0), Initial(u, lambda x: jnp.sin(jnp.pi * x[0]))
    )
    s = solve(problem, order=3, cells=10, time=(0.0, 0.1), steps=20, saves=4)
    exact = -2 * np.pi * np.exp(-(np.pi**2) * 0.1)
    assert float(s.flux("boundary")) == pytest.approx(exact, rel=1e-4)
    middle = s.snapshot(2)
    assert float(middle.flux("boundary")) == pytest.approx(-2 * np.pi * np.exp(-(np.pi**2) * 0.05), rel=1e-4)


def test_continuation_and_newton_history():
    """Bratu close to its turning point at lam = 3.5138."""
    lam = Parameter("lam", 3.5)
    problem = Problem(Interval(), div(grad(u)) + lam * apply(jnp.exp, u) == 0, Dirichlet(u, 0))
    with pytest.raises(ConvergenceError, match="continuation") as caught:
        solve(problem, cells=20, order=2, newton=4)
    assert len(caught.value.history) == 5
    assert all(np.isfinite(caught.value.history))
    s = solve(problem, cells=20, order=2, newton=7, continuation={"lam": (2.0, 3.0, 3.4)})
    theta = 4.5518536
    assert float(s([0.5])) == pytest.approx(2 * np.log(np.cosh(theta / 4)), rel=2e-2)
    with pytest.raises(InputError, match="did you mean 'lam'"):
        solve(problem, continuation={"lamb": (1.0,)})


def test_parts_of_the_mesh_that_nothing_holds():
    a, b = box_mesh([0, 0], [1, 1], 3), box_mesh([2, 0], [3, 1], 3)
    mesh = Mesh(np.concatenate([a.points, b.points]), np.concatenate([a.cells, b.cells + len(a.points)]), "triangle")
    mesh = mesh.with_boundaries(first=lambda x: x[:, 0] < 1.5, second=lambda x: x[:, 0] > 1.5)
    equation = -div(grad(u)) == 1
    with pytest.raises(SingularError, match=r"(?s)2 unconnected parts.*around"):
        solve(Problem(Domain.from_mesh(mesh), equation, Dirichlet(u, 0, on="first"), Neumann(u, 0, on="second")))
    assert solve(Problem(Domain.from_mesh(mesh), equation, Dirichlet(u, 0))).info.status == 0


def test_over_and_under_constrained():
    with pytest.raises(InputError, match="over-constrained"):
        solve(Problem(Rectangle(), -div(grad(u)) == 1, Dirichlet(u, 0), Dirichlet(u, 1, on="top")))
    stress = grad(v)
    with pytest.raises(SingularError):  # nothing holds the second component
        solve(Problem(Rectangle(), -div(stress) == 0, Dirichlet(v[0], 0), Neumann(v[1], 0)), cells=4)


def test_degenerate_cells_are_refused():
    mesh = box_mesh([0, 0], [1, 1], 2)
    flat = mesh.points.copy()
    flat[:, 1] = 0.0
    with pytest.raises(InputError, match="degenerate or folded"):
        solve(Problem(Domain.from_mesh(replace(mesh, points=flat, cache={})), -div(grad(u)) == 1, Dirichlet(u, 0)))
