"""Readers of surface files: STL (ASCII with several solids, and binary), OBJ and OFF.

Own ones, because the general reader merges the solids of an STL file, and fails on negative or continued OBJ indices and on
comments in OFF files.
"""

from pathlib import Path

import numpy as np

from sciax.core.errors import FileFormatError
from sciax.science.mesh._raw import Block, Raw


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def _numbers(path: Path, words: list[str], kind, line: int):
    try:
        return [kind(word) for word in words]
    except ValueError as error:
        raise FileFormatError(f"{path.name}, line {line}: {error}") from error


def read_stl(path: Path) -> Raw:
    """Triangles of an STL file; each solid is a cell group."""
    raw = path.read_bytes()
    count = int.from_bytes(raw[80:84], "little") if len(raw) >= 84 else -1
    if len(raw) == 84 + 50 * count:
        body = np.frombuffer(raw[84:], dtype=np.dtype([("f", "<f4", (4, 3)), ("attribute", "<u2")]))
        corners = body["f"][:, 1:].astype(np.float64)
        return _stl(path, corners, {})
    if not raw.lstrip().lower().startswith(b"solid"):
        raise FileFormatError(
            f"{path.name} is neither ASCII nor binary STL",
            got=f"{len(raw)} bytes with a header that announces {count} triangles",
            expected=f"{84 + 50 * max(count, 0)} bytes, or text that begins with 'solid'",
        )
    corners, solids, name, vertices = [], {}, "", []
    for number, line in enumerate(_text(path).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        key = words[0].lower()
        if key == "solid":
            name = " ".join(words[1:]) or f"solid{len(solids)}"
            solids.setdefault(name, [])
        elif key == "facet":
            vertices = []
        elif key == "vertex":
            vertices.append(_numbers(path, words[1:4], float, number))
        elif key == "endfacet":
            if len(vertices) != 3 or any(len(v) != 3 for v in vertices):
                raise FileFormatError(f"{path.name}, line {number}: a facet without three vertices", got=len(vertices))
            solids.setdefault(name, []).append(len(corners))
            corners.append(vertices)
    return _stl(path, np.array(corners, dtype=np.float64).reshape(-1, 3, 3), solids)


def _stl(path: Path, corners: np.ndarray, solids: dict[str, list[int]]) -> Raw:
    if len(corners) == 0:
        raise FileFormatError(f"{path.name} holds no triangles", remedy="export the solid again: the file is empty")
    points, inverse = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    groups = (
        {name: np.array(rows, dtype=np.int64) for name, rows in solids.items() if len(rows)} if len(solids) > 1 else {}
    )
    return Raw(points, [Block("triangle", inverse.reshape(-1, 3), groups)])


def _fan(polygons: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Polygons cut into triangles from their first corner, and which polygon each came from."""
    triangles = [(p[0], p[k], p[k + 1]) for p in polygons for k in range(1, len(p) - 1)]
    owner = [row for row, p in enumerate(polygons) for _ in range(len(p) - 2)]
    return np.array(triangles, dtype=np.int64).reshape(-1, 3), np.array(owner, dtype=np.int64)


def read_obj(path: Path) -> Raw:
    """Faces of a Wavefront OBJ file (indices from 1, or negative from the end), polygons cut into triangles."""
    points, faces, names, group = [], [], [], ""
    text = _text(path).replace("\\\r\n", " ").replace("\\\n", " ")
    notes = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0] == "v":
            at = _numbers(path, words[1:4], float, number)
            if len(at) != 3:
                raise FileFormatError(
                    f"{path.name}, line {number}: a vertex without three coordinates", got=line.strip()
                )
            points.append(at)
        elif words[0] in ("g", "o"):
            group = " ".join(words[1:])
        elif words[0] == "f":
            index = _numbers(path, [word.split("/")[0] for word in words[1:]], int, number)
            index = [i - 1 if i > 0 else len(points) + i for i in index]
            if len(index) < 3:
                notes.append(f"line {number}: a face of fewer than three vertices left out")
                continue
            if min(index) < 0 or max(index) >= len(points):
                raise FileFormatError(
                    f"{path.name}, line {number}: a face refers to a vertex that is not there",
                    got=" ".join(words[1:]),
                    expected=f"1..{len(points)} or -{len(points)}..-1",
                )
            faces.append(index)
            names.append(group)
    if not faces:
        raise FileFormatError(f"{path.name} holds no faces")
    triangles, owner = _fan(faces)
    names = np.array(names, dtype=object)[owner]
    distinct = sorted({name for name in names if name})
    groups = {name: np.flatnonzero(names == name) for name in distinct} if len(distinct) > 1 else {}
    return Raw(np.array(points), [Block("triangle", triangles, groups)], notes=notes)


def read_off(path: Path) -> Raw:
    """Faces of an OFF file, polygons cut into triangles; comments and odd white space are allowed."""
    lines = [line.split("#", 1)[0].split() for line in _text(path).splitlines()]
    rows = [words for words in lines if words]
    words = [word for row in rows for word in row]
    if not words or not words[0].upper().startswith("OFF"):
        raise FileFormatError(f"{path.name} does not begin with OFF", got=words[0] if words else "an empty file")
    words[0] = words[0][3:]  # some writers put the first count on the heels of the keyword
    words = words if words[0] else words[1:]
    counts = _numbers(path, words[:3], int, 1)
    if len(counts) < 3 or len(words) < 3 + 3 * counts[0]:
        raise FileFormatError(f"{path.name} ends before its vertices do", got=f"{len(words)} numbers", expected=counts)
    vertices, faces = counts[0], counts[1]
    points = np.array(_numbers(path, words[3 : 3 + 3 * vertices], float, 1)).reshape(-1, 3)
    # Faces are read line by line, for colours may follow the indices.
    skip, row, seen = 3 + 3 * vertices, 0, 0
    flat = [len(r) for r in rows]
    flat[0] -= 0 if len(rows[0][0]) > 3 else 1
    while row < len(rows) and seen < skip:
        seen += flat[row]
        row += 1
    polygons = []
    for words in rows[row : row + faces]:
        size = _numbers(path, words[:1], int, row)[0]
        polygon = _numbers(path, words[1 : 1 + size], int, row)
        if len(polygon) < size or min(polygon) < 0 or max(polygon) >= vertices:
            raise FileFormatError(f"{path.name}: a face refers to a vertex that is not there", got=" ".join(words))
        polygons.append(polygon)
    if not polygons:
        raise FileFormatError(f"{path.name} holds no faces")
    return Raw(points, [Block("triangle", _fan(polygons)[0])])
