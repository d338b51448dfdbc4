"""The training loop against hand-written ones: values, exact resume, alerts, refusals."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sciax.core.errors import ConvergenceError, FileFormatError, InputError, ShapeError
from sciax.core.train import (
    Alerts,
    ArrayBatches,
    Callback,
    Checkpoints,
    CheckpointStore,
    EarlyStop,
    Evaluation,
    HostBatches,
    MLflow,
    TrainingAlert,
    fit,
)

KEY = jax.random.key(7)
X = jax.random.normal(jax.random.key(1), (96, 2))
Y = jnp.sin(X[:, :1]) * X[:, 1:]


def network() -> eqx.nn.MLP:
    return eqx.nn.MLP(2, 1, 8, 1, activation=jnp.tanh, key=jax.random.key(3))


def loss(model, batch, key):
    x, y = batch
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


def noisy_loss(model, batch, key):
    x, y = batch
    return jnp.mean((jax.vmap(model)(x + 0.01 * jax.random.normal(key, x.shape)) - y) ** 2)


def arrays(model) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))]


def same(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(arrays(a), arrays(b), strict=True))


def by_hand(optimizer, steps):
    """The plain loop that everybody writes."""
    model = network()
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, state):
        grads = eqx.filter_grad(loss)(model, (X, Y), KEY)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), state

    for _ in range(steps):
        model, state = step(model, state)
    return model


def test_equals_the_hand_written_loop():
    result = fit(network(), loss, (X, Y), optax.adam(1e-2), 30)
    for ours, theirs in zip(arrays(result.model), arrays(by_hand(optax.adam(1e-2), 30)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert result.history["step"].tolist() == list(range(1, 31))
    assert result.history["loss"][-1] < result.history["loss"][0]
    assert result.reason == "steps"


def test_the_callers_model_survives():
    model = network()
    fit(model, loss, (X, Y), optax.adam(1e-2), 3)
    assert same(model, network())


def test_accumulated_gradient_is_that_of_the_whole_batch():
    whole = fit(network(), loss, (X, Y), optax.sgd(0.1), 5)
    parts = fit(network(), loss, (X, Y), optax.sgd(0.1), 5, accumulate=4)
    for a, b in zip(arrays(whole.model), arrays(parts.model), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_clipping_bounds_the_update():
    before, after = network(), fit(network(), loss, (X, Y), optax.sgd(1.0), 1, clip=1e-3).model
    moved = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(arrays(before), arrays(after), strict=True)))
    assert moved == pytest.approx(1e-3, rel=1e-3)


def test_average_of_parameters_is_the_recurrence():
    first = fit(network(), loss, (X, Y), optax.sgd(0.1), 1, ema=0.9)
    for start, now, average in zip(arrays(network()), arrays(first.model), arrays(first.ema), strict=True):
        np.testing.assert_allclose(average, 0.9 * start + 0.1 * now, rtol=1e-5, atol=1e-7)


def test_an_optimiser_with_a_line_search():
    result = fit(network(), loss, (X, Y), optax.lbfgs(), 40)
    assert result.history["loss"][-1] < 0.1 * result.history["loss"][0]


def test_every_sample_once_an_epoch_in_a_new_order():
    source = ArrayBatches(jnp.arange(10), 3, key=KEY)
    cache, seen = source.begin(jnp.asarray(0)), []
    for step in range(6):
        batch, cache = source.take(cache, jnp.asarray(step), KEY)
        seen.append(np.asarray(batch))
    epochs = np.concatenate(seen[:3]), np.concatenate(seen[3:])
    assert all(len(set(epoch.tolist())) == 9 for epoch in epochs)
    assert epochs[0].tolist() != epochs[1].tolist()
    # Any step alone gives the batch it gives in the sequence.
    alone, _ = source.take(source.begin(jnp.asarray(4)), jnp.asarray(4), KEY)
    assert alone.tolist() == seen[4].tolist()


@pytest.mark.parametrize("kind", [jnp.asarray, np.asarray])
def test_a_batch_may_be_one_array(kind):
    fitted = fit(network(), lambda model, x, key: loss(model, (x, Y), key), kind(X), optax.adam(1e-2), 3)
    np.testing.assert_array_equal(
        fitted.history["loss"], fit(network(), loss, (X, Y), optax.adam(1e-2), 3).history["loss"]
    )


def test_batches_from_the_host_equal_batches_on_the_device():
    def load(step):
        return np.asarray(X[step % 3 :: 3]), np.asarray(Y[step % 3 :: 3])

    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(load(i) for i in range(3)))
    device = fit(network(), loss, lambda key, step: jax.tree.map(lambda a: a[step % 3], stacked), optax.adam(1e-2), 40)
    host = fit(network(), loss, HostBatches(load), optax.adam(1e-2), 40)
    np.testing.assert_allclose(host.history["loss"], device.history["loss"], rtol=1e-5)


def test_early_stop_and_the_best_model():
    result = fit(
        network(),
        loss,
        (X, Y),
        optax.sgd(0.0),  # learns nothing, so no evaluation improves on the first
        1000,
        evaluate=Evaluation(lambda model, key: loss(model, (X, Y), key), every=5),
        callbacks=[EarlyStop(patience=3)],
    )
    assert len(result.evaluations) == 4
    assert "improved" in result.reason
    assert same(result.best, network())


def test_a_loss_that_is_not_finite_names_its_step_and_keeps_the_state():
    def breaks(model, batch, key):
        value = loss(model, batch, key)
        return jnp.where(value < 0.05, jnp.nan, value)

    with pytest.raises(ConvergenceError, match="not finite at step") as caught:
        fit(network(), breaks, (X, Y), optax.adam(1e-2), 2000)
    assert np.isnan(caught.value.history[-1]) and np.isfinite(caught.value.history[:-1]).all()


def test_a_loss_spike_is_reported():
    def spiky(model, batch, key):
        data, step = batch
        return loss(model, data, key) * jnp.where(step == 60, 1e4, 1.0)

    with pytest.warns(TrainingAlert, match="loss spike at step 61"):
        result = fit(network(), spiky, lambda key, step: ((X, Y), step), optax.sgd(1e-4), 80, callbacks=[Alerts()])
    assert len(result.alerts) == 1


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_ends_near_float32(precision):
    full = fit(network(), loss, (X, Y), optax.adam(1e-2), 300)
    mixed = fit(network(), loss, (X, Y), optax.adam(1e-2), 300, precision=precision)
    final, expected = (float(loss(result.model, (X, Y), KEY)) for result in (mixed, full))
    start = float(loss(network(), (X, Y), KEY))
    assert abs(final - expected) <= 0.02 * start
    assert all(leaf.dtype == np.float32 for leaf in arrays(mixed.model))
    if precision == "float16":
        assert mixed.state.scale is not None and float(mixed.state.scale.scale) > 1


def test_an_overflow_of_float16_is_skipped_and_the_scale_falls():
    def steep(model, batch, key):
        return loss(model, batch, key) * 30.0

    result = fit(network(), steep, (X, Y), optax.adam(1e-2), 60, precision="float16")
    assert int(result.state.scale.skipped) > 0 and np.isfinite(result.history["loss"][-1])
    assert result.history["loss"][-1] < result.history["loss"][0]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (dict(precision="float8"), InputError, "unknown precision"),
        (dict(optimizer="adam"), InputError, "optax"),
        (dict(steps=0), InputError, "positive"),
        (dict(accumulate=7), ShapeError, "divisible by 7"),
        (dict(batches=iter([1])), InputError, "iterator"),
        (dict(batches="data"), InputError, "not arrays"),
        (dict(ema=1.5), InputError, "decay"),
        (dict(model=jnp.arange(3)), InputError, "inexact"),
        (dict(loss=lambda model, batch, key: jnp.ones(3)), ShapeError, "scalar"),
        (dict(loss=lambda model, batch, key: loss(model, batch, key) * 1j), InputError, "real"),
    ],
)
def test_refusals(change, error, text):
    arguments = dict(model=network(), loss=loss, batches=(X, Y), optimizer=optax.adam(1e-2), steps=3) | change
    with pytest.raises(error, match=text):
        fit(**arguments)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "batch size"), (11, "batch size")], ids=["empty batch", "batch larger than the data"]
)
def test_batch_size_refusals(size, text):
    with pytest.raises(ShapeError, match=text):
        ArrayBatches(jnp.arange(10), size, key=KEY)


def training(folder, steps, callbacks=(), **options):
    return fit(
        network(),
        noisy_loss,
        ArrayBatches((X, Y), 32, key=KEY),
        optax.adam(1e-2),
        steps,
        key=KEY,
        ema=0.9,
        evaluate=Evaluation(lambda model, key: loss(model, (X, Y), key), every=9),
        callbacks=[EarlyStop(patience=100), *callbacks],
        checkpoint=Checkpoints(folder, every=7, keep=2) if folder else None,
        **options,
    )


def test_a_training_in_two_parts_equals_one_bit_for_bit(tmp_path):
    whole = training(None, 40)
    training(tmp_path / "a", 17)
    second = training(tmp_path / "a", 40)
    assert second.history["step"][0] == 18
    assert same(whole.model, second.model) and same(whole.ema, second.ema) and same(whole.best, second.best)
    with CheckpointStore(tmp_path / "a") as store:
        assert store.steps[-1] == 40 and len(store.steps) <= 2


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    training(tmp_path / "a", 7)
    with pytest.raises(FileFormatError, match="another model"):
        fit(
            eqx.nn.MLP(2, 1, 9, 1, key=KEY),
            loss,
            (X, Y),
            optax.adam(1e-2),
            8,
            checkpoint=Checkpoints(tmp_path / "a", every=7),
        )


KILLED = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_fit
test_fit.training(sys.argv[1], 100000)
"""


@pytest.mark.multiprocess
def test_killed_at_random_and_resumed_bit_for_bit(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "a")])
    deadline = time.monotonic() + 120
    try:
        while not list((tmp_path / "a").glob("*[0-9]")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3 + np.random.default_rng().uniform(0, 0.3))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with CheckpointStore(tmp_path / "a") as store:
        latest = store.latest
    assert latest
    assert same(training(tmp_path / "a", latest + 10).model, training(None, latest + 10).model)


def test_metrics_of_steps_taken_again_stand_once(tmp_path):
    """Killed after step 3 with no checkpoint, and after 19 with one at 14: no line stands twice."""
    from sciax.core.jobs import Run

    def train(steps, **options):
        run = Run(tmp_path / "run")
        training(tmp_path / "a", steps, run=run, log_every=1, **options)
        run.close()

    def steps():
        lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
        return [line["step"] for line in map(json.loads, lines) if "loss" in line]

    class Crash(Callback):
        def on_chunk(self, progress, steps, metrics):
            if progress.step >= 3:
                raise RuntimeError("out of power")

    with pytest.raises(RuntimeError, match="power"):
        train(14, callbacks=[Crash()])
    assert steps()
    train(14)
    assert steps() == list(range(1, 15))
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps({"step": step, "loss": 0.0}) + "\n" for step in range(15, 20))
    train(20)
    assert steps() == list(range(1, 21))


def test_a_checkpoint_does_not_depend_on_where_a_function_lies(tmp_path):
    """A static activation prints with its address, another one in every process."""

    def arrays(key):
        return eqx.filter(eqx.nn.MLP(1, 1, 2, 1, activation=lambda x: x, key=jax.random.key(key)), eqx.is_array)

    saved = arrays(0)
    with CheckpointStore(tmp_path) as store:
        store.save(1, saved, {})
        loaded, _ = store.load(arrays(1))
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(saved), jax.tree.leaves(loaded), strict=True))


@pytest.mark.slow
def test_metrics_reach_mlflow(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="needs the extra `track`")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    fitted = fit(network(), loss, (X, Y), optax.adam(1e-2), 30, callbacks=[MLflow("waves", uri)])
    (run,) = mlflow.search_runs(experiment_names=["waves"], output_format="list")
    logged = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
    assert run.info.status == "FINISHED"
    assert [point.step for point in logged] == [10, 20, 30]
    np.testing.assert_allclose([point.value for point in logged], fitted.history["loss"][9::10], rtol=1e-6)
    with pytest.raises(ConvergenceError):
        fit(
            network(),
            lambda m, b, k: jnp.nan * loss(m, b, k),
            (X, Y),
            optax.adam(1e-2),
            5,
            callbacks=[MLflow("nan", uri)],
        )
    (run,) = mlflow.search_runs(experiment_names=["nan"], output_format="list")
    assert run.info.status == "FAILED"
