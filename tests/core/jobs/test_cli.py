"""The `sciax` command on toy jobs."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from sciax.core.jobs import _cache

TOY = Path(__file__).with_name("toy.py")
Command = Callable[..., Result]


def only_run(folder: Path) -> Path:
    (path,) = (folder / "runs").iterdir()
    return path


def test_list(command: Command, broken_domain: None) -> None:
    result = command("list")
    assert result.exit_code == 0
    assert (
        "toy.root *" in result.output
        and "Square root of two" in result.output
        and "solver.method=newton" in result.output
    )
    assert "not loaded: badland: ModuleNotFoundError: No module named 'pyscf'" in result.output


@pytest.mark.parametrize("words", [("list", "toy.root"), ("run", "toy.root", "--help-config")])
def test_settings_of_one_job(command: Command, words: tuple[str, ...]) -> None:
    result = command(*words)
    assert result.exit_code == 0
    assert "solver.tolerance" in result.output and "stop at this step length" in result.output
    assert "integer >= 1" in result.output and "newton | secant" in result.output


def test_run(command: Command, tmp_path: Path) -> None:
    result = command("run", "toy.root", "--set", "steps=6", "--seed", 3)
    assert result.exit_code == 0, result.output
    folder = only_run(tmp_path)
    assert re.fullmatch(r"toy\.root-\d{8}-\d{6}-[0-9a-f]{4}", folder.name)
    assert "square root of two (1) = 1.41421356, reference 1.41421356" in result.stdout
    assert "report.html" in result.stdout and "iterating: 6/6" not in result.stderr
    record = json.loads((folder / "run.json").read_text())
    assert record["seed"] == 3 and record["config"]["steps"] == 6


def test_dry_run_writes_nothing(command: Command, tmp_path: Path) -> None:
    result = command("run", "toy.root", "--set", "steps=6", "--dry-run")
    assert result.exit_code == 0
    assert "steps = 6" in result.output and "nothing has been written" in result.output
    assert list(tmp_path.iterdir()) == []


def test_dry_run_checks_paths(command: Command, tmp_path: Path) -> None:
    result = command("run", "toy.root", "--set", "data=none.msh", "--dry-run")
    assert result.exit_code == 2 and "does not exist" in result.stderr
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "x").write_text("")
    result = command("run", "toy.root", "--out", "used", "--dry-run")
    assert result.exit_code == 2 and "not empty" in result.stderr


def test_wrong_key(command: Command) -> None:
    result = command("run", "toy.root", "--set", "stesp=6")
    assert result.exit_code == 2
    assert "did you mean 'steps'" in result.stderr and "Traceback" not in result.output


def test_unknown_job_and_missing_file(command: Command) -> None:
    assert command("run", "toy.rot").exit_code == 2
    assert command("run", "none.toml").exit_code == 2


def test_typed_failure(command: Command, tmp_path: Path) -> None:
    result = command("run", "toy.root", "--set", "steps=1")
    assert result.exit_code == 1
    assert "ConvergenceError: the iteration did not converge" in result.stderr and "more steps" in result.stderr
    assert "Traceback" not in result.output
    assert (only_run(tmp_path) / "report.html").is_file()


def test_a_bug_is_reported_with_the_place_of_its_traceback(command: Command, tmp_path: Path) -> None:
    result = command("run", "toy.trouble")
    assert result.exit_code == 1
    assert "ZeroDivisionError: a bug in the job" in result.stderr
    assert str(Path("runs") / only_run(tmp_path).name / "log.txt") in result.stderr
    assert "Traceback" not in result.output and "Traceback" in (only_run(tmp_path) / "log.txt").read_text()


@pytest.mark.parametrize(("kind", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_interrupt_codes(command: Command, kind: str, code: int) -> None:
    result = command("run", "toy.trouble", "--set", f"kind={kind}")
    assert result.exit_code == code and "interrupted" in result.stdout


def test_profile(command: Command, tmp_path: Path) -> None:
    result = command("run", "toy.root", "--profile", "--out", "p")
    assert result.exit_code == 0
    folder = tmp_path / "p" / "profile"
    assert list(folder.rglob("*.trace.json.gz"))
    head = (folder / "ops.txt").read_text()
    assert head in result.stdout
    assert "Perfetto" in (tmp_path / "p" / "report.html").read_text()


def test_config_toml_of_a_run_runs_again(command: Command, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("abc")
    assert command("run", "toy.root", "--set", 'label="x\\ny"', "--set", "data=in.txt", "--out", "a").exit_code == 0
    assert command("run", "a/config.toml", "--out", "b").exit_code == 0
    a, b = (json.loads((tmp_path / name / "run.json").read_text()) for name in "ab")
    assert a["config"] == b["config"] and a["inputs"] == b["inputs"] and a["outcome"] == b["outcome"]


def test_tour(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = command("tour", "--out", "t")
    assert result.exit_code == 0, result.output
    assert re.search(r"toy\.root.*square root of two.*1\.4142136.*1\.4142136.*e-16", result.stdout)
    assert "t/index.html" in result.stdout
    page = (tmp_path / "t" / "index.html").read_text()
    assert "data:image/png;base64" in page and 'href="toy.root/report.html"' in page


def test_tour_goes_on_after_a_failure_and_names_what_did_not_load(
    command: Command, tmp_path: Path, broken_domain: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from sciax.core.jobs import _registry

    jobs = _registry._JOBS
    bad = replace(jobs["toy.trouble"], tour=True)
    monkeypatch.setattr(_registry, "_JOBS", {"toy.trouble": bad, "toy.root": jobs["toy.root"]})
    result = command("tour", "--out", "t")
    assert result.exit_code == 1
    assert "failed toy.trouble" in result.stdout and "done toy.root" in result.stdout
    assert re.search("badland.*could not be loaded", result.stdout)
    assert "a bug in the job" in (tmp_path / "t" / "index.html").read_text()
    assert command("tour", "--only", "toy.root", "--out", "t2").exit_code == 0
    assert command("tour", "--only", "badland", "--out", "t3").exit_code == 1
    assert "did you mean" in command("tour", "--only", "tooy").stderr


def test_tour_stops_when_interrupted(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from sciax.core.jobs import _registry

    jobs = _registry._JOBS
    config = type("Stop", (jobs["toy.trouble"].config,), {"__annotations__": {"kind": str}, "kind": "SIGTERM"})
    bad = replace(jobs["toy.trouble"], tour=True, config=config)
    monkeypatch.setattr(_registry, "_JOBS", {"toy.trouble": bad, "toy.root": jobs["toy.root"]})
    result = command("tour", "--out", "t")
    assert result.exit_code == 143 and "toy.root" not in result.stdout and "report: t/index.html" in result.stdout


def test_tour_without_jobs(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from sciax.core.jobs import _registry

    monkeypatch.setattr(_registry, "_JOBS", {})
    assert command("tour").exit_code == 2


def test_runs(command: Command, tmp_path: Path) -> None:
    assert "no runs" in command("runs", "list").output
    command("run", "toy.root", "--out", "runs/first-aaaa")
    command("run", "toy.root", "--set", "steps=3", "--set", "solver.tolerance=1e-3", "--out", "runs/second-bbbb")
    command("run", "toy.root", "--set", "steps=1", "--out", "runs/third-cccc")
    listed = command("runs", "list").output
    assert [name in listed for name in ("first-aaaa", "second-bbbb", "third-cccc", "failed")] == [True] * 4
    assert "first" not in command("runs", "list", "--job", "toy.trouble").output
    shown = command("runs", "show", "aaaa").output
    assert "1.41421356237" in shown and "solver.method" in shown and "report.html" in shown
    assert "more steps" in command("runs", "show", "last").output
    compared = command("runs", "compare", "first", "bbbb").output
    assert re.search(r"config steps +8 +3", compared) and re.search(r"config solver.tolerance +1e-12 +0.001", compared)
    assert "differs by 1.5e-06 relative" in compared and "label" not in compared
    assert "cannot be compared" in command("runs", "compare", "first", "third").output
    wrong = command("runs", "show", "zzzz")
    assert wrong.exit_code == 2 and "no run is named 'zzzz'" in wrong.stderr


def test_ambiguous_name(command: Command) -> None:
    for name in ("toy-a", "toy-b"):
        command("run", "toy.trouble", "--set", "kind=none", "--out", f"runs/{name}")
    result = command("runs", "show", "toy")
    assert result.exit_code == 2 and "could be 2 runs" in result.stderr
    assert command("runs", "show", "toy-a").exit_code == 0


def test_rerun(command: Command, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("abc")
    command("run", "toy.root", "--set", "steps=3", "--set", "data=in.txt", "--seed", 5, "--out", "runs/first")
    result = command("runs", "rerun", "first")
    assert result.exit_code == 0 and "outcome: identical" in result.stdout
    record = json.loads((tmp_path / "runs" / "first" / "run.json").read_text())
    record["outcome"]["value"] *= 1 + 1e-9
    (tmp_path / "runs" / "first" / "run.json").write_text(json.dumps(record))
    (tmp_path / "in.txt").write_text("other")
    result = command("runs", "rerun", "first")
    assert result.exit_code == 1 and "outcome: differs by 1e-09 relative" in result.stdout
    assert "has changed since" in result.stderr
    assert command("runs", "rerun", "first", "--rtol", "1e-8").exit_code == 0


def test_version_and_help(command: Command) -> None:
    import sciax

    assert command("--version").stdout == f"sciax {sciax.__version__}\n"
    result = command("--help")
    assert all(word in result.stdout for word in ("list", "run", "tour", "doctor", "runs"))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"JAX_COMPILATION_CACHE_DIR": "mine"}, "mine"),
        ({"JAX_COMPILATION_CACHE_DIR": ""}, None),
        ({"SCIAX_COMPILE_CACHE": "off"}, None),
        ({"SCIAX_COMPILE_CACHE": "other"}, "other"),
        ({"XDG_CACHE_HOME": "cache"}, "cache/sciax/xla-"),
    ],
)
def test_compile_cache(
    environment: dict[str, str], expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("JAX_COMPILATION_CACHE_DIR", "SCIAX_COMPILE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = _cache.switch_on()
    assert (found is None) if expected is None else str(found).startswith(expected)
    if "XDG_CACHE_HOME" in environment:
        assert found is not None and found.is_dir() and os.environ["JAX_COMPILATION_CACHE_DIR"] == str(found)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)  # what switch_on set


def start(*words: str, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    )


@pytest.mark.multiprocess
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_real_signal(tmp_path: Path, number: signal.Signals, code: int) -> None:
    process = start(sys.executable, str(TOY), "run", "toy.trouble", "--set", "kind=wait", "--out", "r", cwd=tmp_path)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "interrupted in" in out and "Traceback" not in err
    record = json.loads((tmp_path / "r" / "run.json").read_text())
    assert record["status"] == "interrupted" and record["error"]["type"] == number.name
    assert (tmp_path / "r" / "report.html").stat().st_size > 1000
    assert len((tmp_path / "r" / "metrics.jsonl").read_text().splitlines()) >= 1


@pytest.mark.multiprocess
def test_help_and_import_do_not_load_jax(tmp_path: Path) -> None:
    program = (
        "import sys, sciax\n"
        "assert 'jax' not in sys.modules and 'numpy' not in sys.modules\n"
        "from sciax.cli import main\n"
        "sys.argv = ['sciax', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code in (0, None)\n"
        "heavy = {'jax', 'numpy', 'xarray', 'matplotlib', 'scipy', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    process = start(sys.executable, "-c", program, cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "doctor" in out


@pytest.mark.multiprocess
def test_python_dash_m(tmp_path: Path) -> None:
    out, err = start(sys.executable, "-m", "sciax", "--version", cwd=tmp_path).communicate(timeout=60)
    assert out.startswith("sciax "), err


def test_a_folder_that_cannot_be_made(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = command("run", "toy.root", "--out", "file/below")
    assert result.exit_code == 2 and "cannot be made" in result.stderr


def test_runs_folder_from_the_environment(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCIAX_RUNS", str(tmp_path / "elsewhere"))
    assert command("run", "toy.trouble", "--set", "kind=none").exit_code == 0
    assert "toy.trouble-" in command("runs", "list").output
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1


def test_resume_runs_once(command: Callable[..., Result]) -> None:
    words = ("run", "toy.root", "--out", "here", "--resume")
    assert command(*words).exit_code == 0
    before = Path("here/run.json").read_text()
    assert command(*words).exit_code == 0
    assert Path("here/run.json").read_text() == before
    assert command(*words[:-1]).exit_code == 2
