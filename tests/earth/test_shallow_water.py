"""Shallow water: the cases of Williamson et al. (1992) and Galewsky et al. (2004), invariants, order, tracers, gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError
from sciax.core.ops.sphere import SphereGrid
from sciax.earth.dynamics import ShallowWater, galewsky, gauss_grid, williamson2, williamson5, williamson6

advance = eqx.filter_jit(lambda model, state, dt, steps: model.advance(state, dt, steps))
DAY = 86400


def norm(got, want, weights):
    return float(np.sqrt((weights * (got - want) ** 2).sum() / (weights * want**2).sum()))


def test_williamson2_stays_at_four_angles(x64):
    grid = gauss_grid(10)  # the case holds nothing beyond degree 2
    for alpha in (0.0, 0.05, np.pi / 2 - 0.05, np.pi / 2):
        case = williamson2(grid.latitude, grid.longitude, alpha)
        model = ShallowWater(10, mean_depth=2.94e4 / 9.80616, coriolis=case["coriolis"])
        start = model.state(case["u"], case["v"], case["h"])
        end = advance(model, start, 1800.0, 240)
        assert norm(np.asarray(model.fields(end)["h"]), case["h"], grid.weights[:, None]) < 1e-12


@pytest.mark.parametrize("truncation, days", [(42, 3), pytest.param(42, 15, marks=pytest.mark.slow)])
def test_williamson5_invariants(truncation, days, x64):
    grid = gauss_grid(truncation)
    case = williamson5(grid.latitude, grid.longitude)
    model = ShallowWater(truncation, mean_depth=5700.0, orography=case["orography"], damping_hours=12.0)
    start = model.state(case["u"], case["v"], case["h"])
    end = advance(model, start, 1800.0, days * 48)
    before, after = model.invariants(start), model.invariants(end)
    drift = {k: abs(float(after[k] / before[k]) - 1) for k in before}
    assert drift["depth"] < 1e-14
    assert drift["energy"] < 1e-4
    assert drift["enstrophy"] < 1e-4
    # the flow has changed: this is no trivial conservation
    assert float(jnp.abs(model.fields(end)["v"]).max()) > 5


def test_galewsky_without_a_bump_stays_zonal(x64):
    grid = gauss_grid(42)
    case = galewsky(grid.latitude, grid.longitude, perturbed=False)
    model = ShallowWater(42, viscosity=1e5)
    start = model.state(case["u"], case["v"], case["h"])
    assert abs(float(model.invariants(start)["depth"]) - 10_000) < 1e-3
    end = model.fields(advance(model, start, 1800.0, 48))
    wavy = end["vorticity"] - end["vorticity"].mean(axis=1, keepdims=True)
    assert float(jnp.abs(wavy).max() / jnp.abs(end["vorticity"]).max()) < 1e-8


def test_balanced_states_start_quietly(x64):
    """The Galewsky jet and case 6 are in balance: depth tendencies are small against those of an unbalanced state."""
    grid = gauss_grid(63)
    case = galewsky(grid.latitude, grid.longitude, perturbed=False)
    model = ShallowWater(63)
    start = model.state(case["u"], case["v"], case["h"])
    slope = eqx.filter_jit(lambda m, s: jax.tree.map(lambda a, b: a + b, m.explicit(s), m.implicit(s)))
    tendency = slope(model, start)
    still = model.state(0 * case["u"], 0 * case["v"], case["h"])
    unbalanced = slope(model, still)
    assert np.abs(tendency.divergence).max() < 0.02 * np.abs(unbalanced.divergence).max()


def test_second_order_in_time(x64):
    grid = gauss_grid(10)
    case = williamson6(grid.latitude, grid.longitude)
    model = ShallowWater(10, mean_depth=9000.0)
    start = model.state(case["u"], case["v"], case["h"])
    ends = []
    for dt in (1800.0, 900.0, 450.0):
        state = start
        for _ in range(int(21600 / dt) // 12):  # one program for the three steps
            state = advance(model, state, jnp.asarray(dt), 12)
        ends.append(np.asarray(state.divergence))
    order = np.log2(np.abs(ends[0] - ends[1]).max() / np.abs(ends[1] - ends[2]).max())
    assert order > 1.7  # 2 in the limit; gravity waves at these steps are still damped by the implicit part


def test_tracers(x64):
    """A uniform tracer stays uniform, and tracers are linear."""
    grid = gauss_grid(21)
    case = williamson6(grid.latitude, grid.longitude)
    lon = np.radians(grid.longitude)
    spot = np.exp(-4 * (1 - np.cos(np.radians(grid.latitude))[:, None] * np.cos(lon - 1)))
    model = ShallowWater(21, mean_depth=9000.0, grid=grid)
    tracers = np.stack([np.ones_like(spot), spot, 2 * spot + 3])
    start = model.state(case["u"], case["v"], case["h"], tracers)
    end = advance(model, start, 1200.0, 24)
    got = np.asarray(model.fields(end)["tracers"])
    np.testing.assert_allclose(got[0], 1.0, atol=1e-12)
    np.testing.assert_allclose(got[2], 2 * got[1] + 3, atol=1e-12)
    assert np.abs(got[1] - spot).max() > 0.1
    # the amount of tracer, depth times concentration, is kept to the truncation's accuracy
    w = grid.weights[:, None]
    amount = [(w * f["h"] * f["tracers"][1]).sum() for f in (model.fields(start), model.fields(end))]
    assert abs(amount[1] / amount[0] - 1) < 1e-4


def test_gradient_through_orography(x64):
    grid = gauss_grid(10)
    case = williamson5(grid.latitude, grid.longitude)
    model = ShallowWater(10, mean_depth=5700.0, orography=case["orography"])
    start = model.state(case["u"], case["v"], case["h"])

    @jax.jit
    @jax.value_and_grad
    def loss(scale):
        moved = eqx.tree_at(lambda m: m.orography, model, scale * model.orography)
        return jnp.sum(jnp.abs(moved.advance(start, 1800.0, 3).divergence) ** 2) * 1e12

    got = float(loss(jnp.asarray(1.0))[1])
    want = float(loss(jnp.asarray(1.0 + 1e-5))[0] - loss(jnp.asarray(1.0 - 1e-5))[0]) / 2e-5
    assert abs(got / want - 1) < 1e-6


def test_refusals():
    with pytest.raises(InputError, match="poles"):
        ShallowWater(10, grid=SphereGrid("equiangular_poles", 21, 36))
    with pytest.raises(InputError, match="positive"):
        ShallowWater(10, mean_depth=-1.0)


@pytest.mark.slow
def test_williamson6_converges(x64):
    """Depth at day 10, T42 against T170, on the T42 grid."""
    ends = {}
    for truncation, dt in ((42, 600.0), (170, 300.0)):
        grid = gauss_grid(truncation)
        case = williamson6(grid.latitude, grid.longitude)
        # undamped, the smallest scales of T42 fill up with what cannot cascade further, and the error is 5e-3
        model = ShallowWater(truncation, mean_depth=9500.0, damping_hours=10.0)
        ends[truncation] = advance(
            model, model.state(case["u"], case["v"], case["h"]), dt, int(10 * DAY / dt)
        ).geopotential
    from sciax.core.ops.sphere import sphere_tables, synthesis

    fine_tables = sphere_tables(SphereGrid("gauss", 256, 512), 170)
    fine = np.asarray(synthesis(ends[170], fine_tables))
    full = np.asarray(synthesis(jnp.pad(ends[42], ((0, 128), (0, 128))), fine_tables))
    error = norm(full, fine, fine_tables.grid.weights[:, None])
    print("Williamson 6 l2(h), T42 against T170, day 10:", error)
    assert error < 1e-3


@pytest.mark.slow
def test_galewsky_converges(x64):
    """Vorticity at day 6 with 1e5 m2/s diffusion, T85 against T170."""
    ends = {}
    for truncation, dt in ((85, 600.0), (170, 300.0)):
        grid = gauss_grid(truncation)
        case = galewsky(grid.latitude, grid.longitude)
        model = ShallowWater(truncation, viscosity=1e5)
        ends[truncation] = np.asarray(
            advance(model, model.state(case["u"], case["v"], case["h"]), dt, int(6 * DAY / dt)).vorticity
        )
    fine = ends[170]
    coarse = np.zeros_like(fine)
    coarse[:86, :87] = ends[85]
    weights = np.where(np.arange(171) == 0, 1, 2)[:, None]
    error = np.sqrt((weights * np.abs(coarse - fine) ** 2).sum() / (weights * np.abs(fine) ** 2).sum())
    print("Galewsky vorticity l2, T85 against T170, day 6:", error)
    assert error < 5e-2
