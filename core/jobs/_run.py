"""The handle a job holds on its run: progress, metrics, pictures, files, notes."""

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sciax.core.errors import InputError, MissingFileError
from sciax.core.jobs._progress import Bar, Display

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

_PICTURES = {".png", ".jpg", ".jpeg", ".svg", ".gif"}


@dataclass
class Output:
    """One thing a run wrote: `path` relative to the run directory."""

    path: str
    kind: str
    caption: str = ""


@dataclass
class Input:
    """One file a run read."""

    path: str
    sha256: str
    bytes: int


@dataclass
class Ledger:
    """What a run has registered so far."""

    inputs: list[Input] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)


class Run:
    """What a job writes to. The runner makes it; a test may too: `Run(tmp_path)`.

    Attributes:
        directory: the run directory.
        outputs: the folder for the job's files, `directory/outputs`.
        seed: the seed of the run; make keys from it, `jax.random.key(run.seed)`.
    """

    def __init__(self, directory: Path | str, *, seed: int = 0, name: str = "", console: Any = None):
        self.directory = Path(directory)
        self.outputs = self.directory / "outputs"
        self.seed = seed
        self.name = name
        self.ledger = Ledger()
        self.display = Display(console)
        self._start = time.perf_counter()
        self._listeners: list[Callable[[str], None]] = []
        self.outputs.mkdir(parents=True, exist_ok=True)
        self._metrics = None

    @property
    def checkpoints(self) -> Path:
        """Folder for checkpoints, made on first use."""
        folder = self.directory / "checkpoints"
        folder.mkdir(exist_ok=True)
        return folder

    def progress(self, label: str, total: float | None = None) -> Bar:
        """A progress bar: `with run.progress("optimising", total=60) as bar: ... bar.advance()`.

        It appears after two seconds, and only on a terminal; elsewhere its time goes to the log.
        """
        return Bar(self.display, label, total, self._progressed)

    def _progressed(self, line: str) -> None:
        self.ledger.progress.append(line)
        self.log(line)

    def metric(self, **values: Any) -> None:
        """Append one line to metrics.jsonl, flushed at once: `run.metric(step=3, loss=0.25)`.

        Values are numbers (0-d arrays too), booleans or strings; numbers that are not finite are written as "nan", "inf" and
        "-inf", since JSON has no word for them. `time`, in seconds from the start of the run, is added.

        Raises:
            InputError: a value that is none of these.
        """
        line = {"time": round(time.perf_counter() - self._start, 4)} | {k: _plain(k, v) for k, v in values.items()}
        if self._metrics is None:
            self._metrics = (self.directory / "metrics.jsonl").open("a", encoding="utf-8")
        self._metrics.write(json.dumps(line) + "\n")
        self._metrics.flush()

    def figure(self, figure: "Figure", name: str, caption: str = "") -> Path:
        """Write a matplotlib figure as outputs/NAME.png and show it in the report; the same name again replaces it."""
        path = self.outputs / f"{_file_name(name, '.png')}.png"
        figure.savefig(path, dpi=144, bbox_inches="tight", facecolor="white")
        self._register(path, "picture", caption)
        return path

    def dataset(self, dataset: "xr.Dataset | xr.DataArray", name: str, caption: str = "") -> Path:
        """Write an xarray dataset as outputs/NAME.nc (NetCDF-4).

        NetCDF has no complex numbers: a complex variable `v` is written as the pair `v_real`, `v_imag`.
        """
        from sciax.core.jobs._netcdf import write

        path = self.outputs / f"{_file_name(name, '.nc')}.nc"
        write(dataset, path, source=self.name)
        self._register(path, "dataset", caption)
        return path

    def file(self, path: Path | str, caption: str = "") -> Path:
        """Register a file (or folder) that the job has written under `run.outputs`; pictures are shown in the report.

        Raises:
            InputError: it lies elsewhere.
            MissingFileError: it is not there.
        """
        path = Path(path)
        if not path.is_absolute() and not path.exists():
            path = self.outputs / path
        if not path.resolve().is_relative_to(self.outputs.resolve()):
            raise InputError(
                "an output lies outside the run's folder", got=path, expected=f"a path under {self.outputs}"
            )
        if not path.exists():
            raise MissingFileError("an output was registered that was not written", got=path)
        self._register(path, "picture" if path.suffix.lower() in _PICTURES else "file", caption)
        return path

    def input(self, path: Path | str) -> Path:
        """Record a file (or folder) that the run reads: its SHA-256 goes into run.json. Returns the path.

        Raises:
            MissingFileError: it is not there.
        """
        from sciax.core.jobs._record import hash_path

        path = Path(path).expanduser()
        if not path.exists():
            raise MissingFileError(
                "an input is not there", got=path, remedy="check the path; it counts from the current folder"
            )
        digest, size = hash_path(path)
        entry = Input(str(path.absolute()), digest, size)
        if entry not in self.ledger.inputs:
            self.ledger.inputs.append(entry)
            self.log(f"input {path} sha256 {digest}")
        return path

    def note(self, text: str) -> None:
        """Add a paragraph to the report."""
        self.ledger.notes.append(str(text))
        self.log(f"note: {text}")

    def log(self, text: str) -> None:
        """Append a line to log.txt."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with (self.directory / "log.txt").open("a", encoding="utf-8") as stream:
            stream.write(f"{stamp} {text}\n")

    def close(self) -> None:
        """Take the bars down and close the metrics file."""
        self.display.close()
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None

    def _register(self, path: Path, kind: str, caption: str) -> None:
        relative = path.resolve().relative_to(self.directory.resolve()).as_posix()
        self.ledger.outputs = [o for o in self.ledger.outputs if o.path != relative]
        self.ledger.outputs.append(Output(relative, kind, caption))
        self.log(f"wrote {relative}")


def _file_name(name: str, suffix: str) -> str:
    name = name.removesuffix(suffix)
    if not re.fullmatch(r"[\w][\w .+=-]*", name):
        raise InputError(
            f"{name!r} is not a plain file name",
            got=name,
            expected="letters, digits, '_', '-', '.' or spaces, no folders",
        )
    return name


def _plain(key: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    try:
        value = value.item() if hasattr(value, "item") else value
        if isinstance(value, bool | int):
            return value
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(
            f"metric {key!r} is not a scalar",
            got=f"{type(value).__name__} of shape {getattr(value, 'shape', '?')}",
            expected="a number, a boolean or a string",
        ) from None
    return number if math.isfinite(number) else str(number)
