"""Running a job: the run directory, the record, interruption, the report."""

import contextlib
import os
import secrets
import signal
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sciax.core.errors import ConfigError, SciaxError
from sciax.core.jobs import _record, _registry, _toml
from sciax.core.jobs._config import JobConfig
from sciax.core.jobs._log import logging_to
from sciax.core.jobs._outcome import Outcome
from sciax.core.jobs._record import Record
from sciax.core.jobs._registry import Job
from sciax.core.jobs._resolve import build
from sciax.core.jobs._run import Run


class Stopped(BaseException):
    """SIGTERM or Ctrl-C; not an Exception, so that no job swallows it."""

    def __init__(self, number: int):
        self.number = number
        super().__init__(signal.Signals(number).name)


def new_directory(root: Path, name: str) -> Path:
    """`root/NAME-<timestamp>-<short id>`, not made yet."""
    return root / f"{name}-{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def check_free(directory: Path) -> None:
    """A run never overwrites another.

    Raises:
        ConfigError: there is something in the directory already, or it is a file.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError(
            "the output folder is not empty",
            got=directory,
            expected="a new or empty folder",
            remedy="name another with --out, or remove it",
        )


def claim(directory: Path) -> Path:
    """Make an empty run directory; refuses one that is in use (`check_free`)."""
    try:
        check_free(directory)
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            "the run directory cannot be made", got=str(error), remedy="name a folder you can write to with --out"
        ) from error
    return directory


def reopen(directory: Path, job: Job, config: dict[str, Any], seed: int) -> Record | None:
    """The record of an earlier run of the same job in `directory` that is to go on; None where there is none.

    Raises:
        ConfigError: the folder holds something else, or a run with other settings.
    """
    if not (directory / _record.FILE).is_file():
        return None
    former = _record.read(directory)
    wanted = {"job": job.name, "config": config, "seed": seed}
    differing = [name for name, value in wanted.items() if getattr(former, name) != value]
    if differing:
        raise ConfigError(
            f"the run to resume in {directory} has another {', another '.join(differing)}",
            got=f"{former.job}, seed {former.seed}",
            expected=f"{job.name}, seed {seed}, the same settings",
            remedy="resume with the settings it was started with (its config.toml), or name a new folder",
        )
    return former


def run_job(
    name: str | Job,
    config: JobConfig | Mapping[str, Any] | None = None,
    *,
    out: Path | str,
    seed: int = 0,
    console: Any = None,
    profile: bool = False,
    throw: bool = True,
    command: list[str] | None = None,
    resume: bool = False,
) -> Record:
    """Run a job into the directory `out` and return its record.

    Args:
        config: a config object, a mapping of the settings to change, or None for the defaults.
        console: a rich console for progress bars, or None for silence.
        profile: also write the time of every operation and a trace to out/profile, and a picture of the slowest to the report.
        throw: raise what the job raised, after everything is written; else the record's `status` and `error` tell.
        command: how it was called, for the record.
        resume: go on with the unfinished run of the same job and settings in `out`, if there is one (a job goes on from its
            checkpoints in `run.checkpoints`); a completed one is returned as it is.
    """
    job = name if isinstance(name, Job) else _registry.find(name)
    if not isinstance(config, JobConfig):
        config = build(job.config, config or {})
    former = reopen(Path(out), job, config.model_dump(mode="json"), seed) if resume else None
    if former is not None and former.status == "completed":
        return former
    directory = claim(Path(out)) if former is None else Path(out)
    record = _begin(job, config, directory, seed, command or [])
    run = Run(directory, seed=seed, name=job.name, console=console)
    run.log(f"{job.name} seed {seed} {'started' if former is None else 'resumed'}")
    raised: BaseException | None = None
    start = time.perf_counter()
    with _Guard() as guard, logging_to(directory / "log.txt"):
        try:
            with run.progress(job.name):
                outcome = _call(job, config, run, directory / "profile" if profile else None)
            guard.finishing = True
            _note_outcome(record, outcome)
        except BaseException as error:
            guard.finishing = True
            raised = error
            _note_failure(record, run, error, guard.stops)
        record.timings["job"] = round(time.perf_counter() - start, 3)
        _finish(record, run, start)
    if raised is not None and (throw or isinstance(raised, SystemExit | GeneratorExit)):
        raise raised
    return record


def _begin(job: Job, config: JobConfig, directory: Path, seed: int, command: list[str]) -> Record:
    """Write config.toml and a first run.json with status "running"."""
    plain = config.model_dump(mode="json")
    record = Record(
        id=directory.name,
        job=job.name,
        summary=job.summary,
        status="running",
        seed=seed,
        config=plain,
        command=command,
        started=_now(),
        versions=_record.versions(),
        platform=_record.machine(devices=False),
        git=_record.git_state(Path.cwd()),
        pid=os.getpid(),
        x64=job.x64,
    )
    text = _toml.dumps({"job": job.name, "seed": seed, "config": plain})
    header = f"# {job.summary}\n# again: sciax run config.toml\n\n"
    (directory / "config.toml").write_text(header + text, encoding="utf-8")
    record.write(directory)
    return record


def _call(job: Job, config: JobConfig, run: Run, profile: Path | None) -> Outcome | None:
    from sciax.core import inspect
    from sciax.core.precision import x64

    with contextlib.ExitStack() as stack:
        stack.enter_context(x64(job.x64))
        measured = None if profile is None else stack.enter_context(inspect.profile(profile))
        outcome = job.function(config, run)
    if measured is not None and measured.ops:
        run.figure(measured.figure(), "profile", "slowest operations of the compiled programs")
        run.note(
            f"Profile: every operation is in {measured.directory.name}/ops.csv; open "
            f"{measured.directory.name}/plugins/profile/*/*.trace.json.gz in Perfetto (ui.perfetto.dev) for the timeline."
        )
    if outcome is not None and not isinstance(outcome, Outcome):
        raise TypeError(f"job {job.name!r} returned {type(outcome).__name__}, expected Outcome or None")
    return outcome


def _note_outcome(record: Record, outcome: Outcome | None) -> None:
    record.status = "completed"
    if outcome is None:
        return
    record.outcome = asdict(outcome)
    if not outcome.ok:
        record.status = "failed"
        record.error = {
            "type": "Tolerance",
            "message": f"{outcome.quantity}: the error is above its tolerance",
            "got": f"{outcome.error:.6g}",
            "expected": f"at most {outcome.tolerance:.6g}",
            "remedy": None,
        }


def _note_failure(record: Record, run: Run, error: BaseException, stops: list[int]) -> None:
    # An interrupt inside a compiled callback comes back as the library's own error; the signal tells.
    if stops or isinstance(error, KeyboardInterrupt | Stopped):
        number = stops[0] if stops else signal.SIGINT
        record.status = "interrupted"
        record.error = {"type": signal.Signals(number).name, "message": f"stopped by {signal.Signals(number).name}"}
        run.log(f"interrupted by {signal.Signals(number).name}")
        return
    record.status = "failed"
    details = {"type": type(error).__name__, "message": str(error), "got": None, "expected": None, "remedy": None}
    if isinstance(error, SciaxError):
        details["message"] = error.message
        for name in ("got", "expected", "remedy"):
            value = getattr(error, name)
            details[name] = None if value is None else str(value)
    record.error = details
    run.log("failed\n" + "".join(traceback.format_exception(error)))


def _finish(record: Record, run: Run, start: float) -> None:
    from sciax.core.jobs._report import write_report

    run.close()
    for name in ("inputs", "outputs"):
        setattr(record, name, [asdict(item) for item in getattr(run.ledger, name)])
    record.notes, record.progress = run.ledger.notes, run.ledger.progress
    record.platform = _record.machine()
    record.finished = _now()
    record.seconds = round(time.perf_counter() - start, 3)
    record.write(run.directory)
    before = time.perf_counter()
    try:
        write_report(run.directory, record)
    except Exception as error:  # the results are safe; a report that fails must not hide them
        run.log("the report could not be written\n" + "".join(traceback.format_exception(error)))
    record.timings["report"] = round(time.perf_counter() - before, 3)
    record.write(run.directory)
    run.log(record.status)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class _Guard:
    """Turns SIGINT and SIGTERM into `Stopped` while a job runs, and holds them off while its record and report are written:
    that takes a second or two, and an impatient second Ctrl-C must not lose them. Only the main thread can set handlers.
    """

    def __init__(self) -> None:
        self.stops: list[int] = []
        self.finishing = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> "_Guard":
        if threading.current_thread() is threading.main_thread():
            self._former = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _stop(self, number: int, frame: Any) -> None:
        if not self.finishing:
            self.stops.append(number)
            raise Stopped(number)

    def __exit__(self, *exception: object) -> None:
        for number, old in self._former.items():
            signal.signal(number, old)
