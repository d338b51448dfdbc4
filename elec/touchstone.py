"""Touchstone files (.sNp, .ts), versions 1.1 and 2.0: network parameters of N ports over frequency."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from sciax.core.errors import FileFormatError, InputError, MissingFileError, ShapeError, UnsupportedError, did_you_mean

UNITS = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}
KINDS = ("s", "y", "z", "g", "h")
FORMATS = ("ma", "db", "ri")


@dataclass(frozen=True, eq=False)
class Network:
    """Network parameters.

    Attributes:
        frequency: (F,) Hz, increasing.
        matrix: (F, N, N) complex; matrix[f, i, j] is parameter (i+1, j+1): out of port i+1, into port j+1. Z and Y are in ohm
            and siemens, not normalised.
        impedance: (N,) reference impedances (ohm).
        kind: "s", "y", "z", "g" or "h".
    """

    frequency: np.ndarray
    matrix: np.ndarray
    impedance: np.ndarray
    kind: str = "s"

    def __post_init__(self) -> None:
        f, m = np.asarray(self.frequency, float), np.asarray(self.matrix, complex)
        if m.ndim != 3 or m.shape[1] != m.shape[2] or f.shape != m.shape[:1]:
            raise ShapeError(
                "network parameters are (frequency, port, port)", got=m.shape, expected=f"({f.size}, N, N)"
            )
        z = np.broadcast_to(np.asarray(self.impedance, float), (m.shape[1],)).copy()
        if self.kind not in KINDS:
            raise InputError(f"unknown kind of parameters {self.kind!r}", remedy=did_you_mean(self.kind, KINDS))
        if np.any(np.diff(f) <= 0):
            raise InputError("frequencies must increase")
        if not np.all(z > 0):
            raise InputError("reference impedances must be positive", got=self.impedance)
        for name, value in (("frequency", f), ("matrix", m), ("impedance", z)):
            object.__setattr__(self, name, value)

    @property
    def ports(self) -> int:
        return self.matrix.shape[1]

    def passivity(self) -> float:
        """Largest singular value of S over frequency; above 1 the network gains energy."""
        if self.kind != "s":
            raise UnsupportedError("passivity is looked at on S parameters", got=self.kind)
        return float(np.linalg.svd(self.matrix, compute_uv=False).max())

    def reciprocity(self) -> float:
        """Largest |S_ij - S_ji|."""
        return float(np.abs(self.matrix - self.matrix.transpose(0, 2, 1)).max())

    def dataset(self) -> xr.Dataset:
        """Real and imaginary parts over frequency and ports."""
        ports = np.arange(1, self.ports + 1)
        dims = ("frequency", "port_out", "port_in")
        unit = {"s": "1", "z": "ohm", "y": "S"}.get(self.kind, "1")
        return xr.Dataset(
            {
                f"{self.kind}_re": (dims, np.real(self.matrix), {"units": unit}),
                f"{self.kind}_im": (dims, np.imag(self.matrix), {"units": unit}),
                "impedance": ("port_out", self.impedance, {"units": "ohm", "long_name": "reference impedance"}),
            },
            coords={"frequency": ("frequency", self.frequency, {"units": "Hz"}), "port_out": ports, "port_in": ports},
        )


def _complex(pairs: np.ndarray, form: str) -> np.ndarray:
    a, b = pairs[..., 0], pairs[..., 1]
    if form == "ri":
        return a + 1j * b
    return (a if form == "ma" else 10 ** (a / 20)) * np.exp(1j * np.deg2rad(b))


def _option_line(line: str, where: str) -> dict:
    out = {"unit": 1e9, "kind": "s", "form": "ma", "impedance": 50.0}
    words = line[1:].lower().split()
    while words:
        w = words.pop(0)
        if w in UNITS:
            out["unit"] = UNITS[w]
        elif w in KINDS:
            out["kind"] = w
        elif w in FORMATS:
            out["form"] = w
        elif w == "r" and words:
            try:
                out["impedance"] = float(words.pop(0))
            except ValueError as error:
                raise FileFormatError(f"{where}: reference impedance of the option line", got=line) from error
        else:
            raise FileFormatError(f"{where}: unknown word {w!r} in the option line", got=line)
    return out


def _numbers(text: list[str], where: str) -> np.ndarray:
    try:
        return np.array([float(w) for line in text for w in line.split()])
    except ValueError as error:
        raise FileFormatError(f"{where}: a value is not a number", got=str(error)) from error


def read_touchstone(path: str | Path) -> Network:
    """Read a Touchstone file.

    Version 1: the number of ports is that of the file's name (.sNp); the first option line counts; noise data of two-ports are
    left out. Version 2: full, lower and upper matrices, references for each port, both orders of two-ports.

    Raises:
        MissingFileError: no such file. FileFormatError: what of it cannot be read. UnsupportedError: mixed-mode data.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError("no such Touchstone file", got=str(path))
    where = path.name
    option: dict | None = None
    keywords: dict[str, list[str]] = {}
    current, body = None, []
    for raw in path.read_text(encoding="utf-8", errors="replace").splitlines():
        line = raw.split("!")[0].strip()
        if not line:
            continue
        if line.startswith("#"):
            option = option or _option_line(line, where)
        elif line.startswith("["):
            head, _, rest = line[1:].partition("]")
            current = head.strip().lower()
            keywords[current] = [rest.strip()] if rest.strip() else []
            if current == "end":
                break
        elif current is None:
            body.append(line)
        else:
            keywords[current].append(line)
    if option is None:
        if not keywords and not body:
            raise FileFormatError(f"{where}: empty")
        raise FileFormatError(f"{where}: no option line", expected="# GHz S MA R 50")
    if "mixed-mode order" in keywords:
        raise UnsupportedError(
            f"{where}: mixed-mode data are not read", remedy="convert the file to single-ended parameters"
        )
    return _version_2(keywords, option, where) if "version" in keywords else _version_1(body, option, path)


def _version_1(body: list[str], option: dict, path: Path) -> Network:
    match = re.fullmatch(r"\.s(\d+)p", path.suffix.lower())
    if match is None:
        raise FileFormatError(
            f"{path.name}: version 1 tells the number of ports by the name", expected="a suffix .s1p, .s2p, ..."
        )
    n = int(match.group(1))
    width = 1 + 2 * n * n
    values = _numbers(body, path.name)
    if n == 2:  # noise data begin where the frequency falls back
        rows, at = [], 0
        while at + width <= values.size and (not rows or values[at] > rows[-1][0]):
            rows.append(values[at : at + width])
            at += width
        rest = values.size - at
        if rest and (rest % 5 or not rows or values[at] > rows[-1][0]):
            raise FileFormatError(
                f"{path.name}: {rest} values are left over after the last frequency", expected=f"multiples of {width}"
            )
        table = np.array(rows).reshape(-1, width)
    else:
        if values.size % width:
            raise FileFormatError(
                f"{path.name}: {values.size} values do not divide into frequencies of {width}", expected=f"{n} ports"
            )
        table = values.reshape(-1, width)
    return _network(
        table, n, option, np.full(n, option["impedance"]), path.name, "21_12" if n == 2 else "12_21", normalised=True
    )


def _version_2(keywords: dict[str, list[str]], option: dict, where: str) -> Network:
    def need(key: str) -> list[str]:
        if not keywords.get(key):
            raise FileFormatError(f"{where}: keyword [{key}] is missing or empty")
        return keywords[key]

    count = need("number of ports")[0]
    if not count.isdigit() or int(count) < 1:
        raise FileFormatError(f"{where}: [Number of Ports]", got=count)
    n = int(count)
    impedance = np.full(n, option["impedance"])
    if "reference" in keywords:
        impedance = _numbers(need("reference"), where)
        if impedance.size != n:
            raise FileFormatError(f"{where}: [Reference] gives {impedance.size} impedances for {n} ports")
    form = keywords.get("matrix format", ["full"])[0].lower()
    values = _numbers(need("network data"), where)
    triangle = n * (n + 1) // 2
    width = 1 + 2 * (n * n if form == "full" else triangle)
    if values.size % width:
        raise FileFormatError(f"{where}: {values.size} values do not divide into frequencies of {width}")
    table = values.reshape(-1, width)
    if "number of frequencies" in keywords and int(keywords["number of frequencies"][0]) != table.shape[0]:
        raise FileFormatError(
            f"{where}: {table.shape[0]} frequencies where [Number of Frequencies] says {keywords['number of frequencies'][0]}"
        )
    if form in ("lower", "upper"):
        pairs = table[:, 1:].reshape(-1, triangle, 2)
        full = np.zeros((table.shape[0], n, n, 2))
        i, j = np.tril_indices(n) if form == "lower" else np.triu_indices(n)
        full[:, i, j] = pairs
        full[:, j, i] = pairs
        table = np.concatenate([table[:, :1], full.reshape(table.shape[0], -1)], axis=1)
    elif form != "full":
        raise FileFormatError(f"{where}: [Matrix Format]", got=form, expected="Full, Lower or Upper")
    order = keywords.get("two-port data order", ["12_21"])[0] if n == 2 else "12_21"
    return _network(table, n, option, impedance, where, order, normalised=False)


def _network(table, n, option, impedance, where, order, normalised) -> Network:
    matrix = _complex(table[:, 1:].reshape(-1, n, n, 2), option["form"])
    if order == "21_12":
        matrix = matrix.transpose(0, 2, 1)
    if normalised and option["kind"] in ("z", "y"):
        matrix = matrix * (option["impedance"] if option["kind"] == "z" else 1 / option["impedance"])
    try:
        return Network(table[:, 0] * option["unit"], matrix, impedance, option["kind"])
    except InputError as error:
        raise FileFormatError(f"{where}: {error.message}") from error


def write_touchstone(network: Network, path: str | Path, *, version: int = 2) -> Path:
    """Write a network: Hz, real and imaginary parts at full precision.

    Raises:
        InputError: a version 1 file of another suffix than its ports, or with different reference impedances.
    """
    path = Path(path)
    n, kind = network.ports, network.kind
    if version not in (1, 2):
        raise InputError("Touchstone version", got=version, expected="1 or 2")
    matrix = network.matrix
    lines = ["! written by sciax"]
    if version == 1:
        if path.suffix.lower() != f".s{n}p":
            raise InputError(f"a version 1 file of {n} ports ends in .s{n}p", got=path.name)
        if np.ptp(network.impedance) > 0:
            raise InputError(
                "version 1 has one reference impedance for all ports", got=network.impedance, remedy="version=2"
            )
        z = float(network.impedance[0])
        matrix = matrix / (z if kind == "z" else 1 / z if kind == "y" else 1.0)
        lines.append(f"# Hz {kind.upper()} RI R {z!r}")
    else:
        lines += [
            "[Version] 2.0",
            f"# Hz {kind.upper()} RI R {float(network.impedance[0])!r}",
            f"[Number of Ports] {n}",
        ]
        if n == 2:
            lines.append("[Two-Port Data Order] 12_21")
        lines += [
            f"[Number of Frequencies] {network.frequency.size}",
            "[Reference] " + " ".join(repr(float(z)) for z in network.impedance),
        ]
        lines.append("[Network Data]")
    if n == 2 and version == 1:
        matrix = matrix.transpose(0, 2, 1)
    for f, m in zip(network.frequency, matrix):
        words = [f"{float(v.real)!r} {float(v.imag)!r}" for v in m.reshape(-1)]
        rows = (
            [words] if n <= 2 else [words[i * n + s : i * n + min(s + 4, n)] for i in range(n) for s in range(0, n, 4)]
        )
        lines.append(f"{float(f)!r} " + " ".join(rows[0]))
        lines += ["  " + " ".join(r) for r in rows[1:]]
    if version == 2:
        lines.append("[End]")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
