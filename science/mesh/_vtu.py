"""A reader for VTU files with raw appended data, for those the general reader gives up on (an array without a name, say)."""

import re
from pathlib import Path

import numpy as np

from sciax.core.errors import FileFormatError, UnsupportedError
from sciax.science.mesh._raw import Block, Raw

_TYPES = {1: "vertex", 3: "line", 5: "triangle", 9: "quad", 10: "tetra", 12: "hexahedron", 21: "line3", 22: "triangle6",
          23: "quad8", 24: "tetra10", 25: "hexahedron20", 28: "quad9", 29: "hexahedron27"}  # fmt: skip
_DTYPES = {"Float32": "f4", "Float64": "f8", "Int8": "i1", "UInt8": "u1", "Int16": "i2", "UInt16": "u2", "Int32": "i4",
           "UInt32": "u4", "Int64": "i8", "UInt64": "u8"}  # fmt: skip


def _attributes(tag: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+)\s*=\s*"([^"]*)"', tag))


def read_appended_vtu(path: Path) -> Raw:
    """Points, cells and data of one piece of an unstructured grid, appended raw without compression."""
    raw = path.read_bytes()
    mark = re.search(rb'<AppendedData[^>]*encoding\s*=\s*"raw"[^>]*>\s*_', raw)
    if mark is None:
        raise UnsupportedError(
            f"{path.name}: this VTU form is not read", remedy="save it as ASCII, or with raw appended data"
        )
    head = raw[: mark.start()].decode("ascii", errors="replace")
    top = _attributes(re.search(r"<VTKFile[^>]*>", head)[0])  # type: ignore[index]
    if "compressor" in top:
        raise UnsupportedError(f"{path.name}: compressed appended data", remedy="save it without compression")
    order = "<" if top.get("byte_order", "LittleEndian") == "LittleEndian" else ">"
    width = np.dtype(order + _DTYPES[top.get("header_type", "UInt32")])
    arrays: dict[str, list[tuple[str, np.ndarray]]] = {}
    for section, body in re.findall(r"<(Points|Cells|PointData|CellData)\b[^>]*>(.*?)</\1>", head, flags=re.S):
        for tag in re.findall(r"<DataArray[^>]*>", body):
            a = _attributes(tag)
            start = mark.end() + int(a["offset"])
            size = int(np.frombuffer(raw, width, 1, start)[0])
            values = raw[start + width.itemsize : start + width.itemsize + size]
            if len(values) < size:
                raise FileFormatError(f"{path.name} ends inside the array {a.get('Name', '')!r}")
            array = np.frombuffer(values, order + _DTYPES[a["type"]])
            parts = int(a.get("NumberOfComponents", "1") or 1)
            arrays.setdefault(section, []).append((a.get("Name", ""), array.reshape(-1, parts) if parts > 1 else array))
    cells = dict(arrays.get("Cells", []))
    try:
        points = arrays["Points"][0][1].astype(np.float64)
        connectivity, offsets, types = cells["connectivity"], cells["offsets"], cells["types"]
    except (KeyError, IndexError) as error:
        raise FileFormatError(f"{path.name} lacks points or cells", got=sorted(arrays)) from error
    starts = np.concatenate([[0], offsets[:-1]]).astype(np.int64)
    blocks = []
    for code in np.unique(types):
        if int(code) not in _TYPES:
            raise UnsupportedError(
                f"{path.name}: VTK cell type {code} is not supported", expected=sorted(_TYPES.values())
            )
        rows = np.flatnonzero(types == code)
        size = int(offsets[rows[0]] - starts[rows[0]])
        block = connectivity[starts[rows][:, None] + np.arange(size)].astype(np.int64)
        data = {name or f"unnamed{k}": values[rows] for k, (name, values) in enumerate(arrays.get("CellData", []))}
        blocks.append(Block(_TYPES[int(code)], block, data=data))
    fields = {name or f"unnamed{k}": values for k, (name, values) in enumerate(arrays.get("PointData", []))}
    notes = [
        f"{section} has an array without a name" for section, found in arrays.items() if any(not n for n, _ in found)
    ]
    return Raw(points, blocks, fields, notes)
