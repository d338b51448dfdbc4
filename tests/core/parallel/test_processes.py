"""Training by two processes, and checkpoints that move between numbers of devices."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P

from sciax.core.errors import FileFormatError
from sciax.core.parallel import Plan, launch, make_mesh
from sciax.core.train import CheckpointError, Checkpoints, CheckpointStore, fit

TRAIN = """
import sys
from sciax.core.parallel import initialize
world = initialize()
import jax, numpy as np, optax
from jax.sharding import PartitionSpec as P
sys.path.insert(0, FOLDER)
import test_plan
from sciax.core.parallel import Plan, make_mesh
from sciax.core.train import Checkpoints, fit
plan = Plan(make_mesh({"data": -1}), {}, batch=P("data"), zero="data")
result = fit(test_plan.MLP(), test_plan.loss, (test_plan.X, test_plan.Y), optax.adam(1e-2), 12, plan=plan,
             checkpoint=Checkpoints(sys.argv[1] + "/checkpoints", every=5))
if world.rank == 0:
    np.savez(sys.argv[1] + "/result.npz", loss=result.history["loss"],
             **{str(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(result.model))})
"""


@pytest.mark.multiprocess
def test_two_processes_train_as_one(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    import test_plan

    script = tmp_path / "train.py"
    script.write_text(TRAIN.replace("FOLDER", repr(str(Path(__file__).parent))))
    done = launch([str(script), str(tmp_path)], 2, logs=tmp_path / "logs", devices=1, stall=120)
    assert done.code == 0, done.tail
    two = np.load(tmp_path / "result.npz")
    one = fit(test_plan.MLP(), test_plan.loss, (test_plan.X, test_plan.Y), optax.adam(1e-2), 12)
    np.testing.assert_allclose(two["loss"], one.history["loss"], rtol=1e-6)
    for i, leaf in enumerate(jax.tree.leaves(one.model)):
        np.testing.assert_allclose(two[str(i)], leaf, rtol=1e-5, atol=1e-6)
    # What two processes saved, one with eight devices reads, and goes on to the same end.
    plan = Plan(make_mesh({"data": 8}), {}, batch=P("data"), zero="data")
    resumed = fit(
        test_plan.MLP(),
        test_plan.loss,
        (test_plan.X, test_plan.Y),
        optax.adam(1e-2),
        15,
        plan=plan,
        checkpoint=Checkpoints(tmp_path / "checkpoints", every=5),
    )
    assert resumed.history["step"].tolist() == [13, 14, 15]


def state(devices: int):
    mesh = make_mesh({"x": devices}, jax.devices()[:devices])
    split = Plan(mesh, {"a": P("x"), "b": P(None, "x")})
    return split.place({"a": jnp.arange(24.0), "b": jnp.arange(32.0).reshape(4, 8) / 7, "c": jnp.asarray(3)})


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_saved_on_eight_devices_restored_on_fewer_exactly(tmp_path, devices):
    with CheckpointStore(tmp_path / "c") as store:
        store.save(4, state(8), {"note": 1})
    with CheckpointStore(tmp_path / "c") as store:
        loaded, notes = store.load(state(devices))
    assert notes == {"note": 1}
    for name, leaf in state(devices).items():
        assert np.array_equal(loaded[name], leaf)
        assert loaded[name].sharding == leaf.sharding


def test_another_dtype_is_refused(tmp_path):
    with CheckpointStore(tmp_path / "c") as store:
        store.save(1, {"a": jnp.ones(3)})
        with pytest.raises(FileFormatError, match="another model"):
            store.load({"a": jnp.ones(3, jnp.bfloat16)})


SAVE_FOR_EVER = """
import sys, jax.numpy as jnp
from sciax.core.train import CheckpointStore
with CheckpointStore(sys.argv[1], keep=2) as store:
    step = store.latest or 0
    print("ready", flush=True)
    while True:
        step += 1
        store.save(step, {"a": jnp.full((256, 256), step, jnp.float32), "step": jnp.asarray(step)})
"""


def kill_while_saving(folder, times: int, generator) -> None:
    """SIGKILL a process that saves without pause, again and again; the latest checkpoint must read back whole."""
    like = {"a": jnp.zeros((256, 256)), "step": jnp.asarray(0)}
    last = 0
    for _ in range(times):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVE_FOR_EVER, str(folder)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(generator.uniform(0.05, 0.4))
        finally:
            process.kill()
            process.wait()
        with CheckpointStore(folder, keep=2) as store:
            loaded, _ = store.load(like)
            assert int(loaded["step"]) == store.latest >= last
            assert np.all(np.asarray(loaded["a"]) == store.latest)
            last = store.latest


@pytest.mark.multiprocess
def test_killed_while_saving_leaves_a_readable_latest(tmp_path):
    with CheckpointStore(tmp_path / "c") as store:
        store.save(1, {"a": jnp.full((256, 256), 1.0), "step": jnp.asarray(1)})
    kill_while_saving(tmp_path / "c", 3, np.random.default_rng(0))


@pytest.mark.slow
def test_killed_while_saving_fifty_times(tmp_path):
    with CheckpointStore(tmp_path / "c") as store:
        store.save(1, {"a": jnp.full((256, 256), 1.0), "step": jnp.asarray(1)})
    kill_while_saving(tmp_path / "c", 50, np.random.default_rng(1))


FULL_DISK = """
import resource, signal, sys, jax.numpy as jnp
from sciax.core.train import CheckpointError, CheckpointStore
with CheckpointStore(sys.argv[1], keep=3) as store:
    store.save(1, {"a": jnp.ones(10)})
    # A limit on file size fails a write as a full disk does, once its signal is ignored.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    try:
        store.save(2, {"a": jnp.arange(300000.0)})
    except CheckpointError as error:
        print("told:", error)
    print("latest", store.latest)
"""


@pytest.mark.multiprocess
def test_a_full_disk_is_told_and_the_last_good_checkpoint_stays(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "c")], capture_output=True, text=True, timeout=120
    )
    assert "told: the checkpoint of step 2 could not be written" in done.stdout, done.stderr[-2000:]
    assert "last good one is step 1" in done.stdout
    with CheckpointStore(tmp_path / "c") as store:
        assert store.latest == 1
        assert np.array_equal(store.load({"a": jnp.zeros(10)})[0]["a"], np.ones(10))
    assert issubclass(CheckpointError, OSError)
