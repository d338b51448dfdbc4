"""What is written down about a run: run.json and what goes into it."""

import hashlib
import json
import os
import platform
import re
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from sciax.core.errors import FileFormatError, MissingFileError

SCHEMA = 1
FILE = "run.json"


@dataclass
class Record:
    """The contents of run.json.

    `status` is "running", "completed", "failed" or "interrupted"; `seconds` and `timings` are wall-clock.
    """

    id: str
    job: str
    status: str
    seed: int
    config: dict[str, Any]
    schema: int = SCHEMA
    summary: str = ""
    command: list[str] = field(default_factory=list)
    started: str = ""
    finished: str = ""
    seconds: float = 0.0
    timings: dict[str, float] = field(default_factory=dict)
    outcome: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    platform: dict[str, Any] = field(default_factory=dict)
    git: dict[str, Any] | None = None
    pid: int = 0
    x64: bool = True

    def write(self, directory: Path) -> None:
        """Write run.json; a reader sees the old or the new text, never half of one."""
        draft = directory / f".{FILE}.part"
        draft.write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(directory / FILE)

    @property
    def shown_status(self) -> str:
        """`status`, but "died" where a run of this machine is recorded as running and its process is gone."""
        if self.status == "running" and self.platform.get("host") == socket.gethostname() and not _alive(self.pid):
            return "died"
        return self.status


def read(directory: Path) -> Record:
    """The record of a run directory.

    Raises:
        MissingFileError: no run.json there.
        FileFormatError: it is not one of ours.
    """
    path = directory / FILE
    if not path.is_file():
        raise MissingFileError("this is not a run directory", got=directory, expected=f"a folder with a {FILE}")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        known = {name: values[name] for name in Record.__dataclass_fields__ if name in values}
        return Record(**known)
    except (ValueError, TypeError) as error:
        raise FileFormatError(f"{path} is not a run record", got=str(error)) from error


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def hash_path(path: Path) -> tuple[str, int]:
    """SHA-256 and size in bytes of a file, or of a folder's files with their relative names, sorted."""
    if path.is_file():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest(), path.stat().st_size
    whole, size = hashlib.sha256(), 0
    for part in sorted(p for p in path.rglob("*") if p.is_file()):
        digest, length = hash_path(part)
        whole.update(f"{part.relative_to(path).as_posix()}\0{digest}\n".encode())
        size += length
    return whole.hexdigest(), size


def versions() -> dict[str, str]:
    """Versions of Python, sciax, and every package it names as a dependency that is installed here."""
    import sciax

    found = {"python": platform.python_version(), "sciax": sciax.__version__}
    try:
        required = metadata.requires("sciax") or []
    except metadata.PackageNotFoundError:
        required = []
    names = {match[0] for line in required if (match := re.match(r"[\w.-]+", line))}
    for name in sorted(names | {"jaxlib"}, key=str.lower):
        try:
            if name != "sciax":
                found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine(devices: bool = True) -> dict[str, Any]:
    """The machine, and jax's devices where jax is loaded.

    Asking for devices starts jax's backends, after which processes can no longer join: leave it out before a job.
    """
    found: dict[str, Any] = {
        "host": socket.gethostname(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }
    jax = sys.modules.get("jax")
    if jax is not None and devices:
        try:
            found["backend"] = jax.default_backend()
            found["devices"] = [str(device.device_kind) for device in jax.devices()]
        except RuntimeError as error:  # a backend that does not start is worth noting, not failing over
            found["backend"] = f"none: {error}"
    return found


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit, branch and whether anything is uncommitted; None outside a repository."""

    def ask(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()

    try:
        return {
            "commit": ask("rev-parse", "HEAD"),
            "branch": ask("rev-parse", "--abbrev-ref", "HEAD"),
            "dirty": bool(ask("status", "--porcelain")),
        }
    except (OSError, subprocess.SubprocessError):
        return None
