"""A reader for ASCII MSH 4.1, for files the general reader gives up on: some entities in a physical group, others in none."""

from pathlib import Path

import numpy as np

from sciax.core.errors import FileFormatError, UnsupportedError
from sciax.science.mesh._raw import Block, Raw

_TYPES = {1: ("line", 2), 2: ("triangle", 3), 3: ("quad", 4), 4: ("tetra", 4), 5: ("hexahedron", 8), 8: ("line3", 3),
          9: ("triangle6", 6), 10: ("quad9", 9), 11: ("tetra10", 10), 15: ("vertex", 1)}  # fmt: skip


def is_msh4(path: Path) -> bool:
    words = path.read_bytes()[:60].split()
    return len(words) > 2 and words[0] == b"$MeshFormat" and words[1] == b"4.1" and words[2] == b"0"


def read_msh4(path: Path) -> Raw:
    """Points, cells and physical groups of an ASCII MSH 4.1 file."""
    sections = _sections(path)
    try:
        names = {}
        for line in sections.get("PhysicalNames", [])[1:]:
            dim, tag, name = line.split(None, 2)
            names[int(dim), int(tag)] = name.strip().strip('"')
        physical = _entities(sections["Entities"]) if "Entities" in sections else {}
        tags, points = _nodes(sections["Nodes"])
        number = np.full(int(tags.max()) + 1, -1, dtype=np.int64)
        number[tags] = np.arange(len(tags))
        blocks, rows = [], iter(sections["Elements"])
        for _ in range(int(next(rows).split()[0])):
            dim, entity, code, count = map(int, next(rows).split())
            if code not in _TYPES:
                raise UnsupportedError(f"{path.name}: Gmsh element type {code} is not supported")
            form, size = _TYPES[code]
            cells = np.array([next(rows).split()[1 : 1 + size] for _ in range(count)], dtype=np.int64).reshape(-1, size)
            if form == "tetra10":
                cells = cells[:, [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]]
            owners = physical.get((dim, entity), [])
            groups = {names.get((dim, tag), f"physical{tag}"): np.arange(count) for tag in owners}
            blocks.append(Block(form, number[cells], groups))
    except (ValueError, IndexError, KeyError, StopIteration) as error:
        raise FileFormatError(f"{path.name} is damaged", got=f"{type(error).__name__}: {error}") from error
    return Raw(points, blocks)


def _sections(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("$End"):
            current = None
        elif line.startswith("$"):
            current = found.setdefault(line[1:].strip(), [])
        elif current is not None and line.strip():
            current.append(line)
    return found


def _entities(lines: list[str]) -> dict[tuple[int, int], list[int]]:
    """(dimension, entity) -> physical tags."""
    counts, out, at = list(map(int, lines[0].split())), {}, 1
    for dim, count in enumerate(counts):
        for line in lines[at : at + count]:
            words = line.split()
            start = 4 if dim == 0 else 7  # a point has three coordinates, everything else a bounding box
            many = int(words[start])
            out[dim, int(words[0])] = [abs(int(w)) for w in words[start + 1 : start + 1 + many]]
        at += count
    return out


def _nodes(lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
    tags, points, at = [], [], 1
    for _ in range(int(lines[0].split()[0])):
        count = int(lines[at].split()[3])
        tags += lines[at + 1 : at + 1 + count]
        points += [line.split()[:3] for line in lines[at + 1 + count : at + 1 + 2 * count]]
        at += 1 + 2 * count
    return np.array(tags, dtype=np.int64), np.array(points, dtype=np.float64).reshape(-1, 3)
