"""Joining the other processes, and telling the launcher that this one is alive and moving."""

import contextlib
import faulthandler
import os
import signal
import threading
import time
from pathlib import Path

from sciax.core.errors import SciaxError
from sciax.core.parallel._environment import ALONE, World, detect


class DistributedError(SciaxError, RuntimeError):
    """The processes could not be joined, or one of them failed."""


_world: World | None = None


def initialize(timeout: float = 120.0) -> World:
    """Join the processes that the launcher started; call it before anything else touches JAX devices.

    CPU processes talk through gloo, GPU processes through NCCL (JAX's own runtime). Alone, it does nothing. Calling it again
    returns the same answer.

    Raises:
        ConfigError: the launcher's variables do not fit together.
        DistributedError: the others did not come within `timeout` seconds.
    """
    global _world
    if _world is not None:
        return _world
    world = detect()
    _watch_launcher()
    if world.size > 1:
        import jax

        if jax.config.jax_platforms in (None, "", "cpu"):
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
        explicit = {}
        if world.coordinator is not None:
            explicit = {"coordinator_address": world.coordinator, "num_processes": world.size, "process_id": world.rank}
        try:
            jax.distributed.initialize(**explicit, initialization_timeout=int(timeout))
        except (RuntimeError, ValueError) as error:
            raise DistributedError(
                f"process {world.rank} could not join the other {world.size - 1} ({world.source})",
                got=str(error).splitlines()[0] if str(error) else type(error).__name__,
                expected=f"all {world.size} processes at {world.coordinator or 'the coordinator found by JAX'} in {timeout:g} s",
                remedy="call initialize() before any other JAX call; look into the logs of the other ranks",
            ) from error
    _world = world
    return world


def world() -> World:
    """The place of this process, as `initialize` found it; `ALONE` before."""
    return _world or ALONE


def beat(step: int) -> None:
    """Tell the launcher's watchdog that `step` is done. `fit` does so after each chunk; costs a file write.

    A heartbeat thread would go on beating while the main thread waits for ever in a collective; this one stops with the work.
    """
    path = os.environ.get("SCIAX_BEAT_FILE")
    if path:
        with contextlib.suppress(OSError):
            Path(path).write_text(f"{step} {time.time()}")


def _watch_launcher() -> None:
    """Under `sciax launch`: show all stacks on SIGUSR1, and end when the launcher is gone."""
    launcher = os.environ.get("SCIAX_LAUNCHER_PID")
    if launcher is None:
        return
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=True, chain=False)

    def watch() -> None:
        while os.getppid() == int(launcher):
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, name="sciax-launcher-watch", daemon=True).start()
