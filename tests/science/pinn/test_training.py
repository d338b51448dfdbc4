"""What training is made of: Jacobian, weights, points, windows, interfaces, unknown coefficients. Small, with known answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError
from sciax.science import (
    Dirichlet,
    Field,
    Initial,
    Interval,
    Neumann,
    Parameter,
    Problem,
    div,
    dt,
    grad,
    laplace,
    solve,
)
from sciax.science.pinn import Interface, NetworkOptions, Observations, System, Trainer, TrainOptions
from sciax.science.pinn._balance import Saddle, grad_norm, kernel_trace
from sciax.science.pinn._resample import RESAMPLING
from sciax.science.pinn._stages import Functions

pytestmark = pytest.mark.usefixtures("x64")
u = Field("u")


def small(problem, **options):
    given = {"time": None, "hard": True, "lift": None, "features": (), "unknowns": {}, "observations": (), **options}
    return System(problem, NetworkOptions(width=4, depth=1), **given, key=jax.random.key(0))


@pytest.fixture(scope="module")
def soft():
    """Two soft conditions and the equation, with points and weights of each."""
    from sciax.core import x64

    with x64():
        problem = Problem(
            Interval(), -laplace(u) + u**2 == 1.0, Dirichlet(u, 1.0, on="left"), Neumann(u, 2.0, on="right")
        )
        system = small(problem, hard=False)
        trainer = Trainer(system, TrainOptions(points=16), 0)
        yield system, system.model, trainer.even()


def test_jacobian_by_points_is_that_of_the_whole_vector(soft):
    system, model, prepared = soft
    functions, batch = Functions(system), (prepared, jnp.array([1.0, 3.0, 0.5]))
    r, rows = jax.jit(functions.jacobian)(model, batch)
    np.testing.assert_allclose(r, functions.vector(model, batch), rtol=1e-13)
    assert float(r @ r) == pytest.approx(float(functions.loss(model, batch)), rel=1e-13)
    for mine, whole in zip(
        jax.tree.leaves(rows), jax.tree.leaves(jax.jit(jax.jacrev(functions.vector))(model, batch)), strict=True
    ):
        np.testing.assert_allclose(mine, whole, atol=1e-12)


def test_balanced_terms_pull_alike(soft):
    system, model, prepared = soft
    batch = (prepared, jnp.ones(3))
    weights = jax.jit(lambda m: grad_norm(system, m, prepared))(model)
    gradient = jax.jit(jax.grad(system.loss))

    def pull(k):
        one = jnp.zeros(3).at[k].set(weights[k])
        return np.sqrt(sum(np.sum(g**2) for g in jax.tree.leaves(gradient(model, (prepared, one)))))

    np.testing.assert_allclose([pull(1), pull(2)], pull(0), rtol=1e-9)
    kernel = jax.jit(lambda m: kernel_trace(system, m, prepared))(model)
    _, rows = jax.jit(Functions(system).jacobian)(model, batch)
    size = sum(np.sum(np.asarray(d).reshape(d.shape[0], -1) ** 2, axis=1) for d in jax.tree.leaves(rows))
    counts = [p.points.shape[1] for p in prepared]
    traces = [part.sum() for part in np.split(size, np.cumsum(counts)[:-1])]
    np.testing.assert_allclose(kernel * np.array(traces), traces[0], rtol=1e-9)


def test_self_adaptive_weights_climb_where_the_residual_is(soft):
    system, model, prepared = soft
    saddle = Saddle.start(model, prepared)
    slope = jax.jit(jax.grad(lambda s: s.loss(system, prepared, jnp.ones(3))))(saddle)
    square = np.asarray(system.residual(system.terms[0], model, prepared[0])[0]) ** 2
    np.testing.assert_allclose(slope.weights[0], -2 * square / square.size, rtol=1e-10)
    plain = jax.jit(jax.grad(system.loss))(model, (prepared, jnp.ones(3)))
    for a, b in zip(jax.tree.leaves(slope.model), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(RESAMPLING))
def test_points_go_where_the_residual_is(name):
    """A residual that lives in x > 0.9."""
    rng = np.random.default_rng(0)
    draw = lambda n: rng.uniform(size=(1, n))  # noqa: E731
    size = lambda z: np.where(z[0] > 0.9, 1.0, 1e-3)  # noqa: E731
    first = RESAMPLING[name](draw, size, None, 400, rng)
    now = first
    for _ in range(5):
        now = RESAMPLING[name](draw, size, now, 400, rng)
    assert now.shape == (1, 400) and ((now >= 0) & (now <= 1)).all()
    share = np.mean(now[0] > 0.9)
    if name in ("even", "fixed"):
        assert abs(share - 0.1) < 0.05
        assert np.array_equal(now, first) == (name == "fixed")
    else:
        assert share > 0.3


def heat():
    return Problem(
        Interval(), dt(u) - 0.1 * laplace(u) == 0.0, Dirichlet(u, 0.0), Initial(u, lambda x: jnp.sin(jnp.pi * x[0]))
    )


def test_windows_join():
    """Untrained: the second window starts where the first ends, whatever the networks."""
    s = solve(heat(), method="pinn", time=(0, 1), windows=(0.4,), width=4, depth=1, points=16, adam=0, iterations=0)
    x = np.linspace(0.1, 0.9, 9)[:, None]
    first, second = (p(x, t=0.4) for p in s.pieces)
    np.testing.assert_allclose(first, second, atol=1e-14)
    assert np.abs(first - np.sin(np.pi * x[:, 0])).max() > 1e-3
    np.testing.assert_array_equal(s(x, t=0.2), s.pieces[0](x, t=0.2))
    np.testing.assert_array_equal(s(x, t=0.7), s.pieces[1](x, t=0.7))
    assert s.time == (0.0, 1.0) and s.to_xarray(count=5, times=7)["u"].shape == (5, 7)


@pytest.mark.slow
def test_windows_follow_the_decay():
    s = solve(
        heat(), method="pinn", time=(0, 1), windows=2, width=8, depth=1, points=100, adam=0, optimizer="lm",
        iterations=16, renew=8,
    )  # fmt: skip
    x = np.linspace(0.1, 0.9, 9)[:, None]
    for t in (0.0, 0.4, 0.5, 0.8, 1.0):
        np.testing.assert_allclose(s(x, t=t), np.exp(-0.1 * np.pi**2 * t) * np.sin(np.pi * x[:, 0]), atol=2e-3)
    slope = s.evaluate(dt(u), [[0.5, 0.25], [0.5, 0.75]])
    np.testing.assert_allclose(slope, -0.1 * np.pi**2 * np.exp(-0.1 * np.pi**2 * np.array([0.25, 0.75])), atol=0.03)


def test_interface_between_two_materials():
    """-(k u')' = 0 with k = 1 up to 0.4 and 5 beyond: straight lines that meet with slopes 5 : 1."""
    k = lambda x: jnp.where(x[0] < 0.4, 1.0, 5.0)  # noqa: E731
    problem = Problem(Interval(), -div(k * grad(u)) == 0.0, Dirichlet(u, 0.0, on="left"), Dirichlet(u, 1.0, on="right"))
    options = {"width": 6, "depth": 1, "points": 40, "adam": 0, "optimizer": "lm", "iterations": 30, "renew": 15}
    s = solve(problem, method="pinn", interfaces=Interface(lambda x: x[0] - 0.4), **options)
    x = np.linspace(0, 1, 21)
    slope = 1 / (0.4 + 0.6 / 5)
    want = np.where(x < 0.4, slope * x, slope * (0.4 + (x - 0.4) / 5))
    np.testing.assert_allclose(s(x), want, atol=1e-4)
    assert s.system.terms[1].name.startswith("flux of u")
    with pytest.raises(InputError, match="does not cross"):
        solve(problem, method="pinn", interfaces=Interface(lambda x: x[0] + 3.0), **options)


@pytest.mark.slow
def test_unknown_coefficient_field():
    """-(k u')' = f with u = x (1 - x) + x and k = 1 + x / 2: u seen everywhere, k known at no place but through its flux."""
    k = Parameter("k")
    f = lambda x: -((1 + x[0] / 2) * -2.0 + 0.5 * (2 - 2 * x[0]))  # noqa: E731
    exact = lambda x: x * (1 - x) + x  # noqa: E731
    problem = Problem(Interval(), -div(k * grad(u)) == f, Dirichlet(u, 0.0, on="left"), Neumann(u, 0.0, on="right"))
    at = np.linspace(0, 1, 30)
    s = solve(
        problem, method="pinn", unknowns={"k": lambda x: 0.7 + 0 * x[0]}, observations=Observations(u, at, exact(at)),
        width=6, depth=1, points=40, adam=0, optimizer="lm", iterations=40, renew=20,
    )  # fmt: skip
    x = np.linspace(0, 0.8, 9)[:, None]
    np.testing.assert_allclose(s.unknowns["k"](x), 1 + x[:, 0] / 2, atol=2e-2)


def test_bad_options():
    plain = Problem(Interval(), -laplace(u) == 1.0, Dirichlet(u, 0.0))
    for options, match in (
        ({"optimizer": "ssbroydn"}, "did you mean 'ssbroyden'"),
        ({"resample": "raf"}, "way to draw"),
        ({"balance": "nkt"}, "did you mean 'ntk'"),
        ({"warm_up": "adma"}, "did you mean 'adam'"),
        ({"points": 0}, "counts"),
        ({"windows": 2}, "windows are of time"),
        ({"weights": (1.0, 2.0)}, "one weight for each term"),
    ):
        with pytest.raises(InputError, match=match):
            solve(plain, method="pinn", **options)
    with pytest.raises(InputError, match="grow"):
        solve(heat(), method="pinn", time=(0, 1), windows=(0.5, 0.2))
