"""Finite elements: observed orders, absolute caps, patch tests, coefficients, conditions, gradients."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.science import (
    Box,
    Dirichlet,
    Domain,
    Field,
    Interval,
    Neumann,
    Parameter,
    Problem,
    Rectangle,
    Robin,
    box_mesh,
    compare,
    coordinates,
    div,
    dot,
    grad,
    read_mesh,
    solve,
)

pytestmark = pytest.mark.usefixtures("x64")

u, k = Field("u"), Parameter("k", 1.0)


def wave(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


def poisson(domain, **conditions):
    dim = domain.dim
    return Problem(domain, -div(k * grad(u)) == (lambda x: dim * jnp.pi**2 * wave(x)), Dirichlet(u, 0))


# (domain, kind, order, cells, cap of the finer L2 error)
ORDERS = [
    (Interval(), "interval", 1, (16, 32), 1.1e-3),
    (Interval(), "interval", 2, (16, 32), 1.2e-5),
    (Interval(), "interval", 3, (16, 32), 1e-7),
    (Rectangle(), "triangle", 1, (24, 48), 6.1e-4),
    (Rectangle(), "triangle", 2, (16, 32), 8.7e-6),
    (Rectangle(), "triangle", 3, (24, 48), 1.6e-8),
    (Rectangle(), "quad", 1, (16, 32), 4.8e-4),
    (Rectangle(), "quad", 2, (8, 16), 3.1e-5),
    (Rectangle(), "quad", 3, (8, 16), 3.6e-7),
    (Box(), "tet", 1, (12, 18), 1e-2),
    (Box(), "tet", 2, (6, 9), 1.5e-3),
    (Box(), "hex", 1, (6, 12), 4e-3),
    (Box(), "hex", 2, (4, 6), 7e-4),
]


FAST = {("interval", 2), ("triangle", 1), ("triangle", 2), ("triangle", 3), ("quad", 2), ("tet", 1)}
CASES = [pytest.param(*c, id=f"{c[1]}-{c[2]}", marks=() if c[1:3] in FAST else pytest.mark.slow) for c in ORDERS]


@pytest.mark.parametrize(("domain", "kind", "order", "cells", "cap"), CASES)
def test_observed_order(domain, kind, order, cells, cap):
    problem = poisson(domain)
    solutions = [solve(problem, order=order, cells=c, kind=kind) for c in cells]
    l2 = [float(s.error(wave)) for s in solutions]
    h1 = [float(s.error(wave, "H1")) for s in solutions]
    ratio = np.log(cells[1] / cells[0])
    assert l2[1] < cap
    # coarse three-dimensional meshes are short of their asymptotic rate
    slack = 0.05 if domain.dim < 3 else 0.2
    assert np.log(l2[0] / l2[1]) / ratio == pytest.approx(order + 1, abs=slack)
    assert np.log(h1[0] / h1[1]) / ratio == pytest.approx(order, abs=slack)


def test_published_errors():
    """The figures of scikit-fem 12 on the same meshes, with the norm taken by its quadrature (degree 2 order)."""
    problem = poisson(Rectangle())
    assert float(solve(problem, order=1, cells=224).error(wave, degree=2)) == pytest.approx(2.671e-5, rel=2e-4)
    assert float(solve(problem, order=2, cells=112).error(wave, degree=4)) == pytest.approx(1.666e-7, rel=2e-4)


def test_torsion_of_a_square():
    """-lap u = 1: the series for the largest value and the integral (Timoshenko)."""
    odd = np.arange(1, 200, 2)
    top = 0.125 - 4 / np.pi**3 * np.sum((-1.0) ** ((odd - 1) // 2) / (odd**3 * np.cosh(odd * np.pi / 2)))
    whole = 1 / 12 - 16 / np.pi**5 * np.sum(np.tanh(odd * np.pi / 2) / odd**5)
    s = solve(Problem(Rectangle(), -div(grad(u)) == 1, Dirichlet(u, 0)), order=3, cells=16)
    assert float(s([0.5, 0.5])) == pytest.approx(top, rel=5e-6)
    assert float(s.integrate(u)) == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize(
    ("order", "kind"),
    [(1, "triangle"), (2, "quad"), (3, "triangle")]
    + [pytest.param(*c, marks=pytest.mark.slow) for c in ((2, "triangle"), (1, "quad"), (3, "quad"))],
)
def test_polynomials_are_reproduced(kind, order):
    """Patch test with anisotropic coefficient, advection, reaction, flux and Robin conditions."""
    x, _ = coordinates(2)
    exact = lambda p: (0.3 + p[0] - 2 * p[1]) ** order  # noqa: E731
    tensor = np.array([[2.0, 0.3], [0.3, 1.0]])
    wind = np.array([0.5, -1.0])

    def source(p):
        slope = jax.jacfwd(exact)
        return -jnp.trace(tensor @ jax.jacfwd(slope)(p)) + wind @ slope(p) + 3 * exact(p)

    from sciax.science import Normal

    def gradient(p):
        return tensor @ jax.jacfwd(exact)(p)

    problem = Problem(
        Rectangle((0, 0), (1, 2)),
        -div(tensor @ grad(u)) + dot(wind, grad(u)) + 3 * u == source,
        Dirichlet(u, exact, on=("left", "bottom")),
        Neumann(u, dot(gradient, Normal()), on="right"),
        Robin(u, 2.0 + x, dot(gradient, Normal()) + (2.0 + x) * exact, on="top"),
    )
    s = solve(problem, order=order, cells=(2, 3), kind=kind)
    assert float(s.error(exact)) < 1e-11


def test_coefficients_of_every_kind_agree():
    mesh = box_mesh([0, 0], [1, 1], 6)
    right = mesh.centres[:, 0] > 0.5
    mesh.cell_groups.update(a=np.flatnonzero(~right), b=np.flatnonzero(right))
    domain = Domain.from_mesh(mesh)

    def problem(coefficient):
        return Problem(domain, -div(coefficient * grad(u)) == 1, Dirichlet(u, 0))

    reference = solve(problem({"a": 1.0, "b": 5.0})).coefficients
    cells = np.where(right, 5.0, 1.0)
    others = [
        problem(lambda x: jnp.where(x[0] > 0.5, 5.0, 1.0)),
        problem({"b": Parameter("kb", 5.0), "default": 1.0}),
        problem(Parameter("kc", {"a": 1.0, "b": 5.0})),
        problem(Parameter("k", cells, on="cells")),
        problem(Parameter("k", on="quadrature")).with_(k=np.broadcast_to(cells, (3, len(cells)))),
    ]
    for other in others:
        assert np.allclose(solve(other).coefficients, reference, rtol=1e-12)
    linear = Parameter("k", 1 + mesh.points[:, 0], on="points")
    assert np.allclose(solve(problem(linear)).coefficients, solve(problem(lambda x: 1 + x[0])).coefficients, rtol=1e-12)


def test_sign_of_the_equation_does_not_change_the_flux():
    domain = Interval(0, 2)
    for equation in (-div(k * grad(u)) == 1, div(k * grad(u)) + 1 == 0, 2 * div(k * grad(u)) == -2):
        problem = Problem(domain, equation, Dirichlet(u, 0, on="left"), Neumann(u, 0.5, on="right")).with_(k=3.0)
        s = solve(problem, order=2, cells=4)
        assert float(s([2.0])) == pytest.approx((0.5 * 2 + 4 - 2) / 3.0, rel=1e-12)


def test_fluxes_balance():
    problem = Problem(
        Rectangle(), -div(k * grad(u)) == (lambda x: x[0]), Dirichlet(u, lambda x: x[1], on="left"),
        Robin(u, 2.0, 1.0, on="right"), Neumann(u, 0.3, on=("top", "bottom")),
    ).with_(k=0.7)  # fmt: skip
    s = solve(problem, order=2, cells=6)
    assert float(s.flux("boundary")) == pytest.approx(-0.5, abs=1e-11)
    assert sum(float(s.flux(side)) for side in ("left", "right", "top", "bottom")) == pytest.approx(-0.5, abs=1e-11)
    assert float(s.flux("top")) == pytest.approx(0.3, abs=1e-11)


def test_point_evaluation_and_where():
    s = solve(
        Problem(Rectangle(), -div(grad(u)) == 0, Dirichlet(u, lambda x: x[0] + 2 * x[1], on=lambda x: x[0] >= -1)),
        cells=5,
    )
    points = np.random.default_rng(0).uniform(0, 1, (50, 2))
    assert np.allclose(s(points), points @ [1, 2], atol=1e-12)
    assert float(s([1.0, 1.0])) == pytest.approx(3.0)


def test_error_estimate_is_near_the_error():
    for order in (1, 2):
        s = solve(poisson(Rectangle()), order=order, cells=16)
        ratio = s.error_estimate / float(s.error(wave, "H1"))
        assert 0.5 < ratio < 1.5


@cache
def everything() -> Problem:
    """A problem with a parameter in each place one can be."""
    a, b, g = Parameter("a", 1.0), Parameter("b", 1.0), Parameter("g", 0.3)
    return Problem(
        Rectangle(),
        -div((a + b * (lambda x: x[0] ** 2)) * grad(u)) + u == Parameter("amplitude", 1.0) * wave,
        Dirichlet(u, Parameter("left", 0.2) * (lambda x: 1 + x[1]), on="left"),
        Neumann(u, g, on="right"),
        Robin(u, Parameter("h", 2.0), g, on=("top", "bottom")),
    )


def objective(name):
    """Integral of u^2 against one parameter."""
    return lambda value: solve(everything().with_(**{name: value}), order=2, cells=4).integrate(u**2)


@pytest.mark.parametrize("name", ["a", "b", "amplitude", "left", "g", "h"])
def test_gradient_against_differences(name):
    f, at, step = objective(name), 0.8, 2e-4
    slope = float(jax.grad(f)(at))
    # fourth-order differences: their own error is below 1e-10 here
    values = [float(f(at + i * step)) for i in (-2, -1, 1, 2)]
    assert slope == pytest.approx((values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step), rel=1e-7)
    assert float(jax.jvp(f, (at,), (1.0,))[1]) == pytest.approx(slope, rel=1e-11)


def test_taylor_slope_second_order_and_jit():
    f, at = objective("a"), 0.8
    slope, bend = jax.grad(f)(at), jax.grad(jax.grad(f))(at)
    steps = 0.05 * 0.5 ** np.arange(4)
    first = [abs(float(f(at + h) - f(at) - h * slope)) for h in steps]
    second = [abs(float(f(at + h) - f(at) - h * slope - h**2 * bend / 2)) for h in steps]
    assert np.log2(np.array(first[:-1]) / first[1:])[-1] == pytest.approx(2.0, abs=0.05)
    assert np.log2(np.array(second[:-1]) / second[1:])[-1] == pytest.approx(3.0, abs=0.05)
    assert float(jax.jit(jax.grad(f))(at)) == pytest.approx(float(slope), rel=1e-12)
    assert np.allclose(jax.vmap(f)(jnp.array([0.5, at])), [float(f(0.5)), float(f(at))], rtol=1e-12)


def test_gradient_in_a_field_of_coefficients():
    mesh = box_mesh([0, 0], [1, 1], 4)
    problem = Problem(Domain.from_mesh(mesh), -div(Parameter("k", on="cells") * grad(u)) == 1, Dirichlet(u, 0))
    f = lambda values: solve(problem.with_(k=values)).integrate(u)  # noqa: E731
    at = np.random.default_rng(0).uniform(1, 2, len(mesh.cells))
    direction = np.random.default_rng(1).standard_normal(len(at))
    slope = float(jax.grad(f)(jnp.asarray(at)) @ direction)
    h = 1e-5
    assert slope == pytest.approx(float(f(at + h * direction) - f(at - h * direction)) / (2 * h), rel=1e-7)


@pytest.mark.parametrize(
    "solver", ["amg", "gmres", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cg", "bicgstab"))]
)
def test_linear_solvers_agree(solver):
    problem = poisson(Rectangle())
    exact = solve(problem, cells=12)
    s = solve(problem, cells=12, solver=solver)
    assert compare(exact, s).relative < 1e-8
    assert int(s.info.iterations) > 1
    value = jax.grad(lambda v: solve(problem.with_(k=v), cells=12, solver=solver).integrate(u))(1.3)
    assert float(value) == pytest.approx(
        float(jax.grad(lambda v: solve(problem.with_(k=v), cells=12).integrate(u))(1.3)), rel=1e-7
    )


def test_float32_by_default_outside_x64():
    from sciax.core import x64 as scope

    with scope(False):
        s = solve(Problem(Rectangle(), -div(grad(u)) == 1, Dirichlet(u, 0)), cells=8)
        assert s.coefficients.dtype == jnp.float32
        assert float(s.integrate(u)) == pytest.approx(0.033423, abs=2e-6)


def test_files_open_elsewhere(tmp_path):
    import meshio
    import xarray as xr

    s = solve(poisson(Rectangle()), order=2, cells=4)
    back = meshio.read(s.to_vtu(tmp_path / "u.vtu"))
    assert back.cells[0].type == "triangle6"
    middle = np.flatnonzero((np.abs(back.points[:, :2] - 0.5) < 1e-12).all(axis=1))
    assert back.point_data["u"][middle[0]] == pytest.approx(float(s([0.5, 0.5])))
    assert np.allclose(back.point_data["u"], s(back.points[:, :2]), atol=1e-12)
    s.to_xarray().to_netcdf(tmp_path / "u.nc")
    with xr.open_dataset(tmp_path / "u.nc") as data:
        assert data["mesh"].attrs["cf_role"] == "mesh_topology"
        assert data["u"].sizes["node"] == len(s.mesh.points)
    s.plot(path=tmp_path / "u.png")
    assert (tmp_path / "u.png").stat().st_size > 5000


def test_quadratic_geometry(shared_data):
    """A curved sphere: quadratic cells hold its volume far better than straight ones."""
    mesh = read_mesh(shared_data / "pde" / "meshes" / "skfem" / "quadratic_sphere_tet.msh")
    s = solve(Problem(Domain.from_mesh(mesh), -div(grad(u)) == 6, Dirichlet(u, 0)), order=2)
    volume = float(s.integrate(lambda x: 1.0))
    radius = 0.5
    assert abs(volume - 4 / 3 * np.pi * radius**3) < 0.05 * abs(mesh.volume - 4 / 3 * np.pi * radius**3)
