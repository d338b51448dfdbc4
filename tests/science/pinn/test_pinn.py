"""Networks as solutions: derivatives against automatic ones, residuals and conditions against closed forms, small trainings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, PrecisionError, UnsupportedError
from sciax.science import (
    Box,
    Dirichlet,
    Field,
    Initial,
    Interval,
    Neumann,
    Parameter,
    Periodic,
    Problem,
    Rectangle,
    Robin,
    compare,
    div,
    dot,
    dt,
    grad,
    laplace,
    solve,
)
from sciax.science.pinn import NetworkOptions, Observations, Strong, System, jet_of
from sciax.science.pinn._causal import causal_weights
from sciax.science.pinn._jets import closed, laplacian_index
from sciax.science.pinn.networks import NETWORKS, build

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(3)
POINTS = np.random.default_rng(0).uniform(-1, 1, (2, 7))


def system_of(problem, **options):
    defaults = {
        "time": None,
        "hard": True,
        "lift": None,
        "features": (),
        "unknowns": {},
        "observations": (),
        "key": KEY,
    }
    return System(problem, NetworkOptions(width=6, depth=2), **{**defaults, **options})


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_derivatives_through_networks(name):
    """Carried Taylor coefficients are those of nested forward mode, to third order, mixed ones too."""
    network = build(name, 2, 2, width=5, depth=3, activation=None, key=KEY)
    if name == "pirate":  # away from its start, where the blocks are the identity
        network = jax.tree.map(lambda v: v + 0.3, network)
    indices = closed([(3, 0), (1, 1), (0, 2)], 2)
    mine = jax.jit(lambda z: network(jet_of(lambda z: z, z, indices)))(jnp.asarray(POINTS))
    want = jax.jit(lambda z: jet_of(lambda z: network(z[:, None])[:, 0], z, indices))(jnp.asarray(POINTS))
    for index in indices:
        np.testing.assert_allclose(mine.parts[index], want.parts[index], rtol=1e-11, atol=1e-12)


def test_forward_laplacian():
    network = build("mlp", 3, 1, width=5, depth=2, activation="swish", key=KEY)
    points = jax.random.normal(KEY, (3, 6))
    indices = closed([laplacian_index(2, 3), (0, 0, 1)], 3)
    got = jax.jit(lambda z: network(jet_of(lambda z: z, z, indices)).parts[(-1, -1, 0)][0])(points)
    hessian = jax.jit(jax.vmap(jax.hessian(lambda z: network(z[:, None])[0, 0]), in_axes=1))(points)
    np.testing.assert_allclose(got, hessian[:, 0, 0] + hessian[:, 1, 1], rtol=1e-11, atol=1e-12)


def test_residual_is_the_equation():
    """Every kind of term at once, against the same written out by hand with u known."""
    u, k = Field("u"), Parameter("k", 0.7)
    problem = Problem(
        Rectangle(),
        dt(u) - div((k + u**2) * grad(u)) + dot(lambda x: jnp.stack([x[1], -x[0]]), grad(u)) == (lambda x, t: x[0] * t),
        Dirichlet(u, 0.0),
        Initial(u, 0.0),
    )
    strong = Strong(problem)
    points = jnp.asarray(np.random.default_rng(1).uniform(0.1, 0.9, (3, 5)))
    exact = lambda z: jnp.stack([jnp.sin(z[0]) * jnp.exp(z[1]) * (1 + z[2])])  # noqa: E731
    needs = strong.needed([problem.equations[0].residual], np.asarray(points), {"k": 0.7})["u"]
    jet = jet_of(exact, points, needs)
    got = strong.over(
        [problem.equations[0].residual], points, {"u": {a: v[0] for a, v in jet.parts.items()}}, {"k": 0.7}
    )[0]
    x, y, t = points
    s, c, e = jnp.sin(x), jnp.cos(x), jnp.exp(y)
    v, gx, gy = s * e * (1 + t), c * e * (1 + t), s * e * (1 + t)
    want = s * e - (0.7 + v**2) * 0.0 - 2 * v * (gx**2 + gy**2) + y * gx - x * gy - x * t  # the Laplacian of v is 0
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_only_needed_derivatives():
    u = Field("u")
    plain = Strong(Problem(Rectangle(), -laplace(u) == 1.0, Dirichlet(u, 0.0)))
    points = np.random.default_rng(0).uniform(size=(2, 64))
    assert plain.needed([plain.problem.equations[0].residual], points, {})["u"][-1] == (-1, -1)
    mixed = Strong(Problem(Rectangle(), grad(grad(u)[0])[1] == 1.0, Dirichlet(u, 0.0)))
    assert set(mixed.needed([mixed.problem.equations[0].residual], points, {})["u"]) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    third = Strong(Problem(Interval(), dt(u) + grad(laplace(u))[0] == 0.0, Initial(u, 0.0)))
    assert set(third.needed([third.problem.equations[0].residual], points, {})["u"]) == {
        (0, 0), (0, 1), (1, 0), (2, 0), (3, 0),
    }  # fmt: skip


def test_hard_conditions_hold_exactly():
    """Whatever the network, on all sides of a box and at the start."""
    u = Field("u")
    exact = lambda x, t: jnp.sin(x[0] + 2 * x[1]) * jnp.exp(-t) + x[0] * t  # noqa: E731
    problem = Problem(
        Rectangle((0, -1), (2, 1)),
        dt(u) - laplace(u) == 0.0,
        Dirichlet(u, exact, on=("left", "right", "top")),
        Neumann(u, 0.0, on="bottom"),
        Initial(u, lambda x: exact(x, 0.5)),
    )
    system = system_of(problem, time=(0.5, 2.0))
    values_at, truth = jax.jit(lambda z: system.values_at(system.model, z)), jax.jit(jax.vmap(exact))
    rng = np.random.default_rng(0)
    for axis, end in ((0, 0.0), (0, 2.0), (1, 1.0), (2, 0.5)):
        z = rng.uniform([0, -1, 0.5], [2, 1, 2], (20, 3))
        z[:, axis] = end
        got = values_at(jnp.asarray(z.T))[0]
        np.testing.assert_allclose(got, truth(z[:, :2], z[:, 2]), atol=1e-13)
    free = values_at(jnp.asarray([[1.0], [-1.0], [1.0]]))[0]
    assert abs(float(free[0] - exact(jnp.asarray([1.0, -1.0]), 1.0))) > 1e-3  # the bottom is the network's


def test_clashing_values_become_soft():
    """The lid of a cavity moves, its walls do not: no continuous function has these values."""
    u = Field("u")
    problem = Problem(Rectangle(), -laplace(u) == 0.0, Dirichlet(u, 1.0, on="top"), Dirichlet(u, 0.0, on="rest"))
    system = system_of(problem)
    assert len(system.terms) == 3 and "soft" in system.notes[0]


def test_periodic_axes_repeat():
    u = Field("u")
    problem = Problem(
        Interval(-1, 1), dt(u) + grad(u)[0] == 0.0, Periodic(u), Initial(u, lambda x: jnp.sin(jnp.pi * x[0]))
    )
    system = system_of(problem, time=(0, 1))
    a, b = (jet_of(lambda z: system.values_at(system.model, z[:, None])[:, 0], jnp.asarray([[x], [0.3]]), closed([(2, 0)], 2))
            for x in (-1.0, 1.0))  # fmt: skip
    for index in a.parts:
        np.testing.assert_allclose(a.parts[index], b.parts[index], atol=1e-11)


@pytest.fixture(scope="module")
def poisson():
    from sciax.core import x64

    with x64():
        u = Field("u")
        source = lambda x: 2 * jnp.pi**2 * jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])  # noqa: E731
        problem = Problem(Rectangle(), -laplace(u) == source, Dirichlet(u, 0.0))
        yield problem, solve(problem, method="pinn", width=12, depth=2, points=500, adam=300, iterations=400, renew=200)


def test_poisson_against_closed_form(poisson):
    _, s = poisson
    x = np.random.default_rng(0).uniform(size=(500, 2))
    want = np.sin(np.pi * x[:, 0]) * np.sin(np.pi * x[:, 1])
    error = np.linalg.norm(s(x) - want) / np.linalg.norm(want)
    assert error < 1e-5
    assert float(s.integrate()) == pytest.approx(4 / np.pi**2, rel=1e-5)
    slope = s.evaluate(grad(s.problem.fields[0]), [[0.25, 0.5]])[0]
    np.testing.assert_allclose(slope, [np.pi * np.sqrt(0.5), 0.0], atol=1e-3)


def test_agrees_with_finite_elements(poisson):
    problem, s = poisson
    assert compare(solve(problem, method="fem", order=3, size=1 / 12), s).relative < 1e-4


def test_solution_as_labelled_arrays(poisson, tmp_path):
    _, s = poisson
    data = s.to_xarray(count=11)
    assert data["u"].dims == ("x", "y")
    assert float(data["u"].sel(x=0.5, y=0.5)) == pytest.approx(1.0, abs=1e-4)
    s.plot(path=tmp_path / "u.png")
    assert (tmp_path / "u.png").stat().st_size > 5000


def test_soft_conditions_and_fluxes():
    """-u'' + u = 0 with a flux on the left and Robin on the right: u = exp(x)."""
    u = Field("u")
    e = float(np.e)
    problem = Problem(
        Interval(), -2.0 * laplace(u) + 2.0 * u == 0.0, Neumann(u, -1.0, on="left"), Robin(u, 1.0, 2 * e, on="right")
    )
    s = solve(problem, method="pinn", width=8, depth=1, points=64, adam=100, iterations=200, renew=100)
    x = np.linspace(0, 1, 9)
    np.testing.assert_allclose(s(x), np.exp(x), rtol=1e-4)


def test_bad_input():
    u = Field("u")
    problem = Problem(Interval(), dt(u) - laplace(u) == 0.0, Dirichlet(u, 0.0), Initial(u, 0.0))
    with pytest.raises(InputError, match="depends on time"):
        solve(problem, method="pinn")
    with pytest.raises(InputError, match="no option 'widht'"):
        solve(problem, method="pinn", widht=3)
    with pytest.raises(InputError, match="empty"):
        system_of(problem, time=(1, 0))
    with pytest.raises(InputError, match="did you mean 'siren'"):
        solve(problem, method="pinn", network="sirne", time=(0, 1))
    with pytest.raises(InputError, match="no condition on u along right"):
        system_of(Problem(Interval(), -laplace(u) == 0.0, Dirichlet(u, 0.0, on="left")))
    with pytest.raises(InputError, match="no initial value"):
        system_of(Problem(Interval(), dt(u) - laplace(u) == 0.0, Dirichlet(u, 0.0)), time=(0, 1))
    with pytest.raises(InputError, match="lift misses"):
        system_of(problem, time=(0, 1), lift=lambda x, t: 1.0 + x[0])
    with pytest.raises(UnsupportedError, match="given by a function"):
        solve(Problem(Box(), -laplace(u) == 0.0, Dirichlet(u, 0.0, on=lambda x: x[0] < 0.5)), method="pinn")


def test_single_precision_is_refused():
    from sciax.core import x64

    u = Field("u")
    with x64(False), pytest.raises(PrecisionError, match="float64"):
        solve(Problem(Interval(), -laplace(u) == 1.0, Dirichlet(u, 0.0)), method="pinn", adam=0)


@pytest.mark.slow  # the tutorial of inverse problems runs the same
def test_unknown_parameter_from_observations():
    """dt(u) = k u_xx with u = exp(-k pi^2 t) sin(pi x): the decay at a few places gives k."""
    u, k = Field("u"), Parameter("k")
    problem = Problem(
        Interval(), dt(u) - k * laplace(u) == 0.0, Dirichlet(u, 0.0), Initial(u, lambda x: jnp.sin(jnp.pi * x[0]))
    )
    at = np.random.default_rng(0).uniform(0.1, 0.9, (12, 2))
    seen = Observations(u, at, np.exp(-0.2 * np.pi**2 * at[:, 1]) * np.sin(np.pi * at[:, 0]))
    options = {"method": "pinn", "time": (0, 1), "width": 8, "depth": 2, "points": 200}
    s = solve(problem, unknowns={"k": 1.0}, observations=seen, adam=100, iterations=400, renew=200, **options)
    assert float(s.unknowns["k"]) == pytest.approx(0.2, rel=2e-3)
    with pytest.raises(InputError, match="nothing determines k"):
        solve(problem, unknowns={"k": 1.0}, **options)
    with pytest.raises(InputError, match="no parameter 'q'"):
        solve(problem, unknowns={"q": 1.0}, observations=seen, **options)
    with pytest.raises(InputError, match="outside the domain"):
        solve(problem, unknowns={"k": 1.0}, observations=Observations(u, [[0.5, 2.0]], [1.0]), **options)


def test_causal_weights():
    """A residual in the first tenth of the interval switches off all that follows, and nothing before."""
    t = jnp.linspace(0.0, 0.999, 100)
    w = causal_weights(jnp.where(t < 0.1, 1.0, 0.0), t, 0.0, 1.0, 50.0, bins=10)
    np.testing.assert_allclose(w[:10], 1.0)
    np.testing.assert_allclose(w[11:], np.exp(-50.0))
    np.testing.assert_allclose(causal_weights(0 * t, t, 0.0, 1.0, 50.0), 1.0)
