"""Exponential time differencing on periodic boxes: observed orders, exact waves, derivatives, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import ConvergenceError, SciaxError
from sciax.science import (
    Dirichlet,
    Field,
    Initial,
    Interval,
    Parameter,
    Periodic,
    Problem,
    Rectangle,
    div,
    dt,
    grad,
    solve,
)

u = Field("u")


pytestmark = pytest.mark.usefixtures("x64")


def burgers():
    return Problem(
        Interval(0, 2 * np.pi),
        dt(u) + u * grad(u)[0] - div(0.05 * grad(u)) == 0,
        Periodic(u),
        Initial(u, lambda x: jnp.sin(x[0])),
    )


@pytest.mark.parametrize(("order", "cap"), [(1, 4e-3), (2, 5e-5), (3, 6e-7), (4, 6e-9)])
def test_observed_order(order, cap):
    def end(steps, order):
        return solve(burgers(), method="etdrk", cells=64, time=(0, 1), steps=steps, order=order, saves=1).values()

    fine = end(2048, 4)
    coarse, half = (float(jnp.abs(end(n, order) - fine).max()) for n in (64, 128))
    assert half < cap
    assert np.log2(coarse / half) == pytest.approx(order, abs=0.05)


def test_korteweg_de_vries_soliton():
    # u = c/2 sech^2(sqrt(c)/2 (x - c t)) of u_t + 6 u u_x + u_xxx = 0; the mass stays to round-off.
    c = 4.0

    def soliton(x, t=0.0):
        return c / 2 / jnp.cosh(c**0.5 / 2 * (x[0] - c * t)) ** 2

    kdv = Problem(
        Interval(-4 * np.pi, 4 * np.pi),
        dt(u) + 6 * u * grad(u)[0] + grad(div(grad(u)))[0] == 0,
        Periodic(u),
        Initial(u, soliton),
    )
    s = solve(kdv, method="etdrk", cells=256, time=(0, 1), steps=2000)
    assert float(s.error(lambda x: soliton(x, 1.0))) < 3e-6
    assert float(s.integrate(u)) == pytest.approx(float(s.snapshot(0).integrate(u)), abs=1e-11)


def vortices(nu):
    w, psi = Field("w"), Field("psi")
    return Problem(
        Rectangle((0, 0), (2 * np.pi, 2 * np.pi)),
        dt(w) + grad(psi)[1] * grad(w)[0] - grad(psi)[0] * grad(w)[1] - div(nu * grad(w)) == 0,
        -div(grad(psi)) == w,
        Periodic(w),
        Initial(w, lambda x: 2 * jnp.sin(x[0]) * jnp.sin(x[1])),
    )


def test_taylor_green_vortices_decay_exactly():
    s = solve(vortices(0.1), method="etdrk", cells=32, time=(0, 1), steps=20)
    assert float(s.error(lambda x: 2 * jnp.sin(x[0]) * jnp.sin(x[1]) * jnp.exp(-0.2))) < 1e-13


def test_gradient_in_a_parameter_and_a_state():
    nu = Parameter("nu", 0.05)
    flow = Problem(
        Interval(0, 2 * np.pi),
        dt(u) + u * grad(u)[0] - div(nu * grad(u)) == 0,
        Periodic(u),
        Initial(u, lambda x: jnp.sin(x[0])),
    )

    def target(value):
        return jnp.sum(solve(flow.with_(nu=value), method="etdrk", cells=32, time=(0, 1), steps=50).values() ** 4)

    h = 1e-3
    gradient = float(jax.grad(target)(0.05))
    differences = float(
        (8 * (target(0.05 + h) - target(0.05 - h)) - target(0.05 + 2 * h) + target(0.05 - 2 * h)) / (12 * h)
    )
    assert gradient == pytest.approx(differences, rel=1e-7)
    _, tangent = jax.jvp(target, (0.05,), (1.0,))
    assert float(tangent) == pytest.approx(gradient, rel=1e-12)


def test_refusals():
    fixed = Problem(
        Interval(0, 1), dt(u) - div(grad(u)) == 0, Dirichlet(u, 0), Initial(u, lambda x: jnp.sin(jnp.pi * x[0]))
    )
    with pytest.raises(SciaxError, match="not all sides are periodic"):
        solve(fixed, method="etdrk", time=(0, 1))
    with pytest.raises(SciaxError, match="order 1, 2, 3 or 4"):
        solve(burgers(), method="etdrk", time=(0, 1), order=5)
    growing = Problem(Interval(0, 1), dt(u) == u**3, Periodic(u), Initial(u, 5.0))
    with pytest.raises(ConvergenceError, match="more steps"):
        solve(growing, method="etdrk", cells=16, time=(0, 10), steps=50)
