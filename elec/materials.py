"""Measured refractive indices from files of the refractiveindex.info database, and their fit by poles."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

from sciax.core.errors import ConvergenceError, FileFormatError, InputError, MissingFileError, UnsupportedError
from sciax.elec._constants import C0
from sciax.elec._media import Lorentz, Medium


def _sellmeier(c, x, square: bool):
    return sum((b * x**2 / (x**2 - (p**2 if square else p)) for b, p in zip(c[1::2], c[2::2])), c[0])


def _powers(c, x):
    return sum((b * x**p for b, p in zip(c[1::2], c[2::2])), c[0])


def _formula(number: int, c: list[float], x: np.ndarray) -> Any:
    """Index at wavelengths x (um) by the numbered dispersion formulas of the database."""
    if number == 1:
        return np.sqrt(1 + _sellmeier(c, x, True))
    if number == 2:
        return np.sqrt(1 + _sellmeier(c, x, False))
    if number == 3:
        return np.sqrt(_powers(c, x))
    if number == 4:
        c = c + [0.0] * (9 - len(c)) if len(c) < 9 else c
        value = c[0] + sum(c[i] * x ** c[i + 1] / (x**2 - c[i + 2] ** c[i + 3]) for i in (1, 5))
        return np.sqrt(value + sum(b * x**p for b, p in zip(c[9::2], c[10::2])))
    if number == 5:
        return _powers(c, x)
    if number == 6:
        return 1 + c[0] + sum(b / (p - x**-2.0) for b, p in zip(c[1::2], c[2::2]))
    raise UnsupportedError(f"dispersion formula {number} is not read", expected="formulas 1 to 6 and tables")


@dataclass(frozen=True, eq=False)
class Index:
    """A refractive index over wavelength.

    Attributes:
        parts: (kind, data, lo, hi): kind "n", "k", "nk" with table columns, or a formula number with coefficients; um.
        name: of the file.
    """

    parts: tuple
    name: str

    @property
    def range(self) -> tuple[float, float]:
        """Wavelengths at which the real part is known (m)."""
        lo, hi = max(p[2] for p in self.parts if p[0] != "k"), min(p[3] for p in self.parts if p[0] != "k")
        return lo * 1e-6, hi * 1e-6

    def __call__(self, wavelength) -> np.ndarray:
        """Complex index n + i k at wavelengths (m); tables are interpolated linearly, nothing is extrapolated.

        Raises:
            InputError: a wavelength outside the range of the data.
        """
        x = np.atleast_1d(np.asarray(wavelength, float)) * 1e6
        out = np.zeros(x.shape, complex)
        for kind, data, lo, hi in self.parts:
            inside = (x >= lo * (1 - 1e-9)) & (x <= hi * (1 + 1e-9))
            if kind != "k" and not np.all(inside):
                raise InputError(
                    f"{self.name}: the index is not known there",
                    got=f"{x[~inside][0]:.6g} um",
                    expected=f"{lo} to {hi} um",
                )
            if isinstance(kind, int):
                out = out + _formula(kind, data, x)
            elif kind == "k":
                out = out + 1j * np.where(inside, np.interp(x, data[:, 0], data[:, 1]), 0.0)
            else:
                out = out + np.interp(x, data[:, 0], data[:, 1])
                if kind == "nk":
                    out = out + 1j * np.interp(x, data[:, 0], data[:, 2])
        return out.reshape(np.shape(wavelength))


def read_index(path: str | Path) -> Index:
    """Read a file of the refractiveindex.info database: tables of n, k, nk and formulas 1 to 6.

    Raises:
        MissingFileError, FileFormatError: no file, or not of this kind. UnsupportedError: another formula, named.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError("no such index file", got=str(path))
    parts: list = []
    entry: dict = {}
    rows: list[str] | None = None

    def close() -> None:
        if not entry:
            return
        kind = entry["type"]
        if kind.startswith("tabulated"):
            try:
                table = np.array([[float(w) for w in r.split()] for r in entry.get("rows", [])])
            except ValueError as error:
                raise FileFormatError(f"{path.name}: a row of the table is not numbers", got=str(error)) from error
            columns = {"n": 2, "k": 2, "nk": 3}.get(kind.split()[-1])
            if columns is None or table.ndim != 2 or table.shape[1] != columns or np.any(np.diff(table[:, 0]) < 0):
                raise FileFormatError(
                    f"{path.name}: the table of {kind!r}", got=table.shape, expected=f"increasing rows of {columns}"
                )
            parts.append((kind.split()[-1], table, table[0, 0], table[-1, 0]))
            return
        match = re.fullmatch(r"formula (\d+)", kind)
        if match is None or not 1 <= int(match.group(1)) <= 6:
            raise UnsupportedError(
                f"{path.name}: data of type {kind!r} are not read", expected="formula 1 to 6, tabulated n, k, nk"
            )
        key = "wavelength_range" if "wavelength_range" in entry else "range"
        try:
            lo, hi = map(float, entry[key].split())
            coefficients = [float(w) for w in entry["coefficients"].split()]
        except (KeyError, ValueError) as error:
            raise FileFormatError(f"{path.name}: range or coefficients of {kind!r}") from error
        parts.append((int(match.group(1)), coefficients, lo, hi))

    inside = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith((" ", "-")):
            inside = line.startswith("DATA:")
            rows = None
            continue
        if not inside:
            continue
        text = line.strip()
        if text.startswith("- type:"):
            close()
            entry, rows = {"type": text.removeprefix("- type:").strip().strip('"')}, None
        elif text.startswith("data:"):
            rows = entry["rows"] = []
        elif rows is not None and text and (text[0].isdigit() or text[0] in "-."):
            rows.append(text)
        elif ":" in text:
            rows = None
            key, _, value = text.partition(":")
            entry[key.strip()] = value.strip()
    close()
    if not parts:
        raise FileFormatError(
            f"{path.name}: no DATA of an index", expected="a file of the refractiveindex.info database"
        )
    if all(p[0] == "k" for p in parts):
        raise FileFormatError(f"{path.name}: only an extinction coefficient, no index")
    return Index(tuple(parts), path.name)


def fit_poles(
    index: Index, band: tuple[float, float], *, poles: int = 3, tolerance: float = 0.02, samples: int = 200
) -> tuple[Medium, float]:
    """Lorentz poles with positive strengths for the permittivity over a band of wavelengths (m).

    Positive strengths and damping make the fit passive at every frequency, not only in the band: it cannot gain energy.

    Returns:
        Medium, and the largest error |eps - fit| / |eps| over the band.

    Raises:
        InputError: band outside the data. ConvergenceError: the error stays above `tolerance`.
    """
    lo, hi = band
    if not 0 < lo < hi:
        raise InputError("band of wavelengths", got=band, expected="0 < low < high (m)")
    w = 2 * np.pi * C0 / np.linspace(lo, hi, samples)
    eps = np.asarray(index(2 * np.pi * C0 / w), complex) ** 2
    if np.any(np.imag(eps) < -1e-9):
        raise InputError(f"{index.name} gains energy in the band", got=float(np.imag(eps).min()))
    unit = w.mean()
    x = w / unit

    def model(p):
        inf, (d, f, g) = 1.0 + np.exp(p[0]), np.exp(p[1:]).reshape(3, poles)
        return inf + sum(d[i] * f[i] ** 2 / (f[i] ** 2 - x**2 - 1j * g[i] * x) for i in range(poles))

    def mismatch(p):
        e = (model(p) - eps) / np.abs(eps)
        return np.concatenate([e.real, e.imag])

    best, history = None, []
    rng = np.random.default_rng(0)
    for attempt in range(12):
        centres = np.geomspace(0.05 if attempt % 2 else 0.5, 3.0, poles) * np.exp(
            0.3 * rng.standard_normal(poles) * (attempt > 1)
        )
        start = np.concatenate([[0.0], np.zeros(poles), np.log(centres), np.log(0.2 * centres)])
        # bounds keep poles within what a time step of a resolved wave can follow
        low = np.concatenate(
            [[-20.0], np.full(poles, -12.0), np.full(poles, np.log(1e-3)), np.full(poles, np.log(1e-6))]
        )
        high = np.concatenate([[4.0], np.full(poles, 14.0), np.full(poles, np.log(6.0)), np.full(poles, np.log(6.0))])
        found = optimize.least_squares(mismatch, start, bounds=(low, high), max_nfev=2000)
        error = float(np.abs((model(found.x) - eps) / eps).max())
        history.append(error)
        if best is None or error < best[0]:
            best = (error, found.x)
        if error < 0.2 * tolerance:
            break
    assert best is not None
    error, p = best
    if error > tolerance:
        raise ConvergenceError(
            f"{index.name}: {poles} poles do not fit the band",
            got=f"largest relative error {error:.3g}",
            expected=f"<= {tolerance}",
            remedy="more poles, a narrower band, or a larger tolerance",
            history=history,
        )
    d, f, g = np.exp(p[1:]).reshape(3, poles)
    terms = tuple(Lorentz(float(d[i]), float(f[i] * unit), float(g[i] * unit)) for i in range(poles))
    return Medium(1.0 + float(np.exp(p[0])), poles=terms), error
