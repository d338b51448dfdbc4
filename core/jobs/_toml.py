"""TOML in and out: reading with the line of each key, writing a config back."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sciax.core.errors import FileFormatError, MissingFileError

Keys = tuple[str | int, ...]


def read(path: Path) -> tuple[dict[str, Any], dict[Keys, int]]:
    """The values of a TOML file, and the line on which each key is set (counted from 1).

    Raises:
        MissingFileError: not there.
        FileFormatError: not TOML; the message names the line.
    """
    if not path.is_file():
        raise MissingFileError(
            "the config file is not there", got=path, remedy="`sciax list` names jobs that need no file"
        )
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not UTF-8 text", got=str(error)) from error
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line (\d+)", str(error))
        lines = text.splitlines()
        line = int(where[1]) if where else len(lines)
        got = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        raise FileFormatError(f"{path}, line {line}: not TOML: {error}", got=got) from error
    return values, key_lines(text)


def key_lines(text: str) -> dict[Keys, int]:
    """Line of every key of a valid TOML text, by its path from the root; also of the keys inside inline tables.

    Statements are cut out by asking the parser itself: lines are added until they parse.
    """
    lines = text.splitlines()
    found: dict[Keys, int] = {}
    table: Keys = ()
    counts: dict[Keys, int] = {}
    start = 0
    while start < len(lines):
        first = lines[start].strip()
        if not first or first.startswith("#"):
            start += 1
            continue
        end = start + 1
        while (parsed := _parse("\n".join(lines[start:end]))) is None and end < len(lines):
            end += 1
        if parsed is None:
            break
        if first.startswith("["):
            table = ()
            node: Any = parsed
            while isinstance(node, dict) and node:
                ((key, node),) = node.items()
                table += (key,)
                if isinstance(node, list):  # [[key]]: the next of a list of tables
                    place = counts[table] = counts.get(table, -1) + 1
                    found.setdefault(table, start + 1)
                    table, node = (*table, place), node[0]
                elif table in counts:  # [key.sub] below [[key]]
                    found.setdefault(table, start + 1)
                    table += (counts[table],)
                found.setdefault(table, start + 1)
        else:
            _record(parsed, table, start + 1, found)
        start = end
    return found


def _parse(statement: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return None


def _record(node: Any, path: Keys, line: int, found: dict[Keys, int]) -> None:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        found.setdefault((*path, key), line)
        _record(value, (*path, key), line, found)


def dumps(values: Mapping[str, Any]) -> str:
    """A TOML text of nested tables of strings, numbers, booleans and lists. Keys that are None are left out as comments."""
    return "\n".join(_table(values, ())).strip() + "\n"


def _table(values: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = []
    for key, value in values.items():
        if value is None:
            lines.append(f"# {_key(key)} is not set")
        elif not isinstance(value, Mapping):
            lines.append(f"{_key(key)} = {_value(value)}")
    for key, value in values.items():
        if isinstance(value, Mapping):
            inner = (*path, key)
            lines += ["", f"[{'.'.join(map(_key, inner))}]", *_table(value, inner)]
    return lines


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _text(text: str) -> str:
    # JSON's strings are TOML's, but for DEL, which only TOML wants escaped
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None) + "}"
    raise TypeError(f"{type(value).__name__} has no form in TOML")
