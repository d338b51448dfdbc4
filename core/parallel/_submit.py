"""`sciax submit`: a batch script for Slurm from a job file; arrays over a sweep, checkpoint and requeue on preemption."""

import itertools
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sciax.core.errors import ConfigError, InputError, MissingDependencyError
from sciax.core.parallel._initialize import DistributedError

_TIME = re.compile(r"(\d+-)?\d{1,2}:\d{2}:\d{2}|\d+(:\d{2})?|\d+-\d{1,2}")


@dataclass(frozen=True)
class Resources:
    """What a submission asks for; field names are sbatch's options.

    Attributes:
        time: limit, "HH:MM:SS", "D-HH:MM:SS" or minutes.
        notice: seconds before the limit (or at preemption) at which the job is told to save and go back into the queue.
    """

    nodes: int = 1
    time: str = "01:00:00"
    ntasks_per_node: int = 1
    cpus_per_task: int | None = None
    gpus_per_node: int | None = None
    mem: str | None = None
    partition: str | None = None
    account: str | None = None
    notice: int = 120

    def __post_init__(self) -> None:
        if not _TIME.fullmatch(self.time):
            raise InputError(
                "not a time limit", got=self.time, expected="HH:MM:SS, D-HH:MM:SS or minutes", remedy="--time 01:30:00"
            )
        for name in ("nodes", "ntasks_per_node"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is a positive number", got=getattr(self, name))
        for name in ("mem", "partition", "account"):
            value = getattr(self, name)
            if value is not None and not re.fullmatch(r"[\w.,:+-]+", value):
                raise InputError(f"{name} is one word", got=repr(value))


def sweep_cases(sweep: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """All combinations of a sweep, each a tuple of `key=value` settings; one empty case where there is none."""
    for key, values in sweep.items():
        if not values:
            raise ConfigError(f"the sweep over {key!r} has no values", remedy=f"--sweep {key}=1,2,3")
    return [
        tuple(f"{key}={value}" for key, value in zip(sweep, combination, strict=True))
        for combination in itertools.product(*sweep.values())
    ]


@dataclass(frozen=True)
class Submission:
    """A written batch script.

    Attributes:
        script: its text.
        folder: where script, config and run directories lie.
        cases: the settings of each run of the array.
        number: the batch system's job number, None before submission.
    """

    script: str
    folder: Path
    cases: list[tuple[str, ...]]
    number: str | None = None
    written: list[Path] = field(default_factory=list)


def batch_script(name: str, folder: Path, resources: Resources, cases: Sequence[Sequence[str]]) -> str:
    """The text of the batch script: folder/config.toml run once for each case into folder/runs/CASE."""
    quote = shlex.quote
    lines = ["#!/bin/bash", f"#SBATCH --job-name={name}"]
    for option in ("nodes", "ntasks_per_node", "cpus_per_task", "gpus_per_node", "mem", "time", "partition", "account"):
        value = getattr(resources, option)
        if value is not None:
            lines.append(f"#SBATCH --{option.replace('_', '-')}={value}")
    array = len(cases) > 1
    lines += [
        "#SBATCH --requeue",
        f"#SBATCH --signal=B:USR1@{resources.notice}",
        "#SBATCH --open-mode=append",
        f"#SBATCH --output={folder}/slurm-%{'A_%a' if array else 'j'}.out",
    ]
    if array:
        lines.append(f"#SBATCH --array=0-{len(cases) - 1}")
    lines += [
        "set -u",
        "case_number=${SLURM_ARRAY_TASK_ID:-0}",
        "case $case_number in",
        *(f"    {i}) settings=({' '.join(f'--set {quote(s)}' for s in case)}) ;;" for i, case in enumerate(cases)),
        "esac",
        f"directory={quote(str(folder))}/runs/$case_number",
        "",
        "# Told in time (USR1 before the limit, TERM at preemption): the run saves and ends, the job goes back into the queue.",
        "back_into_the_queue() {",
        '    kill -TERM "$child" 2>/dev/null',
        '    wait "$child"',
        '    scontrol requeue "$this_job"',
        "    exit 0",
        "}",
        "this_job=$SLURM_JOB_ID",
        '[ -n "${SLURM_ARRAY_JOB_ID:-}" ] && this_job=${SLURM_ARRAY_JOB_ID}_$case_number',
        "trap back_into_the_queue USR1 TERM",
        "",
        f"srun --kill-on-bad-exit=1 {quote(sys.executable)} -m sciax run {quote(str(folder / 'config.toml'))} \\",
        '    --out "$directory" --resume "${settings[@]}" &',
        "child=$!",
        'wait "$child"',
    ]
    return "\n".join(lines) + "\n"


def submit(
    file: Path | str,
    *,
    resources: Resources | None = None,
    sweep: Mapping[str, Sequence[str]] | None = None,
    settings: Sequence[str] = (),
    folder: Path | str | None = None,
    dry_run: bool = False,
) -> Submission:
    """Check the job file with every case of the sweep, write the batch script and hand it to `sbatch`.

    Args:
        file: a job file, as for `sciax run`.
        sweep: key -> values; all combinations become one job array.
        settings: `key=value` for all cases.
        folder: where script, config and runs go; default `submitted/NAME` beside the current folder.
        dry_run: check and return the script, write nothing.

    Raises:
        ConfigError, MissingFileError: a file or a case that would not run.
        MissingDependencyError: no `sbatch` here (the script is written and can be copied to where there is one).
        DistributedError: sbatch refused it.
    """
    from sciax.core.jobs import _toml
    from sciax.core.jobs._resolve import resolve

    resources = resources or Resources()
    cases = sweep_cases(sweep or {})
    for case in cases:
        resolve(str(file), (*settings, *case))  # every case is checked before the first one waits in a queue
    base = resolve(str(file), settings)
    name = Path(file).stem
    folder = Path(folder) if folder is not None else Path("submitted") / name
    folder = folder.absolute()
    script = batch_script(f"{base.job.name}-{name}", folder, resources, cases)
    submission = Submission(script, folder, cases)
    if dry_run:
        return submission
    if (folder / "job.sh").exists():
        raise ConfigError(
            "there is a submission in this folder already", got=folder, remedy="name another with --out, or remove it"
        )
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    # The config as it is now: a queued job must not change when its file is edited.
    plain: dict[str, Any] = {"job": base.job.name, "seed": base.seed, "config": base.config.model_dump(mode="json")}
    (folder / "config.toml").write_text(_toml.dumps(plain), encoding="utf-8")
    (folder / "job.sh").write_text(script, encoding="utf-8")
    written = [folder / "config.toml", folder / "job.sh"]
    if shutil.which("sbatch") is None:
        raise MissingDependencyError(
            "there is no sbatch on this machine",
            got=f"the script is written: {folder / 'job.sh'}",
            remedy="run sbatch job.sh on the cluster",
        )
    done = subprocess.run(["sbatch", "--parsable", str(folder / "job.sh")], capture_output=True, text=True, check=False)
    if done.returncode:
        raise DistributedError("sbatch refused the job", got=done.stderr.strip() or f"exit code {done.returncode}")
    return Submission(script, folder, cases, done.stdout.strip().split(";")[0], written)
