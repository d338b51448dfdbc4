"""Two runs side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sciax.core.errors import ConfigError, did_you_mean
from sciax.core.jobs import _record
from sciax.core.jobs._record import Record
from sciax.core.jobs._report import flat


@dataclass(frozen=True)
class Found:
    """A run directory and its record."""

    directory: Path
    record: Record


def find_runs(root: Path) -> list[Found]:
    """Every run below `root` (and those inside a tour's folder), oldest first. Unreadable records are passed over."""
    found = []
    for pattern in (f"*/{_record.FILE}", f"*/*/{_record.FILE}"):
        for path in root.glob(pattern):
            try:
                found.append(Found(path.parent, _record.read(path.parent)))
            except ValueError:
                continue
    return sorted(found, key=lambda run: (run.record.started, run.directory.name))


def locate(root: Path, name: str) -> Found:
    """The run that `name` means: a path, a run's name, the start or the end of one (its short id), or "last".

    Raises:
        ConfigError: none, or more than one.
    """
    if (Path(name) / _record.FILE).is_file():
        return Found(Path(name), _record.read(Path(name)))
    runs = find_runs(root)
    if name == "last" and runs:
        return runs[-1]
    names = {str(run.directory.relative_to(root)): run for run in runs}
    exact = [run for full, run in names.items() if name in (full, run.directory.name)]
    matches = exact or [run for full, run in names.items() if full.startswith(name) or full.endswith(f"-{name}")]
    if not matches:
        raise ConfigError(f"no run is named {name!r} in {root}", got=name, remedy=did_you_mean(name, list(names)[-20:]))
    if len(matches) > 1:
        raise ConfigError(
            f"{name!r} could be {len(matches)} runs",
            got=name,
            expected=", ".join(str(run.directory.relative_to(root)) for run in matches[:6]),
            remedy="write more of the name",
        )
    return matches[0]


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """(dotted name, a's value, b's value) of what differs between two nested mappings; None where absent."""
    left, right = dict(flat(a)), dict(flat(b))
    names = [*left, *(name for name in right if name not in left)]
    return [(name, left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)]


@dataclass(frozen=True)
class Agreement:
    """How two outcomes of the same quantity compare: `relative` is |a - b| / max(|a|, |b|), 0 where both are 0."""

    relative: float

    @property
    def identical(self) -> bool:
        return self.relative == 0


def agreement(a: Record, b: Record) -> Agreement | None:
    """None where one of the two has no outcome, or they are different quantities."""
    if a.outcome is None or b.outcome is None or a.outcome["quantity"] != b.outcome["quantity"]:
        return None
    x, y = a.outcome["value"], b.outcome["value"]
    scale = max(abs(x), abs(y))
    return Agreement(abs(x - y) / scale if scale else 0.0)
