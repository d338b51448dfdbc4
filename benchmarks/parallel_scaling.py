"""One process against two, one device against eight, and checkpoints against a plain write of the same bytes.

    python benchmarks/parallel_scaling.py [--size MEGABYTES]

Training: an MLP 256-512x2-256, batch 2048 split over the devices, the same steps in each, time a step after compilation. All run
on the cores of this machine, one compute thread for each device (the first line also with XLA's own choice): eight virtual devices
on two cores measure what splitting costs, not what eight cores would win.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS, BATCH, WIDTH = 20, 2048, 512
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def train() -> None:
    from sciax.core.parallel import initialize

    world = initialize()
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax
    from jax.sharding import PartitionSpec as P

    from sciax.core.parallel import Plan, make_mesh
    from sciax.core.train import fit

    model = eqx.nn.MLP(256, 256, WIDTH, 2, activation=jnp.tanh, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (BATCH, 256))

    def loss(model, batch, key):
        return jnp.mean((jax.vmap(model)(batch) - batch) ** 2)

    plan = Plan(make_mesh({"data": -1}), {}, batch=P("data"))

    def seconds(steps: int) -> float:
        start = time.perf_counter()
        fit(model, loss, x, optax.sgd(1e-2), steps, plan=plan)
        return time.perf_counter() - start

    seconds(2)
    # Compilation and start are in both calls and cancel in the difference.
    step = min(seconds(2 * STEPS) - seconds(STEPS) for _ in range(3)) / STEPS
    if world.rank == 0:
        print(f"{1e3 * step:.2f} ms a step", flush=True)


def measured(processes: int, devices: int, flags: str) -> float:
    from sciax.core.parallel import launch

    before = os.environ.get("XLA_FLAGS")
    os.environ["XLA_FLAGS"] = flags
    told: list[str] = []
    try:
        with tempfile.TemporaryDirectory() as logs:
            done = launch([__file__, "train"], processes, logs=logs, devices=devices, echo=told.append)
    finally:
        os.environ.pop("XLA_FLAGS") if before is None else os.environ.update(XLA_FLAGS=before)
    found = re.search(r"([\d.]+) ms a step", "".join(told))
    if done.code or not found:
        sys.exit(f"the training failed:\n{done.tail}")
    return float(found[1])


def checkpoints(megabytes: int) -> None:
    import jax
    import jax.numpy as jnp

    from sciax.core.train import CheckpointStore

    size = megabytes * 2**20
    state = {str(i): jnp.asarray(part) for i, part in enumerate(jax.random.normal(jax.random.key(0), (8, size // 32)))}
    plain, ours, read = [], [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            with open(Path(folder) / "plain", "wb") as out:
                for leaf in state.values():
                    out.write(memoryview(jax.device_get(leaf)).cast("B"))
                out.flush()
                os.fsync(out.fileno())
            plain.append(time.perf_counter() - start)
            start = time.perf_counter()
            with CheckpointStore(Path(folder) / "c") as store:
                store.save(1, state, {})
            subprocess.run(["sync", "-f", folder], check=True)
            ours.append(time.perf_counter() - start)
            start = time.perf_counter()
            with CheckpointStore(Path(folder) / "c") as store:
                jax.block_until_ready(store.load(state)[0])
            read.append(time.perf_counter() - start)
    rate = [size / min(times) / 1e9 for times in (plain, ours, read)]
    print(
        f"checkpoint of {megabytes} MiB: {rate[1]:.2f} GB/s written, {rate[2]:.2f} GB/s read; "
        f"plain file {rate[0]:.2f} GB/s: ratio {rate[1] / rate[0]:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["train"], help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=512)
    args = parser.parse_args()
    if args.what == "train":
        return train()
    one = measured(1, 1, ONE_THREAD)
    print(f"1 process, 1 device, 1 thread: {one:.2f} ms a step", flush=True)
    for processes, devices, flags, name in (
        (1, 1, "", "1 process, 1 device, XLA's threads"),
        (2, 1, ONE_THREAD, "2 processes, 1 device each"),
        (1, 2, ONE_THREAD, "1 process, 2 devices"),
        (1, 8, ONE_THREAD, "1 process, 8 devices"),
    ):
        found = measured(processes, devices, flags)
        print(f"{name}: {found:.2f} ms a step, {one / found:.2f} times as fast", flush=True)
    checkpoints(args.size)


if __name__ == "__main__":
    main()
