"""Signatures of calls: what is compiled for, and why a call needed a new compilation."""

import zlib
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from sciax.core.graph._values import describe


class Token:
    """A static value with the equality that compiling needs.

    Strings, numbers and other hashable values compare by value; arrays by content; objects by identity and by the present
    values of their attributes, so that a changed attribute compiles again instead of being ignored.
    """

    __slots__ = ("key", "value")

    def __init__(self, value: Any):
        self.value = value
        self.key = _key(value, 0)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Token) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _key(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (str, bytes, int, float, complex, bool, type)):
        return type(value), value, str(value) if isinstance(value, float) else None
    if isinstance(value, np.ndarray):
        return (
            "ndarray",
            value.shape,
            str(value.dtype),
            zlib.crc32(np.ascontiguousarray(value).view(np.uint8)) if value.dtype.kind != "O" else id(value),
        )
    if isinstance(value, jax.Array):
        return "array", _Same(value)
    if isinstance(value, (tuple, list)) and depth < 4:
        return type(value), tuple(_key(v, depth + 1) for v in value)
    if isinstance(value, dict) and depth < 4:
        return dict, tuple((k, _key(v, depth + 1)) for k, v in value.items())
    attributes = getattr(value, "__dict__", None)
    if attributes is None or depth >= 4 or isinstance(value, type(_key)):
        return _Same(value)
    return _Same(value), tuple((k, _key(v, depth + 1)) for k, v in sorted(attributes.items()))


class _Same:
    """Compares by identity, and keeps the object alive so that its id is not reused."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def static_token(value: Any) -> Token:
    return Token(value)


@dataclass(frozen=True)
class Static:
    """The static half of a call: jit's cache key."""

    structure: Any
    values: tuple[Token, ...]
    version: int


@dataclass(frozen=True)
class Signature:
    """Argument name (with its path) -> description."""

    entries: dict[str, str]
    x64: bool

    @staticmethod
    def of(names: list[str], args: tuple, kwargs: dict, static: Static) -> "Signature":
        del static
        entries = {}
        padded = [*names, *(f"argument {i}" for i in range(len(names), len(args)))]
        for name, value in [*zip(padded, args), *kwargs.items()]:
            flat = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda v: v is None)[0]
            for path, leaf in flat:
                entries[name + jax.tree_util.keystr(path)] = describe(leaf)
            if not flat:
                entries[name] = repr(value)
        return Signature(entries, bool(jax.config.jax_enable_x64))


@dataclass(frozen=True)
class Compilation:
    """One compilation: its number, what for, and why."""

    number: int
    signature: Signature
    reasons: tuple[str, ...]


def explain(new: Signature, known: list[Signature]) -> tuple[str, ...]:
    """Why `new` needed a compilation although `known` were there: the differences to the nearest of them."""
    if not known:
        return ("first call",)
    reasons = min((_differences(old, new) for old in reversed(known)), key=len)
    return tuple(reasons) or ("the program was dropped from the cache, or an attribute or option changed",)


def _differences(old: Signature, new: Signature) -> list[str]:
    found = []
    for name in [*new.entries, *(n for n in old.entries if n not in new.entries)]:
        a, b = old.entries.get(name), new.entries.get(name)
        if a == b:
            continue
        if a is None:
            found.append(f"argument {name} is new: {b}")
        elif b is None:
            found.append(f"argument {name} is gone: it was {a}")
        else:
            found.append(f"argument {name} changed from {a} to {b}")
    if old.x64 != new.x64:
        found.append(f"64-bit arrays were switched {'on' if new.x64 else 'off'}")
    return found
