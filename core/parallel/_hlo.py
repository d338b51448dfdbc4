"""What a compiled program sends: its collectives, counted from the HLO text."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sciax.core.parallel._machine import Machine

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4}
_BYTES |= {"s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16}

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")

_LINE = re.compile(rf"= (?P<type>\(.*?\)|\S+) (?P<kind>{'|'.join(KINDS)})(?P<start>-start)?\(")
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_CALLED = re.compile(r"(?:body|condition|calls|to_apply|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"(?:branch_computations|called_computations)=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\] \{([^}]*)\}")
_IOTA = re.compile(r"replica_groups=\[\d+,(\d+)\]<=")
_LIST = re.compile(r"replica_groups=\{\{([\d,]*)\}")


@dataclass(frozen=True)
class Collective:
    """One collective operation of a program.

    Attributes:
        kind: all-reduce, all-gather, reduce-scatter, all-to-all or collective-permute.
        bytes: size of its result on one device.
        devices: that take part in one group; 0 where the text does not say (a permutation has none).
        times: how often loops of known length run it.
    """

    kind: str
    bytes: int
    devices: int = 0
    times: int = 1


def collectives(hlo: str) -> list[Collective]:
    """The collectives in the text of a compiled program, `jax.jit(f).lower(...).compile().as_text()`.

    Each stands once, with `times` the product of the known lengths of the loops around it.
    """
    inside: list[tuple[str, str, int, int]] = []
    calls: dict[str, list[tuple[str, int]]] = {}
    name = ""
    for line in hlo.splitlines():
        opened = _COMPUTATION.match(line)
        if opened is not None:
            name = opened[1]
            continue
        trips = _TRIPS.search(line)
        for called in (
            *_CALLED.findall(line),
            *(c for b in _BRANCHES.findall(line) for c in re.findall(r"[\w.\-]+", b)),
        ):
            calls.setdefault(called, []).append((name, int(trips[1]) if trips else 1))
        match = _LINE.search(line)
        if match is not None:
            inside.append((name, match["kind"], _size(match["type"], bool(match["start"])), _group(line)))

    def times(computation: str) -> int:
        return sum(times(caller) * trips for caller, trips in calls.get(computation, ())) or 1

    return [Collective(kind, size, devices, times(where)) for where, kind, size, devices in inside]


def _size(text: str, start: bool) -> int:
    """Bytes of the arrays of a type; the type of an asynchronous start holds the operands before the results."""
    sizes = []
    for dtype, shape in _ARRAY.findall(text):
        sizes.append(_BYTES.get(dtype, 0) * math.prod(int(part) for part in shape.split(",") if part))
    return sum(sizes[len(sizes) // 2 :]) if start and len(sizes) > 1 else sum(sizes)


def _group(line: str) -> int:
    """Devices in one replica group, in any of XLA's three ways of writing them."""
    if (mesh := _MESH.search(line)) is not None:
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", mesh[1]))
        group = 1
        for axis, part in re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", mesh[2]):
            group *= int(part or sizes[axis])
        return group
    if (iota := _IOTA.search(line)) is not None:
        return int(iota[1])
    listed = _LIST.search(line)
    return len(listed[1].split(",")) if listed is not None and listed[1] else 0


def count(hlo: str) -> Counter[str]:
    """Number of collectives by kind."""
    return Counter(item.kind for item in collectives(hlo))


def communication(sent: Iterable[Collective], machine: Machine, devices: int) -> float:
    """Seconds that the collectives of a program take one after another; `devices` where a group's size is not told."""
    return sum(item.times * machine.transfer(item.kind, item.bytes, item.devices or devices) for item in sent)
