"""Learned emulators: symmetry, adjoint-free checks of shape, training, normalisation that travels, unrolled curriculum."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import FileFormatError, InputError
from sciax.core.ops.sphere import SphereGrid
from sciax.earth.data import Channel
from sciax.earth.models import (
    AFNO,
    SFNO,
    Coords,
    Training,
    load_emulator,
    make_emulator,
    save_emulator,
    train_emulator,
)

GRID = SphereGrid("gauss", 8, 16)
COORDS = Coords((Channel("h"), Channel("u")), tuple(GRID.latitude.tolist()), tuple(GRID.longitude.tolist()), 12.0)


@pytest.fixture(scope="module")
def sfno():
    return SFNO(2, 2, GRID, truncation=5, channels=8, depth=2, key=jax.random.key(0))


@pytest.fixture(scope="module")
def waves():
    """Two fields that turn with the latitude's own speed: (run, time, channel, lat, lon)."""
    rng = np.random.default_rng(0)
    lat, lon = np.radians(GRID.latitude)[:, None], np.radians(GRID.longitude)
    runs = []
    for _ in range(4):
        phase = rng.uniform(0, 6.28, 2)
        runs.append(
            [
                [
                    300 + 20 * np.cos(lat) * np.cos(lon - 0.35 * k + phase[0]),
                    5 * np.cos(lat) ** 2 * np.sin(2 * lon - 0.5 * k + phase[1]),
                ]
                for k in range(24)
            ]
        )
    return np.array(runs, dtype=np.float32)


def test_sfno_commutes_with_rotation_about_the_axis(sfno):
    x = jax.random.normal(jax.random.key(1), (3, 2, 8, 16))
    network = eqx.filter_jit(sfno.__class__.__call__)
    np.testing.assert_allclose(network(sfno, jnp.roll(x, 5, -1)), jnp.roll(network(sfno, x), 5, -1), atol=2e-5)
    # not with a flip in latitude: it knows the hemispheres
    assert np.abs(network(sfno, x[..., ::-1, :]) - network(sfno, x)[..., ::-1, :]).max() > 1e-3


def test_afno_shapes_and_refusals():
    network = AFNO(2, 3, (8, 16), patch=4, channels=16, depth=1, blocks=2, key=jax.random.key(0))
    assert eqx.filter_jit(network)(jnp.ones((5, 2, 8, 16))).shape == (5, 3, 8, 16)
    with pytest.raises(InputError, match="tile"):
        AFNO(2, 3, (10, 16), key=jax.random.key(0))
    with pytest.raises(InputError, match="divide"):
        AFNO(2, 3, (8, 16), channels=30, blocks=4, key=jax.random.key(0))


@pytest.mark.parametrize("kind", ["sfno", pytest.param("afno", marks=pytest.mark.slow)])
def test_training_beats_persistence(kind, sfno, waves):
    if kind == "sfno":
        network, stages = sfno, ((1, 160), (3, 40))
    else:
        network, stages = (
            AFNO(2, 2, (8, 16), patch=2, channels=16, depth=1, blocks=2, key=jax.random.key(0)),
            ((1, 200),),
        )
    model = make_emulator(network, waves[:3], COORDS)
    trained, history = train_emulator(model, waves[:3], Training(stages, batch=8, rate=1e-2), jax.random.key(2))
    assert history[-1] < 0.15 * history[0]
    # an unseen run, four steps on
    state = trained.init(jnp.asarray(waves[3, :4]), None)
    out = eqx.filter_jit(lambda m, s: jax.lax.scan(lambda s, _: m.step(s, None), s, None, length=4)[1])(trained, state)
    error = np.sqrt(((np.asarray(out[-1]) - waves[3, 4:8]) ** 2).mean((0, 2, 3)))
    still = np.sqrt(((waves[3, :4] - waves[3, 4:8]) ** 2).mean((0, 2, 3)))
    assert (error < 0.6 * still).all(), (error, still)
    if kind == "sfno":  # tables and static fields are no parameters
        np.testing.assert_array_equal(trained.network.tables.degree, sfno.tables.degree)
        np.testing.assert_array_equal(trained.network.tables.synthesis_even[0], sfno.tables.synthesis_even[0])
        np.testing.assert_array_equal(trained.network.static, sfno.static)


def test_statistics_travel_with_the_weights(tmp_path, sfno, waves):
    model = make_emulator(sfno, waves, COORDS)
    np.testing.assert_allclose(model.mean, waves.mean((0, 1, 3, 4)), rtol=1e-5)
    save_emulator(model, tmp_path / "m.npz")
    blank = make_emulator(
        SFNO(2, 2, GRID, truncation=5, channels=8, depth=2, key=jax.random.key(9)), waves * 2 + 1, COORDS
    )
    back = load_emulator(tmp_path / "m.npz", blank)
    for a, b in zip(jax.tree.leaves(eqx.filter(model, eqx.is_array)), jax.tree.leaves(eqx.filter(back, eqx.is_array))):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(FileFormatError, match="shape"):
        load_emulator(
            tmp_path / "m.npz",
            make_emulator(SFNO(2, 2, GRID, truncation=5, channels=4, depth=2, key=jax.random.key(9)), waves, COORDS),
        )


def test_bad_trajectories_are_refused(sfno, waves):
    with pytest.raises(InputError, match="do not fit"):
        make_emulator(sfno, waves[:, :, :, ::2], COORDS)
    with pytest.raises(InputError, match="does not vary"):
        make_emulator(sfno, waves * np.array([1, 0], np.float32)[:, None, None], COORDS)
    with pytest.raises(InputError, match="shorter"):
        train_emulator(make_emulator(sfno, waves, COORDS), waves[:, :3], Training(((4, 20),)), jax.random.key(0))


def test_the_data_choose_the_dtype(waves, x64):
    network = AFNO(2, 2, (8, 16), patch=2, channels=8, depth=1, blocks=2, key=jax.random.key(0))
    model = make_emulator(network, waves, COORDS)
    state = jax.ShapeDtypeStruct((3, 2, 8, 16), np.float32)
    assert eqx.filter_eval_shape(lambda m, x: m.normal_step(x), model, state).dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize("network", ["sfno", "afno"])
def test_job(network, tmp_path):
    from sciax.core.jobs import run_job

    settings = {
        "network": network,
        "runs": 2,
        "days": 6,
        "spin_up_days": 1,
        "train_steps": 20,
        "channels": 8,
        "depth": 1,
    }
    run_job("earth.emulator", settings, out=tmp_path / "a")
    assert list((tmp_path / "a").rglob("emulator.npz"))
