"""Atomistic data: structures with energies and forces, extended XYZ with explicit keys, mlearn JSON.

Keys are explicit because files disagree: a loader that guesses trains on nothing and says so nowhere. A quantity that was
asked for and is not in the file is an error that lists the keys that are.
"""

import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from sciax.core.errors import FileFormatError, InputError, MissingFileError, ShapeError, did_you_mean
from sciax.datasets.elements import MASSES, NUMBERS, SYMBOLS

KBAR = 1e8 / 1.602176634e11  # eV/Å³ for 1 kbar: 1e8 Pa · 1e-30 m³/Å³ / 1.602176634e-19 J/eV


@dataclass(frozen=True)
class Structure:
    """Atoms with what was computed for them. Lengths in Å, energies in eV, forces in eV/Å, stress in eV/Å³ (tensile positive).

    Attributes:
        numbers: atomic numbers, (atoms,).
        positions: (atoms, 3).
        cell: lattice vectors in rows; zeros for a molecule.
        pbc: periodicity of the three directions.
        energy, forces, stress: None where unknown; stress is the symmetric 3x3 tensor (1/V) dE/dε.
        info: everything else of the frame's header.
    """

    numbers: np.ndarray
    positions: np.ndarray
    cell: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    pbc: tuple[bool, bool, bool] = (False, False, False)
    energy: float | None = None
    forces: np.ndarray | None = None
    stress: np.ndarray | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if np.shape(self.positions) != (len(self.numbers), 3):
            raise ShapeError(
                "positions do not fit the atoms", got=np.shape(self.positions), expected=(len(self.numbers), 3)
            )
        if np.shape(self.cell) != (3, 3):
            raise ShapeError("the cell is not a matrix of three row vectors", got=np.shape(self.cell), expected=(3, 3))
        if self.forces is not None and np.shape(self.forces) != np.shape(self.positions):
            raise ShapeError(
                "forces do not fit the atoms", got=np.shape(self.forces), expected=np.shape(self.positions)
            )
        if len(self.numbers) and not (0 <= np.min(self.numbers) and np.max(self.numbers) < len(SYMBOLS)):
            raise InputError("an atomic number outside the periodic table", got=np.unique(self.numbers).tolist())

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def symbols(self) -> list[str]:
        return [SYMBOLS[z] for z in self.numbers]

    @property
    def masses(self) -> np.ndarray:
        """Standard atomic weights in amu, float64."""
        return np.asarray(MASSES)[np.asarray(self.numbers)]

    @property
    def volume(self) -> float:
        return float(abs(np.linalg.det(self.cell)))


def from_symbols(symbols: Iterable[str]) -> np.ndarray:
    """Atomic numbers of chemical symbols.

    Raises:
        InputError: an unknown symbol.
    """
    out = []
    for s in symbols:
        if s not in NUMBERS:
            raise InputError(f"unknown chemical symbol {s!r}", remedy=did_you_mean(s, SYMBOLS[1:]))
        out.append(NUMBERS[s])
    return np.array(out, np.int32)


_PAIR = re.compile(r"""([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|\{([^}]*)\}|(\S+))|(\S+)""")


def _header(line: str) -> dict[str, str]:
    found = {}
    for key, *values, bare in _PAIR.findall(line):
        if bare:
            found[bare] = "T"
        else:
            found[key] = next((v for v in values if v), "")
    return found


def _flags(text: str, where: str) -> tuple[bool, bool, bool]:
    words = text.replace(",", " ").split()
    table = {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}
    try:
        a, b, c = (table[w.lower()] for w in words)
    except (KeyError, ValueError):
        raise FileFormatError(f"{where}: pbc is not three of T/F", got=text) from None
    return a, b, c


def _floats(text: str, count: int, what: str, where: str) -> np.ndarray:
    try:
        values = np.array(text.split(), float)
    except ValueError:
        raise FileFormatError(f"{where}: {what} is not a list of numbers", got=text) from None
    if values.size != count:
        raise FileFormatError(f"{where}: {what} has {values.size} numbers", got=text, expected=f"{count} numbers")
    return values


def _open(path: str | Path, mode: str = "rt") -> TextIO:
    path = Path(path)
    if "r" in mode and not path.is_file():
        raise MissingFileError(f"no such file: {path}")
    return gzip.open(path, mode) if path.suffix == ".gz" else open(path, mode)  # type: ignore[return-value]


def read_extxyz(
    path: str | Path,
    *,
    energy: str | None = "energy",
    forces: str | None = "forces",
    stress: str | None = None,
    virial: str | None = None,
    limit: int | None = None,
) -> list[Structure]:
    """Frames of an extended XYZ file (plain or .gz).

    Args:
        energy, forces: names of the header entry (eV) and of the per-atom column (eV/Å). None: not wanted. A name given
            here must be in every frame.
        stress: header entry, nine numbers, eV/Å³, tensile positive.
        virial: header entry, nine numbers, eV, the negative of volume times stress.
        limit: read so many frames at most.

    Raises:
        MissingFileError: no such file.
        FileFormatError: not extended XYZ, or a wanted quantity is not in a frame (the message lists what is).
    """
    frames: list[Structure] = []
    with _open(path) as handle:
        while limit is None or len(frames) < limit:
            line = handle.readline()
            if not line.strip():
                if not line or not handle.readline().strip():
                    break
                raise FileFormatError(f"{path}: blank line inside, before frame {len(frames)}")
            where = f"{path}, frame {len(frames)}"
            try:
                n = int(line)
            except ValueError:
                raise FileFormatError(
                    f"{where}: does not begin with a number of atoms", got=line.strip()[:60]
                ) from None
            head = _header(handle.readline())
            rows = [handle.readline().split() for _ in range(n)]
            frames.append(_frame(head, rows, where, energy, forces, stress, virial))
    if not frames:
        raise FileFormatError(f"{path}: no frames in this file", expected="extended XYZ")
    return frames


def _frame(head, rows, where, energy, forces, stress, virial) -> Structure:
    columns, at = {}, 0
    layout = head.pop("Properties", "species:S:1:pos:R:3").split(":")
    if len(layout) % 3:
        raise FileFormatError(f"{where}: Properties is not name:type:count triples", got=":".join(layout))
    for name, kind, width in zip(*(layout[k::3] for k in range(3))):
        columns[name] = (kind, slice(at, at + int(width)))
        at += int(width)
    for k, row in enumerate(rows):
        if len(row) < at:
            raise FileFormatError(
                f"{where}: atom line {k + 1} has {len(row)} columns (a truncated file?)", expected=f"{at}"
            )

    def column(name: str, count: int) -> np.ndarray:
        _, where_ = columns[name]
        try:
            values = np.array([row[where_] for row in rows], float).reshape(len(rows), -1)
        except ValueError:
            raise FileFormatError(f"{where}: column {name!r} is not numeric") from None
        if values.shape[1] != count:
            raise FileFormatError(f"{where}: column {name!r} has {values.shape[1]} entries", expected=str(count))
        return values

    if "pos" not in columns or not ({"species", "Z"} & set(columns)):
        raise FileFormatError(f"{where}: no species and pos columns", got=", ".join(columns))
    if "species" in columns:
        species = [row[columns["species"][1].start] for row in rows]
        numbers = np.array(species, np.int32) if species and species[0].isdigit() else from_symbols(species)
    else:
        numbers = column("Z", 1)[:, 0].astype(np.int32)

    def wanted(key: str, what: str, available: Iterable[str]) -> None:
        if key not in available:
            raise FileFormatError(
                f"{where}: no {what} under the key {key!r}",
                remedy=f"{did_you_mean(key, available)}; or pass {what}=None if it is not wanted",
            )

    cell = _floats(head.pop("Lattice"), 9, "Lattice", where).reshape(3, 3) if "Lattice" in head else np.zeros((3, 3))
    pbc = _flags(head.pop("pbc"), where) if "pbc" in head else (bool(cell.any()),) * 3
    values: dict[str, Any] = {}
    if energy is not None:
        wanted(energy, "energy", head)
        values["energy"] = float(_floats(head.pop(energy), 1, "energy", where)[0])
    if forces is not None:
        wanted(forces, "forces", columns)
        values["forces"] = column(forces, 3)
    if stress is not None and virial is not None:
        raise InputError("give stress or virial, not both")
    if stress is not None:
        wanted(stress, "stress", head)
        values["stress"] = _floats(head.pop(stress), 9, "stress", where).reshape(3, 3)
    if virial is not None:
        wanted(virial, "virial", head)
        volume = abs(np.linalg.det(cell))
        if not all(pbc) or volume == 0:
            raise FileFormatError(f"{where}: a virial needs a cell periodic in three directions", got=f"pbc={pbc}")
        values["stress"] = -_floats(head.pop(virial), 9, "virial", where).reshape(3, 3) / volume
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise FileFormatError(f"{where}: {name} is not finite")
    return Structure(numbers, column("pos", 3), cell, pbc, info=head, **values)  # pyright: ignore


def write_extxyz(path: str | Path, frames: Structure | Sequence[Structure], *, append: bool = False) -> Path:
    """Write frames as extended XYZ, energies as `energy`, forces as `forces`, stress as `stress` (nine numbers)."""
    frames = [frames] if isinstance(frames, Structure) else frames
    with _open(path, "at" if append else "wt") as out:
        for s in frames:
            head = []
            if np.any(s.cell):
                head.append('Lattice="' + " ".join(f"{v:.12g}" for v in np.ravel(s.cell)) + '"')
            head.append("Properties=species:S:1:pos:R:3" + (":forces:R:3" if s.forces is not None else ""))
            if s.energy is not None:
                head.append(f"energy={s.energy:.15g}")
            if s.stress is not None:
                head.append('stress="' + " ".join(f"{v:.12g}" for v in np.ravel(s.stress)) + '"')
            head += [f'{k}="{v}"' if re.search(r"\s", str(v)) else f"{k}={v}" for k, v in s.info.items()]
            head.append('pbc="' + " ".join("FT"[int(p)] for p in s.pbc) + '"')
            out.write(f"{len(s)}\n{' '.join(head)}\n")
            data = s.positions if s.forces is None else np.concatenate([s.positions, s.forces], axis=1)
            for symbol, row in zip(s.symbols, np.asarray(data)):
                out.write(symbol + " " + " ".join(f"{v:.10f}" for v in row) + "\n")
    return Path(path)


def read_mlearn(path: str | Path) -> list[Structure]:
    """Structures of an mlearn data file (Zuo et al., J. Phys. Chem. A 124, 731 (2020)): energies, forces, stresses.

    Its `virial_stress` is VASP's: kbar, order xx yy zz xy yz zx, compressive positive; it becomes eV/Å³, tensile positive.
    """
    with _open(path) as handle:
        try:
            rows = json.load(handle)
        except json.JSONDecodeError as error:
            raise FileFormatError(f"{path}: not JSON", got=str(error)) from None
    out = []
    for k, row in enumerate(rows):
        try:
            sites = row["structure"]["sites"]
            numbers = from_symbols(s["species"][0]["element"] for s in sites)
            positions = np.array([s["xyz"] for s in sites], float)
            cell = np.array(row["structure"]["lattice"]["matrix"], float)
            data = row["outputs"]
            xx, yy, zz, xy, yz, zx = data["virial_stress"]
            stress = -KBAR * np.array([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]])
            forces = np.array(data["forces"], float)
            energy = float(data["energy"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise FileFormatError(f"{path}, entry {k}: not an mlearn record", got=repr(error)) from None
        info = {key: row[key] for key in ("group", "tag") if key in row}
        out.append(Structure(numbers, positions, cell, (True,) * 3, energy, forces, stress, info))  # pyright: ignore
    return out


def from_ase(atoms, *, with_results: bool = False) -> Structure:
    """A `Structure` from an ase.Atoms; `with_results` also takes energy, forces (and stress, if offered) of its calculator."""
    s = Structure(
        np.asarray(atoms.numbers, np.int32),
        np.asarray(atoms.positions, float),
        np.asarray(atoms.cell.array),
        tuple(map(bool, atoms.pbc)),  # pyright: ignore
    )
    if not with_results:
        return s
    if atoms.calc is None:
        raise InputError("these atoms carry no calculator, so there are no energies to take")
    stress = atoms.get_stress(voigt=False) if all(s.pbc) and "stress" in atoms.calc.implemented_properties else None
    return replace(
        s,
        energy=float(atoms.get_potential_energy()),
        forces=np.asarray(atoms.get_forces(apply_constraint=False)),
        stress=stress,
    )


def to_ase(structure: Structure):
    """An ase.Atoms with the structure's cell, and a SinglePointCalculator where energies are known."""
    from sciax.core.errors import optional_import

    ase = optional_import("ase", "chem")
    atoms = ase.Atoms(numbers=structure.numbers, positions=structure.positions, cell=structure.cell, pbc=structure.pbc)
    if structure.energy is not None or structure.forces is not None:
        single = optional_import("ase.calculators.singlepoint", "chem").SinglePointCalculator
        atoms.calc = single(atoms, energy=structure.energy, forces=structure.forces)
    return atoms
