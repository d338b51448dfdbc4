"""Barotropic vorticity equation: exact wave, invariants, gradients; a real forecast."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.ops.sphere import SphereGrid, analysis, sphere_tables, synthesis, truncate
from sciax.earth import Barotropic, Forecast, Regrid
from sciax.earth.dynamics import (
    BarotropicVorticity,
    gauss_grid,
    geopotential_from_streamfunction,
    rossby_haurwitz_speed,
    rossby_haurwitz_streamfunction,
    streamfunction_from_geopotential,
)


@pytest.mark.parametrize("truncation, size", [(21, (32, 64)), (42, (64, 128)), (85, (128, 256)), (170, (256, 512))])
def test_usual_grids(truncation, size):
    grid = gauss_grid(truncation)
    assert (grid.nlat, grid.nlon) == size


def test_rossby_haurwitz_moves_at_the_exact_speed(x64):
    assert abs(rossby_haurwitz_speed() - 12.195) < 5e-4
    core = BarotropicVorticity(21, damping_hours=None, radius=6.37122e6)
    t = core.tables
    psi = truncate(analysis(jnp.asarray(rossby_haurwitz_streamfunction(t.grid.latitude, t.grid.longitude)), t), t)
    end = eqx.filter_jit(lambda core, psi: core.advance(psi, 1800.0, 48))(core, psi)
    speed = -np.degrees(np.angle(complex(end[4, 5]) / complex(psi[4, 5])) / 4)
    assert abs(speed - rossby_haurwitz_speed()) < 1e-6
    # The pattern moves without changing shape.
    moved = psi * jnp.exp(-1j * jnp.radians(rossby_haurwitz_speed()) * t.order[:, None])
    assert np.abs(end - moved).max() < 1e-7 * np.abs(psi).max()


def test_energy_and_enstrophy_are_kept(x64):
    core = BarotropicVorticity(10, damping_hours=None)
    t = core.tables
    rng = np.random.default_rng(0)
    c = np.triu(rng.standard_normal(t.spectral_shape) + 1j * rng.standard_normal(t.spectral_shape)) * 2e6
    c[0] = c[0].real
    c[:, -1] = c[0, 0] = 0
    psi = jnp.asarray(c)
    l = np.arange(t.lmax + 1)
    double = np.where(np.arange(11) == 0, 1, 2)[:, None]
    end = eqx.filter_jit(lambda core, psi: core.advance(psi, 600.0, 36))(core, psi)
    for power in (1, 2):
        weights = double * (l * (l + 1)) ** power
        before, after = ((weights * np.abs(x) ** 2).sum() for x in (psi, end))
        assert abs(after / before - 1) < 1e-6
    # no tendency of the mean, and a steady zonal flow
    assert end[0, 0] == 0
    zonal = jnp.zeros_like(psi).at[0].set(psi[0])
    assert np.abs(eqx.filter_jit(lambda core, psi: core.tendency(psi))(core, zonal)).max() < 1e-12 * np.abs(psi).max()


def test_gradient_of_the_helmholtz_term(x64):
    core = BarotropicVorticity(10, helmholtz=5.0, damping_hours=6.0)
    t = core.tables
    psi = truncate(analysis(jnp.asarray(rossby_haurwitz_streamfunction(t.grid.latitude, t.grid.longitude)), t), t)

    @jax.jit
    @jax.value_and_grad
    def loss(k):
        moved = eqx.tree_at(lambda c: c.helmholtz, core, k)
        return jnp.sum(jnp.abs(moved.advance(psi, 1800.0, 4) - psi) ** 2) / 1e12

    got = loss(jnp.asarray(5.0))[1]
    want = (loss(jnp.asarray(5.0 + 1e-4))[0] - loss(jnp.asarray(5.0 - 1e-4))[0]) / 2e-4
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_linear_balance(x64):
    """Solid rotation: Phi = a Omega W mu^2 up to a constant; and the round trip away from the floor."""
    t = sphere_tables(SphereGrid("gauss", 32, 64), 20)
    mu = t.grid.sin_latitude[:, None] + np.zeros(64)
    psi = analysis(jnp.asarray(-1e7 * mu), t)
    phi = np.asarray(synthesis(geopotential_from_streamfunction(psi, 20), t))
    want = -7.292e-5 * 1e7 * mu**2
    np.testing.assert_allclose(phi - phi.mean(), want - want.mean(), atol=1.0)
    want -= (want * t.grid.weights[:, None]).sum() / 2 / 64
    np.testing.assert_allclose(phi, want, atol=1e-9)
    back = streamfunction_from_geopotential(geopotential_from_streamfunction(psi, 20), 20, floor=1e-6)
    np.testing.assert_allclose(back, psi, atol=0.01)  # of 6e6


def test_real_forecast_beats_persistence(shared_data):
    """24 h RMSE of Z500 from ERA5, 2017-01-01: at most 50 m in 20-90N (persistence 77.6) and 40 m in 90-20S (72.0)."""
    fc = Forecast(
        shared_data / "earth" / "era5_eda_z_t_20170101.nc",
        Barotropic(),
        steps=3,
        members=10,
        regrid=Regrid("bilinear", grid=SphereGrid("gauss", 64, 128)),
    )
    scores = fc.verify(baselines=["persistence"])
    g = 9.80665
    assert scores.value("rmse", "barotropic", 24, region="nh") / g <= 50.0
    assert scores.value("rmse", "barotropic", 24, region="sh") / g <= 40.0
    assert abs(scores.value("rmse", "persistence", 24, region="nh") / g - 77.6) < 0.3
    assert abs(scores.value("rmse", "persistence", 24, region="sh") / g - 72.0) < 0.3
    # Near the equator the forecast is persistence, not worse.
    assert scores.value("rmse", "barotropic", 24, region="tropics") < 1.05 * scores.value(
        "rmse", "persistence", 24, region="tropics"
    )
