"""Probe of two processes that compute together."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sciax.core.errors import ConvergenceError
from sciax.core.inspect.doctor._probe import Measured, probe

CHILD = Path(__file__).with_name("_child.py")
TIMEOUT = 45.0
"""Seconds for the pair; a firewall or a missing peer must not hang the doctor."""


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def _environment() -> dict[str, str]:
    # One CPU device a process; a proxy meant for the outside would swallow the loopback connection.
    dropped = {
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "xla_flags",
        "jax_num_cpu_devices",
        "jax_compilation_cache_dir",
    }
    kept = {k: v for k, v in os.environ.items() if k.lower() not in dropped}
    return kept | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "1"}


def run_pair(child: Path, timeout: float = TIMEOUT) -> list[list[float]]:
    """What each of two processes printed. Both are gone when this returns, whatever happens.

    Raises:
        ConvergenceError: one failed or the time is up; the message carries the end of its output.
    """
    port = str(free_port())
    started = [
        subprocess.Popen(
            [sys.executable, str(child), port, str(rank)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=_environment(),
        )
        for rank in range(2)
    ]
    deadline = time.monotonic() + timeout
    results: list[list[float]] = []
    try:
        for rank, process in enumerate(started):
            try:
                out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise ConvergenceError(
                    f"process {rank} of the pair did not answer", got=f"nothing in {timeout:g} s"
                ) from None
            if process.returncode != 0:
                raise ConvergenceError(
                    f"process {rank} of the pair failed", got=err.strip().splitlines()[-1:] or "no message"
                )
            results.append(json.loads(out.strip().splitlines()[-1]))
        return results
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@probe(
    "two processes",
    "sums and a gather over two local processes against their closed form",
    subject=CHILD,
    remedy="several processes cannot work together here: is the loopback blocked? One process is not affected",
)
def _two_processes(child: Any) -> Measured:
    return Measured(run_pair(child), [[36.0, 370.0, 0, 1, 2, 10, 11, 12]] * 2)
