"""What a compiled program sends: its collectives, counted from the HLO text."""

import re
from collections import Counter
from dataclasses import dataclass

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4}
_BYTES |= {"s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16}

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")

_LINE = re.compile(rf"= (?P<type>\(.*?\)|\S+) (?P<kind>{'|'.join(KINDS)})(?:-start)?\(")
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")


@dataclass(frozen=True)
class Collective:
    """One collective operation of a program, counted once however often a loop runs it.

    Attributes:
        kind: all-reduce, all-gather, reduce-scatter, all-to-all or collective-permute.
        bytes: size of its result on one device.
    """

    kind: str
    bytes: int


def collectives(hlo: str) -> list[Collective]:
    """The collectives in the text of a compiled program, `jax.jit(f).lower(...).compile().as_text()`."""
    found = []
    for line in hlo.splitlines():
        match = _LINE.search(line)
        if match is None:
            continue
        size = 0
        for dtype, shape in _ARRAY.findall(match["type"]):
            length = 1
            for part in filter(None, shape.split(",")):
                length *= int(part)
            size += length * _BYTES.get(dtype, 0)
        found.append(Collective(match["kind"], size))
    return found


def count(hlo: str) -> Counter[str]:
    """Number of collectives by kind."""
    return Counter(item.kind for item in collectives(hlo))
