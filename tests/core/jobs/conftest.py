"""A registry with the toy jobs only, and the command on it."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sciax.core.jobs import _registry
from sciax.core.jobs.cli import app

TOY = Path(__file__).with_name("toy.py")


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """No jobs and no packages that bring any; the returned entry points may be filled."""
    entries: dict[str, Any] = {}
    monkeypatch.setattr(_registry, "_JOBS", {})
    monkeypatch.setattr(_registry, "_FAILURES", {})
    monkeypatch.setattr(_registry, "_LOADED", set())
    monkeypatch.setattr(_registry, "_entries", lambda: entries)
    return entries


@pytest.fixture
def toy(empty: dict[str, Any]) -> Iterator[ModuleType]:
    """The toy jobs, registered."""
    spec = importlib.util.spec_from_file_location("sciax_toy_jobs", TOY)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def broken_domain(empty: dict[str, Any]) -> None:
    """A domain whose module does not import."""

    def load() -> None:
        raise ModuleNotFoundError("No module named 'pyscf'")

    empty["badland"] = SimpleNamespace(name="badland", value="badland.jobs", load=load)


@pytest.fixture
def command(toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`command("run", "toy.root")` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # set by pytest-xdist; tables would fold
    monkeypatch.delenv("SCIAX_RUNS", raising=False)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])
