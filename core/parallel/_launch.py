"""`sciax launch`: start N processes, one log each, end all when one fails or stands still.

On one host the processes meet on the loopback address. On several, run the same command on each host with --hosts, --host-rank
and --coordinator (a batch system does that better: see `sciax submit`).
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sciax.core.errors import InputError, MissingFileError

GRACE = 3.0
"""Seconds between asking the processes to end (SIGTERM) and ending them (SIGKILL)."""

POLL = 0.1


@dataclass
class Process:
    """One started process."""

    rank: int
    popen: subprocess.Popen
    log: Path
    beat: Path
    copied: int = 0


@dataclass
class LaunchResult:
    """How a launch ended.

    Attributes:
        code: exit code for the shell: 0 when every process returned 0, else that of the first that failed (124: stood still).
        rank: the process that failed, or None.
        reason: in words.
        tail: end of the failed process' log.
        logs: log file of each local process.
    """

    code: int
    rank: int | None = None
    reason: str = "all processes ended well"
    tail: str = ""
    logs: list[Path] = field(default_factory=list)


def free_port() -> int:
    """A TCP port of the loopback address that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def launch(
    command: Sequence[str],
    processes: int,
    *,
    logs: Path | str,
    hosts: int = 1,
    host_rank: int = 0,
    coordinator: str | None = None,
    stall: float | None = None,
    devices: int | None = None,
    echo: Callable[[str], None] = lambda text: print(text, end="", flush=True),
) -> LaunchResult:
    """Run `command` as `processes` processes on this host, out of `hosts * processes` in all.

    Args:
        command: a Python script with its arguments, `["train.py", "--lr", "1"]`, or `["-m", "module", ...]`.
        logs: folder for rank0.log, rank1.log, ...; rank 0's output also goes through `echo`.
        coordinator: "host:port" on the first host; needed with several hosts.
        stall: end all when a process that has called `beat` (as `fit` does) stops for so many seconds.
        devices: virtual CPU devices in each process.

    Raises:
        InputError, MissingFileError: arguments that do not fit, no such script.
    """
    if processes < 1 or hosts < 1 or not 0 <= host_rank < hosts:
        raise InputError(
            "launch: impossible counts", got=f"processes={processes}, hosts={hosts}, host_rank={host_rank}"
        )
    if hosts > 1 and coordinator is None:
        raise InputError(
            "launch on several hosts needs the address of the first",
            remedy="--coordinator HOST:PORT, alike on all hosts",
        )
    if not command:
        raise InputError("launch: nothing to run", remedy="sciax launch -n 4 train.py")
    if not command[0].startswith("-") and not Path(command[0]).is_file():
        raise MissingFileError("launch: no such script", got=command[0], remedy="give its path, or -m MODULE")
    folder = Path(logs)
    folder.mkdir(parents=True, exist_ok=True)
    coordinator = coordinator or f"127.0.0.1:{free_port()}"
    started: list[Process] = []
    former = {}
    asked: list[int] = []
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            former[number] = signal.signal(number, lambda received, frame: asked.append(received))
    except ValueError:  # not in the main thread: whoever called handles signals
        former = {}
    try:
        for local in range(processes):
            started.append(
                _start(command, host_rank * processes + local, local, hosts * processes, coordinator, folder, devices)
            )
        return _wait(started, stall, echo, asked)
    finally:
        _end(started)
        for process in started:
            _copy(process, echo)
        for number, handler in former.items():
            signal.signal(number, handler)


def _start(
    command: Sequence[str], rank: int, local: int, size: int, coordinator: str, folder: Path, devices: int | None
) -> Process:
    log, beat = folder / f"rank{rank}.log", folder / f".beat{rank}"
    beat.unlink(missing_ok=True)
    environment = os.environ | {
        "SCIAX_COORDINATOR": coordinator,
        "SCIAX_NUM_PROCESSES": str(size),
        "SCIAX_PROCESS_ID": str(rank),
        "SCIAX_LOCAL_ID": str(local),
        "SCIAX_LAUNCHER_PID": str(os.getpid()),
        "SCIAX_BEAT_FILE": str(beat.absolute()),
        "PYTHONUNBUFFERED": "1",
    }
    if devices is not None:
        environment["JAX_NUM_CPU_DEVICES"] = str(devices)
    with log.open("wb") as stream:
        popen = subprocess.Popen(
            [sys.executable, *command],
            stdout=stream,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # a group of its own, so that what it starts ends with it
        )
    return Process(rank, popen, log, beat)


def _copy(process: Process, echo: Callable[[str], None]) -> None:
    """Pass on what rank 0 has written since the last look."""
    if process.rank != 0:
        return
    with process.log.open("rb") as stream:
        stream.seek(process.copied)
        new = stream.read()
    if new:
        process.copied += len(new)
        echo(new.decode(errors="replace"))


def _tail(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def _wait(started: list[Process], stall: float | None, echo: Callable[[str], None], asked: list[int]) -> LaunchResult:
    logs = [process.log for process in started]
    while True:
        for process in started:
            _copy(process, echo)
        if asked:
            return LaunchResult(128 + asked[0], None, f"stopped by {signal.Signals(asked[0]).name}", "", logs)
        codes = [process.popen.poll() for process in started]
        failed = [(process, code) for process, code in zip(started, codes, strict=True) if code]
        if failed:
            # Others die of the first one's death within moments; the log that says most is that of the first with a traceback.
            time.sleep(0.3)
            process, code = _culprit(started) or failed[0]
            reason = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            return LaunchResult(
                128 - code if code < 0 else code,
                process.rank,
                f"rank {process.rank} failed: {reason}",
                _tail(process.log),
                logs,
            )
        if all(code == 0 for code in codes):
            return LaunchResult(0, logs=logs)
        if stall is not None and (stuck := _stalled(started, stall)) is not None:
            if hasattr(signal, "SIGUSR1"):
                stuck.popen.send_signal(signal.SIGUSR1)  # its stacks, into its log
                time.sleep(0.5)
            reason = f"rank {stuck.rank} has stood still for {stall:g} s"
            return LaunchResult(124, stuck.rank, reason, _tail(stuck.log), logs)
        time.sleep(POLL)


_CONSEQUENCES = ("Connection closed by peer", "Connection reset by peer", "coordination service", "heartbeat")


def _culprit(started: list[Process]) -> tuple[Process, int] | None:
    """The failed process whose end is not a consequence of another's: the earliest log without a peer's death in it."""
    failed = [(process, code) for process in started if (code := process.popen.poll())]
    failed.sort(key=lambda pair: pair[0].log.stat().st_mtime_ns)
    own = [pair for pair in failed if not any(text in _tail(pair[0].log) for text in _CONSEQUENCES)]
    return (own or failed or [None])[0]


def _stalled(started: list[Process], stall: float) -> Process | None:
    """The process whose last beat is oldest, if it is older than `stall` seconds; before the first beat nothing is judged.

    All ranks wait for a stuck one in their next collective, so several may be late: the one with the fewest steps is stuck.
    """
    late = []
    for process in started:
        try:
            step, moment = process.beat.read_text().split()
            if process.popen.poll() is None and time.time() - float(moment) > stall:
                late.append((int(step), float(moment), process.rank, process))
        except (OSError, ValueError):
            continue
    return min(late)[-1] if late else None


def _end(started: list[Process]) -> None:
    """End what still runs: SIGTERM to each group, SIGKILL after a while."""
    alive = [process for process in started if process.popen.poll() is None]
    for process in alive:
        _signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    for process in alive:
        try:
            process.popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _signal_group(process, signal.SIGKILL)
            process.popen.wait()


def _signal_group(process: Process, number: int) -> None:
    try:
        os.killpg(process.popen.pid, number)
    except ProcessLookupError:
        pass
