"""The run directory: what a job can write, what the record says, how a run can end."""

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from sciax.core.errors import ConfigError, ConvergenceError, InputError, MissingFileError
from sciax.core.jobs import Outcome, Run, _progress, _record, run_job
from sciax.core.jobs._execute import Stopped


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "run", seed=5)


def lines(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]


def test_metrics_are_on_disk_at_once(run: Run) -> None:
    run.metric(step=1, loss=jax.numpy.float32(0.5), count=np.int64(3), good=True, name="a", bad=float("nan"), up=np.inf)
    (line,) = lines(run)
    assert line.pop("time") >= 0
    assert line == {"step": 1, "loss": 0.5, "count": 3, "good": True, "name": "a", "bad": "nan", "up": "inf"}


@pytest.mark.parametrize("value", [np.zeros(3), [1, 2], {"a": 1}, 1j])
def test_a_metric_is_a_scalar(run: Run, value: Any) -> None:
    with pytest.raises(InputError, match="'loss' is not a scalar"):
        run.metric(loss=value)


def test_figure_dataset_and_file(run: Run) -> None:
    figure = Figure()
    figure.subplots().plot([1, 2])
    run.figure(figure, "curve", caption="first")
    run.figure(figure, "curve", caption="second")  # replaces
    z = np.array([1 + 2j, 3 - 4j])
    path = run.dataset(xr.Dataset({"z": ("x", z, {"units": "V"})}), "fields")
    run.dataset(xr.DataArray([1.0, 2.0], dims="x", name="t"), "one.nc")
    (run.outputs / "mesh.vtu").write_text("<VTK/>")
    run.file(run.outputs / "mesh.vtu", caption="a mesh")
    assert [(o.path, o.kind, o.caption) for o in run.ledger.outputs] == [
        ("outputs/curve.png", "picture", "second"),
        ("outputs/fields.nc", "dataset", ""),
        ("outputs/one.nc", "dataset", ""),
        ("outputs/mesh.vtu", "file", "a mesh"),
    ]
    with xr.open_dataset(path) as found:
        np.testing.assert_array_equal(found.z_real + 1j * found.z_imag, z)
        assert found.z_real.attrs["units"] == "V" and found.attrs["Conventions"] == "CF-1.11"


@pytest.mark.parametrize("name", ["../up", "a/b", "", "/abs", ".hidden"])
def test_names_are_plain(run: Run, name: str) -> None:
    with pytest.raises(InputError, match="plain file name"):
        run.figure(Figure(), name)


def test_files_outside_the_run_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    with pytest.raises(InputError, match="outside"):
        run.file(tmp_path / "other")
    with pytest.raises(MissingFileError):
        run.file(run.outputs / "none.vtu")


def test_inputs_are_hashed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(b"abc")
    run.input(path)
    run.input(path)
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a").write_bytes(b"abc")
    run.input(folder)
    one, two = run.ledger.inputs
    assert one.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, example 1
    assert (one.bytes, two.bytes) == (3, 3) and two.sha256 != one.sha256
    with pytest.raises(MissingFileError):
        run.input(tmp_path / "none")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"value": float("nan")}, "not finite"),
        ({"value": 1.0, "error": float("inf")}, "not finite"),
        ({"value": "x"}, "not a number"),
        ({"value": None}, "not a number"),
        ({"value": np.zeros(2)}, "not a number"),
    ],
)
def test_an_outcome_is_a_finite_number(values: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Outcome("q", **values)


def test_outcome_error_and_tolerance() -> None:
    assert Outcome("q", np.float32(1.5), reference=1.0).error == 0.5
    assert Outcome("q", 1.5).error is None
    assert Outcome("q", 1.5, reference=1.0, tolerance=0.5).ok
    assert not Outcome("q", 1.5, reference=1.0, tolerance=0.4).ok
    assert not Outcome("q", 1.5, error=-1.0, tolerance=0.4).ok


def test_record_of_a_run(toy: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("abc")
    out = tmp_path / "out"
    record = run_job("toy.root", {"steps": 6, "data": tmp_path / "in.txt"}, out=out, seed=7)
    assert record == _record.read(out)
    assert record.status == "completed" and record.seed == 7 and record.seconds > 0
    assert record.outcome is not None and record.outcome["error"] < 1e-15
    assert record.config["steps"] == 6 and record.config["solver"]["method"] == "newton"
    assert record.inputs[0]["sha256"].startswith("ba7816bf")
    assert record.versions["jax"] == jax.__version__ and "xarray" in record.versions
    assert record.platform["backend"] == "cpu"
    assert record.git is None or re.fullmatch("[0-9a-f]{40}", record.git["commit"])
    assert {path.name for path in out.iterdir()} == {
        "config.toml", "run.json", "metrics.jsonl", "log.txt", "outputs", "report.html"
    }  # fmt: skip


def test_git_state(tmp_path: Path) -> None:
    assert _record.git_state(tmp_path) is None


def test_x64_follows_the_job(toy: ModuleType, tmp_path: Path) -> None:
    before = jax.config.jax_enable_x64
    run_job("toy.root", out=tmp_path / "a")
    dtype = xr.open_dataset(tmp_path / "a" / "outputs" / "history.nc").error.dtype
    assert dtype == np.float64 and jax.config.jax_enable_x64 == before


def test_a_run_never_overwrites_another(toy: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    run_job("toy.trouble", {"kind": "none"}, out=tmp_path / "out")
    with pytest.raises(ConfigError, match="not empty"):
        run_job("toy.trouble", {"kind": "none"}, out=tmp_path / "out")


def test_a_typed_error_is_recorded_and_raised(toy: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ConvergenceError):
        run_job("toy.root", {"steps": 1}, out=tmp_path)
    record = _record.read(tmp_path)
    assert record.status == "failed" and record.error is not None
    assert record.error["type"] == "ConvergenceError" and record.error["remedy"] == "more steps"
    assert "Traceback" in (tmp_path / "log.txt").read_text()
    assert "more steps" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("kind", "error"),
    [("bug", "ZeroDivisionError"), ("nan", "InputError"), ("text", "TypeError"), ("tolerance", "Tolerance")],
)
def test_failures(toy: ModuleType, tmp_path: Path, kind: str, error: str) -> None:
    record = run_job("toy.trouble", {"kind": kind}, out=tmp_path, throw=False)
    assert record.status == "failed" and record.error is not None and record.error["type"] == error
    assert (tmp_path / "report.html").stat().st_size > 1000


@pytest.mark.parametrize(("kind", "name"), [("SIGINT", "SIGINT"), ("SIGTERM", "SIGTERM"), ("wrapped", "SIGINT")])
def test_interruption_keeps_what_was_done(toy: ModuleType, tmp_path: Path, kind: str, name: str) -> None:
    record = run_job("toy.trouble", {"kind": kind}, out=tmp_path / "a", throw=False)
    assert record.status == "interrupted" and record.error is not None and record.error["type"] == name
    assert record.seconds < 20  # the job would sleep for 30
    assert "loss" in (tmp_path / "a" / "metrics.jsonl").read_text()
    assert (tmp_path / "a" / "report.html").is_file()
    assert "Traceback" not in (tmp_path / "a" / "log.txt").read_text()
    if kind != "wrapped":
        with pytest.raises(Stopped):
            run_job("toy.trouble", {"kind": kind}, out=tmp_path / "b")


def test_a_record_of_a_killed_process_says_died(toy: ModuleType, tmp_path: Path) -> None:
    record = run_job("toy.trouble", {"kind": "none"}, out=tmp_path)
    record.status = "running"
    assert record.shown_status == "running"
    record.pid = 2**22 + 1  # above any Linux pid
    assert record.shown_status == "died"


def test_log_has_logging_and_warnings(toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import logging
    import warnings
    from dataclasses import replace

    from sciax.core.jobs import _registry

    def chatty(config: Any, run: Run) -> None:
        logging.getLogger("sciax.test").info("hello from a logger")
        warnings.warn("careful", UserWarning, stacklevel=1)

    job = replace(_registry.find("toy.trouble"), function=chatty)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        run_job(job, out=tmp_path)
    text = (tmp_path / "log.txt").read_text()
    assert "hello from a logger" in text and "careful" in text


class Test_progress:
    def console(self, terminal: bool) -> Any:
        import io

        from rich.console import Console

        return Console(file=io.StringIO(), force_terminal=terminal, width=100)

    def work(self, tmp_path: Path, console: Any, pause: float) -> Run:
        import time

        run = Run(tmp_path, console=console)
        with run.progress("whole"), run.progress("steps", total=3) as bar:
            for _ in range(3):
                time.sleep(pause)
                bar.advance()
            bar.describe("finishing")
        run.close()
        return run

    def test_short_work_shows_nothing(self, tmp_path: Path) -> None:
        console = self.console(True)
        run = self.work(tmp_path, console, 0.001)
        assert console.file.getvalue() == ""
        assert run.ledger.progress[0].startswith("finishing: 3/3 in")

    def test_long_work_shows_bars(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import rich.progress  # noqa: F401  (loaded by the timer's thread otherwise, for longer than the work takes)

        monkeypatch.setattr(_progress, "PATIENCE", 0.05)
        console = self.console(True)
        self.work(tmp_path, console, 0.4)
        text = console.file.getvalue()
        assert "steps" in text and "whole" in text and "2/3" in text

    def test_no_terminal_is_silent(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_progress, "PATIENCE", 0.01)
        console = self.console(False)
        self.work(tmp_path, console, 0.05)
        assert console.file.getvalue() == ""


class Test_resume:
    def interrupted(self, toy: ModuleType, directory: Path) -> None:
        run_job("toy.root", {"steps": 3}, out=directory)
        record = _record.read(directory)
        record.status = "interrupted"
        record.write(directory)

    def test_an_unfinished_run_goes_on_in_its_own_folder(self, toy: ModuleType, tmp_path: Path) -> None:
        self.interrupted(toy, tmp_path / "run")
        record = run_job("toy.root", {"steps": 3}, out=tmp_path / "run", resume=True)
        assert record.status == "completed"
        assert "resumed" in (tmp_path / "run" / "log.txt").read_text()

    def test_a_completed_run_is_not_run_again(self, toy: ModuleType, tmp_path: Path) -> None:
        first = run_job("toy.root", {"steps": 3}, out=tmp_path / "run", resume=True)
        again = run_job("toy.root", {"steps": 3}, out=tmp_path / "run", resume=True)
        assert again.started == first.started
        assert (tmp_path / "run" / "log.txt").read_text().count("started") == 1

    @pytest.mark.parametrize(("settings", "seed"), [({"steps": 4}, 0), ({"steps": 3}, 1)])
    def test_other_settings_are_refused(self, toy: ModuleType, tmp_path: Path, settings: Any, seed: int) -> None:
        self.interrupted(toy, tmp_path / "run")
        with pytest.raises(ConfigError, match="to resume"):
            run_job("toy.root", settings, out=tmp_path / "run", seed=seed, resume=True)

    def test_a_folder_with_something_else_is_refused(self, toy: ModuleType, tmp_path: Path) -> None:
        (tmp_path / "thesis.tex").write_text("")
        with pytest.raises(ConfigError, match="not empty"):
            run_job("toy.root", out=tmp_path, resume=True)
