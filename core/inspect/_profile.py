"""A profile of a block of code: an operation-time table and a trace, without TensorBoard."""

import contextlib
import csv
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sciax.core.errors import FileFormatError, InputError, MissingFileError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class OpTime:
    """Time of one operation of one compiled program.

    Attributes:
        module: the program ("jit_step").
        op: XLA's name of the operation ("tanh_fusion", "dot.3").
        count: how often it ran.
        total, longest: seconds.
    """

    module: str
    op: str
    count: int
    total: float
    longest: float


@dataclass
class Profile:
    """What a profiled block did; complete once the block is left.

    Attributes:
        directory: where the trace, `ops.csv` and `ops.txt` are.
        ops: operations, slowest first.
        wall: seconds spent in the block.
    """

    directory: Path
    ops: list[OpTime] = field(default_factory=list)
    wall: float = 0.0

    @property
    def total(self) -> float:
        """Seconds in compiled operations, summed over threads."""
        return sum(op.total for op in self.ops)

    def table(self, limit: int = 20) -> str:
        """The slowest operations as text."""
        if not self.ops:
            return "no compiled operations ran"
        lines = [f"{'share':>6} {'total ms':>10} {'calls':>7} {'mean us':>9}  program / operation"]
        for op in self.ops[:limit]:
            share = op.total / self.total if self.total else 0.0
            lines.append(
                f"{share:>6.1%} {op.total * 1e3:>10.3f} {op.count:>7d} {op.total / op.count * 1e6:>9.1f}  {op.module} / {op.op}"
            )
        if len(self.ops) > limit:
            rest = sum(op.total for op in self.ops[limit:])
            lines.append(
                f"{rest / self.total if self.total else 0:>6.1%} {rest * 1e3:>10.3f}{'':>19} {len(self.ops) - limit} more"
            )
        lines.append(f"{'':>6} {self.total * 1e3:>10.3f} ms in operations, {self.wall * 1e3:.3f} ms wall")
        return "\n".join(lines)

    def figure(self, limit: int = 12) -> "Figure":
        """Bars of the slowest operations, as a matplotlib figure."""
        from matplotlib.figure import Figure

        shown = self.ops[:limit][::-1]
        fig = Figure(figsize=(8, 0.8 + 0.3 * max(len(shown), 1)), layout="constrained")
        ax = fig.subplots()
        bars = ax.barh([f"{op.module} / {op.op}" for op in shown], [op.total * 1e3 for op in shown], color="#1f5fa8")
        ax.bar_label(bars, [f"{op.total / self.total:.0%}, {op.count}x" for op in shown], padding=3, fontsize=8)
        ax.set_xlabel("ms, summed over threads")
        ax.tick_params(axis="y", labelsize=8)
        ax.margins(x=0.2)
        ax.spines[["top", "right"]].set_visible(False)
        return fig

    def __str__(self) -> str:
        return self.table()


_ACTIVE: list[Path] = []


@contextlib.contextmanager
def profile(directory: str | Path, *, show: bool = False, python: bool = False) -> Iterator[Profile]:
    """Profile the block: every compiled operation with its time.

    Writes to `directory`: the trace (`plugins/profile/.../*.trace.json.gz`, which Perfetto and chrome://tracing open, and
    `*.xplane.pb`), the table as `ops.csv`, and its head as `ops.txt`.

    Args:
        directory: made if it is not there.
        show: print the table at the end.
        python: record the interpreter's own calls in the trace too (many: they slow the block and fill the picture).

    Yields:
        The `Profile`, whose numbers are there after the block.

    Raises:
        InputError: a profile is already being taken.
    """
    import time

    import jax

    path = Path(directory)
    if path.exists() and not path.is_dir():
        raise InputError("profile() needs a directory", got=str(path))
    if _ACTIVE:
        raise InputError("a profile is already being taken", got=str(_ACTIVE[-1]), remedy="leave the outer block first")
    path.mkdir(parents=True, exist_ok=True)
    known = set(path.rglob("*.xplane.pb"))
    result = Profile(path)
    _ACTIVE.append(path)
    start = time.perf_counter()
    try:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = int(python)
        with jax.profiler.trace(str(path), profiler_options=options):
            try:
                yield result
            finally:
                with contextlib.suppress(Exception):
                    jax.effects_barrier()
                result.wall = time.perf_counter() - start
    finally:
        _ACTIVE.pop()
        fresh = sorted(set(path.rglob("*.xplane.pb")) - known)
        if fresh:
            result.ops = read_ops(fresh[-1])
            _write(result)
    if show:
        print(result.table())


def _write(result: Profile) -> None:
    with (result.directory / "ops.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["program", "operation", "calls", "total_s", "longest_s"])
        writer.writerows([op.module, op.op, op.count, f"{op.total:.9f}", f"{op.longest:.9f}"] for op in result.ops)
    (result.directory / "ops.txt").write_text(result.table() + "\n")


def read_ops(file: str | Path) -> list[OpTime]:
    """The operations in an `.xplane.pb` file, slowest first.

    Raises:
        MissingFileError, FileFormatError.
    """
    from jax.profiler import ProfileData

    path = Path(file)
    if not path.is_file():
        raise MissingFileError(f"no profile at {path}")
    sums: dict[tuple[str, str], list[float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of jax's own binding, about its module name
        try:
            data = ProfileData.from_file(str(path))
            for plane in data.planes:
                for line in plane.lines:
                    for event in line.events:
                        stats = dict(event.stats)
                        name = stats.get("hlo_op")
                        if name is None:
                            continue
                        entry = sums.setdefault((str(stats.get("hlo_module", "?")), str(name)), [0, 0.0, 0.0])
                        seconds = event.duration_ns * 1e-9
                        entry[0] += 1
                        entry[1] += seconds
                        entry[2] = max(entry[2], seconds)
        except Exception as error:
            raise FileFormatError(f"{path} is not a profile that can be read: {error}") from error
    ops = [OpTime(module, op, int(n), total, longest) for (module, op), (n, total, longest) in sums.items()]
    return sorted(ops, key=lambda o: -o.total)
