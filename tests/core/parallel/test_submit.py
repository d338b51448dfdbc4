"""The batch script, run for real against stand-ins for sbatch, srun and scontrol."""

import os
import signal
import stat
import subprocess
import time

import pytest
from pydantic import Field

from sciax.core.errors import ConfigError, InputError, MissingDependencyError
from sciax.core.jobs import JobConfig, Outcome, Run, _registry, job
from sciax.core.parallel import DistributedError, Resources, submit


class Sweepable(JobConfig):
    order: int = Field(1, ge=1, description="order")
    name: str = Field("a", description="name")


@pytest.fixture(autouse=True)
def toy():
    @job("toy.sweep", Sweepable, summary="nothing")
    def run(config: Sweepable, run: Run) -> Outcome:
        return Outcome(quantity="order", value=config.order)

    yield
    _registry._JOBS.pop("toy.sweep", None)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text('job = "toy.sweep"\nseed = 3\n[config]\norder = 2\n')
    return path


def command(folder, name, body):
    path = folder / name
    path.write_text("#!/bin/bash\n" + body)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Stand-ins first on PATH; srun writes its arguments and waits to be told to stop."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command(folder, "sbatch", f'cp "$2" {tmp_path}/received.sh; echo "4711;cluster"\n')
    command(
        folder,
        "srun",
        f"""printf '%s\\n' "$@" > {tmp_path}/srun.args
trap 'echo saved > {tmp_path}/saved; exit 143' TERM
sleep ${{SRUN_SECONDS:-0}} & wait $!
exit ${{SRUN_CODE:-0}}
""",
    )
    command(folder, "scontrol", f'echo "$@" > {tmp_path}/scontrol.args\n')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path


def test_a_sweep_becomes_an_array(file, cluster):
    submission = submit(
        file,
        resources=Resources(nodes=2, time="00:30:00", gpus_per_node=4, partition="long"),
        sweep={"order": ["1", "3"], "name": ["a b", "c"]},
        folder=cluster / "out",
    )
    assert submission.number == "4711"
    assert len(submission.cases) == 4
    script = (cluster / "received.sh").read_text()
    for line in ("--nodes=2", "--time=00:30:00", "--gpus-per-node=4", "--partition=long", "--array=0-3", "--requeue"):
        assert f"#SBATCH {line}\n" in script
    assert 'job = "toy.sweep"' in (cluster / "out" / "config.toml").read_text()
    subprocess.run(["bash", "-n", str(cluster / "received.sh")], check=True)


def run_script(cluster, **variables):
    environment = os.environ | {"SLURM_JOB_ID": "12", **variables}
    return subprocess.Popen(["bash", str(cluster / "received.sh")], env=environment)


def test_each_case_runs_with_its_settings(file, cluster):
    submit(file, sweep={"order": ["1", "3"], "name": ["a b"]}, folder=cluster / "out")
    assert run_script(cluster, SLURM_ARRAY_JOB_ID="12", SLURM_ARRAY_TASK_ID="1").wait(20) == 0
    arguments = (cluster / "srun.args").read_text().splitlines()
    assert arguments[-4:] == ["--set", "order=3", "--set", "name=a b"]
    assert arguments[arguments.index("--out") + 1] == f"{cluster}/out/runs/1"
    assert "--resume" in arguments


def test_the_exit_code_of_the_run_is_the_jobs(file, cluster):
    submit(file, folder=cluster / "out")
    assert run_script(cluster, SRUN_CODE="3").wait(20) == 3


@pytest.mark.parametrize("notice", [signal.SIGUSR1, signal.SIGTERM])
def test_preemption_saves_and_requeues(file, cluster, notice):
    submit(file, sweep={"order": ["1", "2"]}, folder=cluster / "out")
    process = run_script(cluster, SRUN_SECONDS="30", SLURM_ARRAY_JOB_ID="12", SLURM_ARRAY_TASK_ID="0")
    while not (cluster / "srun.args").exists():
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(notice)
    assert process.wait(20) == 0
    assert (cluster / "saved").exists()
    assert (cluster / "scontrol.args").read_text().split() == ["requeue", "12_0"]


def test_dry_run_writes_nothing(file, tmp_path):
    submission = submit(file, folder=tmp_path / "out", dry_run=True)
    assert submission.script.startswith("#!/bin/bash\n")
    assert not (tmp_path / "out").exists()


def test_every_case_is_checked_before_submission(file, cluster):
    with pytest.raises(ConfigError, match="order"):
        submit(file, sweep={"order": ["1", "0"]}, folder=cluster / "out")
    assert not (cluster / "received.sh").exists()


def test_a_second_submission_into_the_same_folder_is_refused(file, cluster):
    submit(file, folder=cluster / "out")
    with pytest.raises(ConfigError, match="already"):
        submit(file, folder=cluster / "out")


def test_no_sbatch_keeps_the_script(file, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="sbatch"):
        submit(file, folder=tmp_path / "out")
    assert (tmp_path / "out" / "job.sh").exists()


def test_a_refusal_of_sbatch_is_told(file, cluster):
    command(cluster / "bin", "sbatch", 'echo "invalid partition" >&2; exit 1\n')
    with pytest.raises(DistributedError, match="invalid partition"):
        submit(file, folder=cluster / "out")


@pytest.mark.parametrize("time_limit", ["soon", "1:2:3:4", "", "01:00:00\n#SBATCH --x"])
def test_time_limits(time_limit):
    with pytest.raises(InputError, match="time limit"):
        Resources(time=time_limit)


def test_words_cannot_smuggle_options():
    with pytest.raises(InputError, match="one word"):
        Resources(partition="long\n#SBATCH --uid=0")
