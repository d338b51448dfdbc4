"""Which process of how many this is: read from the variables that launchers set.

JAX detects Slurm, Open MPI and Kubernetes by itself; sciax adds its own launcher, torchrun-style variables and plain PMI/PMIx,
and says what it found.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sciax.core.errors import ConfigError


@dataclass(frozen=True)
class World:
    """One process among several.

    Attributes:
        rank: number of this process, 0 to size - 1.
        size: number of processes.
        coordinator: "host:port" of rank 0's service, None where `jax.distributed` finds it by itself (Slurm, Open MPI).
        local_rank: number among the processes of this host.
        source: who said so.
    """

    rank: int
    size: int
    coordinator: str | None
    local_rank: int
    source: str


ALONE = World(0, 1, None, 0, "no launcher")

_PORT = 29400
"""Port where only a host is known; a job number is added so that two jobs on a host do not meet."""


def _port(job: str) -> int:
    digits = re.sub(r"\D", "", job)
    return _PORT + (int(digits) % 10000 if digits else 0)


def _integers(variables: Mapping[str, str], source: str, rank: str, size: str) -> tuple[int, int]:
    try:
        pair = int(variables[rank]), int(variables[size])
    except KeyError as error:
        raise ConfigError(
            f"{source} sets {rank if error.args[0] == size else size} but not {error.args[0]}",
            expected=f"both {rank} and {size}",
            remedy="start through the launcher, or set both",
        ) from None
    except ValueError:
        raise ConfigError(
            f"{source}: not whole numbers", got=f"{rank}={variables[rank]!r}, {size}={variables[size]!r}"
        ) from None
    if not 0 <= pair[0] < pair[1]:
        raise ConfigError(
            f"{source}: the rank is not below the number of processes", got=f"{rank}={pair[0]}, {size}={pair[1]}"
        )
    return pair


def _local(rank: int, variables: Mapping[str, str], *names: str) -> int:
    return next((int(variables[name]) for name in names if variables.get(name, "").isdigit()), rank)


def _address(variables: Mapping[str, str], source: str, size: int, local_size: int | None) -> str:
    """The coordinator for launchers that say rank and size only."""
    if "SCIAX_COORDINATOR" in variables:
        return variables["SCIAX_COORDINATOR"]
    job = variables.get("PMI_JOBID") or variables.get("PMIX_NAMESPACE") or ""
    if "MASTER_ADDR" in variables:
        return f"{variables['MASTER_ADDR']}:{variables.get('MASTER_PORT', _port(job))}"
    if local_size == size:
        return f"127.0.0.1:{_port(job)}"
    raise ConfigError(
        f"{source} gives rank and size but not the address of rank 0, and the {size} processes are not known to share a host",
        remedy="set SCIAX_COORDINATOR=HOST:PORT, a port on the host of rank 0",
    )


def detect(variables: Mapping[str, str] | None = None) -> World:
    """The place of this process, from the environment; `ALONE` where no launcher shows.

    Looked for in this order: sciax launch, torchrun-style (RANK, WORLD_SIZE, MASTER_ADDR), Open MPI, Slurm (inside a step),
    PMI, PMIx, Kubernetes indexed jobs (through JAX). The launcher that is nearest to the process comes first: mpirun inside a
    Slurm allocation is Open MPI.

    Raises:
        ConfigError: half of a launcher's variables, numbers that do not fit, an unknown coordinator.
    """
    env = os.environ if variables is None else variables
    if "SCIAX_PROCESS_ID" in env or "SCIAX_NUM_PROCESSES" in env:
        rank, size = _integers(env, "sciax launch", "SCIAX_PROCESS_ID", "SCIAX_NUM_PROCESSES")
        return World(
            rank, size, _address(env, "sciax launch", size, None), _local(rank, env, "SCIAX_LOCAL_ID"), "sciax launch"
        )
    if "RANK" in env and "WORLD_SIZE" in env:
        rank, size = _integers(env, "torchrun", "RANK", "WORLD_SIZE")
        local = _local(rank, env, "LOCAL_RANK")
        local_size = _local(-1, env, "LOCAL_WORLD_SIZE")
        return World(rank, size, _address(env, "torchrun", size, local_size), local, "torchrun variables")
    if "OMPI_COMM_WORLD_RANK" in env:
        rank, size = _integers(env, "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
        local = _local(rank, env, "OMPI_COMM_WORLD_LOCAL_RANK")
        return World(rank, size, env.get("SCIAX_COORDINATOR"), local, "Open MPI")
    if "SLURM_PROCID" in env and "SLURM_STEP_NODELIST" in env:
        rank, size = _integers(env, "Slurm", "SLURM_PROCID", "SLURM_NTASKS")
        return World(rank, size, env.get("SCIAX_COORDINATOR"), _local(rank, env, "SLURM_LOCALID"), "Slurm")
    for source, prefix in (("PMI", "PMI"), ("PMIx", "PMIX")):
        if f"{prefix}_RANK" in env:
            rank, size = _integers(env, source, f"{prefix}_RANK", f"{prefix}_SIZE")
            local_size = _local(-1, env, "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "PMIX_LOCAL_SIZE")
            local = _local(rank, env, "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PMIX_LOCAL_RANK")
            return World(rank, size, _address(env, source, size, local_size), local, source)
    if "KUBERNETES_SERVICE_HOST" in env and "JOB_COMPLETION_INDEX" in env:
        rank = int(env["JOB_COMPLETION_INDEX"])
        size = int(env.get("SCIAX_JOB_SIZE", "0"))
        # Without a size JAX asks the Kubernetes API for it.
        return World(rank, size or rank + 1, env.get("SCIAX_COORDINATOR") if size else None, 0, "Kubernetes")
    return ALONE
