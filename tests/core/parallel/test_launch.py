"""The launcher: who am I, one log a rank, all end when one fails or stands still."""

import subprocess
import sys
import time

import pytest

from sciax.core.errors import ConfigError, InputError, MissingFileError
from sciax.core.parallel import detect, launch

VARIABLES = {
    "sciax launch": (
        {"SCIAX_PROCESS_ID": "3", "SCIAX_NUM_PROCESSES": "4", "SCIAX_LOCAL_ID": "1", "SCIAX_COORDINATOR": "h:1"},
        (3, 4, "h:1", 1),
    ),
    "torchrun": (
        {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"},
        (1, 2, "node0:29500", 0),
    ),
    "Open MPI": (
        {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "2"},
        (2, 4, None, 2),
    ),
    "Open MPI inside a Slurm allocation": (
        {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "SLURM_JOB_ID": "9", "SLURM_NTASKS": "1"},
        (2, 4, None, 2),
    ),
    "Slurm step": (
        {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_STEP_NODELIST": "n[1-2]", "SLURM_LOCALID": "0"},
        (1, 2, None, 0),
    ),
    "PMI on one host": (
        {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "1"},
        (1, 2, "127.0.0.1:29400", 1),
    ),
    "PMIx with a coordinator": (
        {"PMIX_RANK": "0", "PMIX_SIZE": "2", "SCIAX_COORDINATOR": "n1:5"},
        (0, 2, "n1:5", 0),
    ),
    "Slurm allocation without a step": (
        {"SLURM_JOB_ID": "9", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
        (0, 1, None, 0),
    ),
    "nothing": ({"PATH": "/bin"}, (0, 1, None, 0)),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_detection(name):
    variables, expected = VARIABLES[name]
    world = detect(variables)
    assert (world.rank, world.size, world.coordinator, world.local_rank) == expected


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"RANK": "4", "WORLD_SIZE": "4", "MASTER_ADDR": "a"}, "not below"),
        ({"RANK": "x", "WORLD_SIZE": "4"}, "whole numbers"),
        ({"SCIAX_PROCESS_ID": "1"}, "SCIAX_NUM_PROCESSES"),
        ({"PMI_RANK": "0", "PMI_SIZE": "4"}, "SCIAX_COORDINATOR"),
        ({"RANK": "0", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, "SCIAX_COORDINATOR"),
    ],
)
def test_variables_that_do_not_fit(variables, text):
    with pytest.raises(ConfigError, match=text):
        detect(variables)


def run(tmp_path, code, processes=3, **options):
    script = tmp_path / "script.py"
    script.write_text("import os, sys, time\nrank = int(os.environ['SCIAX_PROCESS_ID'])\n" + code)
    said = []
    start = time.monotonic()
    result = launch([str(script), "--lr", "1"], processes, logs=tmp_path / "logs", echo=said.append, **options)
    return result, "".join(said), time.monotonic() - start


def alive(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_each_rank_logs_and_rank_0_is_heard(tmp_path):
    result, said, _ = run(tmp_path, "print('rank', rank, sys.argv[1:])")
    assert result.code == 0
    assert said == "rank 0 ['--lr', '1']\n"
    assert [log.read_text() for log in result.logs] == [f"rank {rank} ['--lr', '1']\n" for rank in range(3)]


def test_one_failure_ends_all_with_its_traceback(tmp_path):
    code = """
if rank == 1:
    time.sleep(0.3)
    raise ValueError('the mesh is inside out')
(open(f'{sys.argv[0]}.pid{rank}', 'w')).write(str(os.getpid()))
import signal
if rank == 2:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(60)
"""
    result, _, seconds = run(tmp_path, code)
    assert (result.code, result.rank) == (1, 1)
    assert "the mesh is inside out" in result.tail
    assert seconds < 10
    pids = [int(path.read_text()) for path in tmp_path.glob("*.pid*")]
    assert len(pids) == 2 and not any(alive(pid) for pid in pids)


def test_the_first_cause_is_named_not_its_consequences(tmp_path):
    code = """
if rank == 2:
    print('Traceback: the real cause', flush=True)
else:
    time.sleep(0.05)
    print('Gloo all-reduce failed: Connection closed by peer', flush=True)
sys.exit(3)
"""
    result, _, _ = run(tmp_path, code)
    assert (result.code, result.rank) == (3, 2)


def test_a_rank_that_is_alive_but_stuck_is_found(tmp_path):
    code = """
from sciax.core.parallel._initialize import _watch_launcher, beat
_watch_launcher()
def stuck_here():
    time.sleep(60)
for step in range(3 if rank == 1 else 4):
    beat(step)
    time.sleep(0.02)
stuck_here()
"""
    result, _, seconds = run(tmp_path, code, stall=1.5)
    assert (result.code, result.rank) == (124, 1)
    assert "stuck_here" in result.tail
    assert seconds < 12


def test_a_killed_rank_is_reported_as_its_signal(tmp_path):
    result, _, _ = run(tmp_path, "import signal\nif rank == 0: os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(30)", 2)
    assert (result.code, result.rank) == (137, 0)
    assert "SIGKILL" in result.reason


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (dict(processes=0), InputError, "impossible"),
        (dict(hosts=2), InputError, "coordinator"),
        (dict(command=["nowhere.py"]), MissingFileError, "nowhere.py"),
        (dict(command=[]), InputError, "nothing to run"),
    ],
)
def test_refusals(tmp_path, change, error, text):
    with pytest.raises(error, match=text):
        launch(**(dict(command=["-c", "pass"], processes=1, logs=tmp_path) | change))


@pytest.mark.multiprocess
def test_the_command_and_a_collective_of_two_processes(tmp_path):
    script = tmp_path / "add.py"
    script.write_text(
        "from sciax.core.parallel import initialize\n"
        "world = initialize()\n"
        "import jax, numpy as np\n"
        "from jax.experimental import multihost_utils\n"
        "total = multihost_utils.process_allgather(np.asarray([world.rank + 1.0], np.float32)).sum()\n"
        "print(f'{world.rank} of {world.size} by {world.source}: total {total}, {jax.device_count()} devices')\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sciax",
            "launch",
            "-n",
            "2",
            "--devices",
            "1",
            "--logs",
            str(tmp_path / "logs"),
            str(script),
        ],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("0 of 2 by sciax launch: total 3.0, 2 devices")
    assert "1 of 2" in (tmp_path / "logs" / "rank1.log").read_text()
