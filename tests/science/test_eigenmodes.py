"""Eigenvalues and modes: closed forms, a published corner singularity, observed orders, derivatives, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, UnsupportedError
from sciax.science import (
    Dirichlet,
    Field,
    Interval,
    Neumann,
    Parameter,
    Periodic,
    Problem,
    Rectangle,
    Robin,
    div,
    eigenmodes,
    grad,
    laplace,
)
from sciax.science.geometry import Polygon

pytestmark = pytest.mark.usefixtures("x64")
u, lam = Field("u"), Parameter("lam", 0.0)


def string(*conditions):
    return Problem(Interval(), -laplace(u) == lam * u, *(conditions or (Dirichlet(u, 0),)))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_string_has_its_tones_and_their_order(order):
    exact = (np.pi * np.arange(1, 4)) ** 2
    coarse, fine = (np.asarray(eigenmodes(string(), lam, 3, order=order, cells=n).values) for n in (8, 16))
    assert (fine > exact * (1 - 1e-12)).all()  # Rayleigh and Ritz: from above
    observed = np.log2((coarse - exact) / (fine - exact))
    np.testing.assert_allclose(observed[:2], 2 * order, atol=0.12)
    assert fine == pytest.approx(exact, rel={1: 3e-2, 2: 3e-4, 3: 1e-6}[order])


def test_modes_are_sines_of_unit_weight():
    modes = eigenmodes(string(), "lam", 2, order=3, cells=16)
    x = np.linspace(0, 1, 9)[:, None]
    np.testing.assert_allclose(np.abs(modes.modes[1](x)), np.abs(np.sqrt(2) * np.sin(2 * np.pi * x[:, 0])), atol=1e-4)
    assert float(modes.modes[0].integrate(u**2)) == pytest.approx(1.0, rel=1e-10)
    data = modes.to_xarray()
    assert data.sizes["mode"] == 2 and float(data.eigenvalue[0]) == pytest.approx(np.pi**2, rel=1e-6)


def test_a_square_with_free_edges_begins_at_zero():
    free = Problem(Rectangle(), -laplace(u) == lam * u, Neumann(u, 0.0))
    values = np.asarray(eigenmodes(free, lam, 4, order=3, cells=5).values)
    np.testing.assert_allclose(values, np.pi**2 * np.array([0, 1, 1, 2]), atol=2e-3)


def test_nearest_to_a_number_and_on_a_ring():
    ring = Problem(Interval(0, 2 * np.pi), -laplace(u) == lam * u, Periodic(u))
    values = eigenmodes(ring, lam, 2, near=9.5, order=3, cells=32).values
    np.testing.assert_allclose(values, [9.0, 9.0], rtol=1e-5)


@pytest.mark.slow
def test_the_corner_of_an_l():
    """9.6397238440219 (Trefethen & Betcke, 2006); the corner's singularity limits the order to 4/3."""
    shape = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    problem = Problem(shape, -laplace(u) == lam * u, Dirichlet(u, 0))
    errors = [float(eigenmodes(problem, lam, 1, order=2, size=h).values[0]) - 9.6397238440219 for h in (0.1, 0.05)]
    assert 0 < errors[1] < 0.01
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4 / 3, abs=0.35)


def test_derivatives_are_those_of_differences():
    k, h = Parameter("k", 1.3), Parameter("h", 2.0)
    problem = Problem(
        Interval(),
        -div((1 + k * (lambda x: x[0])) * grad(u)) + u == lam * u,
        Dirichlet(u, 0, on="left"),
        Robin(u, h, 0.0, on="right"),
    )

    def tone(k, h):
        return eigenmodes(problem.with_(k=k, h=h), lam, 2, order=2, cells=8).values[1]

    slopes = jax.grad(tone, (0, 1))(1.3, 2.0)
    step = 1e-4
    assert float(slopes[0]) == pytest.approx(
        float(tone(1.3 + step, 2.0) - tone(1.3 - step, 2.0)) / (2 * step), rel=1e-7
    )
    assert float(slopes[1]) == pytest.approx(float(tone(1.3, 2 + step) - tone(1.3, 2 - step)) / (2 * step), rel=1e-7)


def test_refusals():
    v = Parameter("v", 1.0)
    options = {"cells": 4}
    with pytest.raises(InputError, match="neither sources"):
        eigenmodes(Problem(Interval(), -laplace(u) == lam * u + 1.0, Dirichlet(u, 0)), lam, 1, **options)
    with pytest.raises(InputError, match="boundary values up to 2"):
        eigenmodes(string(Dirichlet(u, 2.0)), lam, 1, **options)
    with pytest.raises(InputError, match="not linear in lam"):
        eigenmodes(Problem(Interval(), -laplace(u) == lam * lam * u, Dirichlet(u, 0)), lam, 1, **options)
    with pytest.raises(InputError, match="no parameter 'mu'"):
        eigenmodes(string(), "mu")
    with pytest.raises(InputError, match="1 to 2"):
        eigenmodes(string(), lam, 6, **options)
    with pytest.raises(UnsupportedError, match="not symmetric"):
        eigenmodes(Problem(Interval(), -laplace(u) + v * grad(u)[0] == lam * u, Dirichlet(u, 0)), lam, 1, **options)
    with pytest.raises(InputError, match="negative"):
        eigenmodes(Problem(Interval(), -laplace(u) + lam * u == 0.0, Dirichlet(u, 0)), lam, 1, **options)
    with pytest.raises(UnsupportedError, match="on the host"):
        jax.jit(lambda s: eigenmodes(string(), lam, 1, near=0.0, **options).values * s + eigenmodes(
            Problem(Interval(), -div(Parameter("k", 1.0) * grad(u)) == lam * u, Dirichlet(u, 0)).with_(k=s), lam, 1, **options
        ).values)(jnp.asarray(1.0))  # fmt: skip
