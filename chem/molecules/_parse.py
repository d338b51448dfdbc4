"""Reading molecules: every row that cannot be read is reported by number, and skipped only where that was asked for."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sciax.core.errors import FileFormatError, InputError, MissingFileError, optional_import
from sciax.datasets.atoms import Structure


@dataclass(frozen=True)
class Molecules:
    """What was read.

    Attributes:
        mols: RDKit molecules.
        rows: the number of each in the input, from 0; use it to pick labels.
        failures: (row, text, reason) of rows that could not be read.
        names: titles of an SDF file.
        properties: data fields of an SDF file, per molecule.
    """

    mols: list[Any]
    rows: np.ndarray
    failures: list[tuple[int, str, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    properties: list[dict[str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.mols)


def _finish(found, failures, on_error: str, what: str, **more) -> Molecules:
    if failures and on_error == "raise":
        shown = "; ".join(f"row {r}: {t!r} ({why})" for r, t, why in failures[:5])
        raise InputError(
            f"{len(failures)} of {len(found) + len(failures)} {what} cannot be read: {shown}",
            remedy="correct them, or on_error='skip' (they are listed in .failures)",
        )
    return Molecules([m for _, m in found], np.array([r for r, _ in found], int), failures, **more)


def parse_smiles(smiles: Iterable[str], *, on_error: str = "raise") -> Molecules:
    """Molecules of SMILES (with or without a CXSMILES tail).

    Args:
        on_error: "raise", or "skip": leave unreadable rows out and list them.

    Raises:
        InputError: a row that cannot be read (on_error="raise"), or another on_error.
    """
    if on_error not in ("raise", "skip"):
        raise InputError(f"unknown on_error={on_error!r}", expected="'raise' or 'skip'")
    chem, log = optional_import("rdkit.Chem", "chem"), optional_import("rdkit.rdBase", "chem")
    found, failures = [], []
    with log.BlockLogs():
        for row, text in enumerate(smiles):
            if not isinstance(text, str) or not text.strip():
                failures.append((row, str(text), "empty"))
                continue
            mol, why = chem.MolFromSmiles(text.strip(), sanitize=False), "not SMILES"
            if mol is not None:
                problems = chem.DetectChemistryProblems(mol)
                if not problems:
                    # read again the ordinary way: sanitised, stereo assigned
                    mol = chem.MolFromSmiles(text.strip())
                    if mol is not None and mol.GetNumAtoms():
                        found.append((row, mol))
                        continue
                else:
                    why = problems[0].Message()
            failures.append((row, text, why))
    return _finish(found, failures, on_error, "SMILES")


def read_sdf(path: str | Path, *, on_error: str = "raise") -> Molecules:
    """Molecules of an SDF file (plain or .gz), with its data fields.

    Raises:
        MissingFileError, FileFormatError; InputError: a record that cannot be read (on_error="raise").
    """
    if on_error not in ("raise", "skip"):
        raise InputError(f"unknown on_error={on_error!r}", expected="'raise' or 'skip'")
    path = Path(path)
    if not path.is_file():
        raise MissingFileError(f"no such file: {path}")
    chem, log = optional_import("rdkit.Chem", "chem"), optional_import("rdkit.rdBase", "chem")
    import gzip

    found, failures, names, properties = [], [], [], []
    with log.BlockLogs(), gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as handle:
        for row, mol in enumerate(chem.ForwardSDMolSupplier(handle)):
            if mol is None or not mol.GetNumAtoms():
                failures.append((row, "", "not a valid record"))
                continue
            found.append((row, mol))
            names.append(mol.GetProp("_Name") if mol.HasProp("_Name") else "")
            properties.append(mol.GetPropsAsDict(autoConvertStrings=False))
    if not found and not failures:
        raise FileFormatError(f"{path}: no records in this file", expected="an SDF file")
    return _finish(found, failures, on_error, "records", names=names, properties=properties)


def conformer(mol, *, seed: int = 0) -> Structure:
    """A three-dimensional structure with hydrogens: ETKDG (Riniker & Landrum 2015), then the MMFF94 force field.

    Raises:
        InputError: no conformer was found.
    """
    chem, all_chem = optional_import("rdkit.Chem", "chem"), optional_import("rdkit.Chem.AllChem", "chem")
    full = chem.AddHs(mol)
    params = all_chem.ETKDGv3()
    params.randomSeed = seed
    if all_chem.EmbedMolecule(full, params) != 0:
        raise InputError("no conformer was found", got=chem.MolToSmiles(mol), remedy="another seed")
    if all_chem.MMFFHasAllMoleculeParams(full):
        all_chem.MMFFOptimizeMolecule(full, maxIters=500)
    numbers = np.array([a.GetAtomicNum() for a in full.GetAtoms()], np.int32)
    return Structure(numbers, full.GetConformer().GetPositions())
