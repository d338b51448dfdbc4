"""Numbers of molecules: graph features, fingerprints, descriptors. None depends on the order of the atoms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sciax.core.errors import InputError, did_you_mean, optional_import
from sciax.science.graph import Graph

_ELEMENTS = (1, 5, 6, 7, 8, 9, 14, 15, 16, 17, 34, 35, 53)
FINGERPRINTS = ("morgan", "morgan-count", "atom-pair", "torsion", "maccs")


@dataclass(frozen=True)
class FeatureOptions:
    """What a graph carries; kept by the model, so that it is applied alike when predicting.

    Attributes:
        stereo: R/S of atoms and E/Z of bonds, by CIP: the same for any way of writing the molecule.
    """

    stereo: bool = True


def _one_hot(value, choices) -> list[float]:
    """One place a choice and one for everything else."""
    return [float(value == c) for c in choices] + [float(value not in choices)]


def molecule_graph(mol, options: FeatureOptions = FeatureOptions()) -> Graph:
    """The heavy-atom graph: every bond as two directed edges. One-atom molecules, salts, charges and isotopes are ordinary.

    Raises:
        InputError: a molecule without atoms.
    """
    chem = optional_import("rdkit.Chem", "chem")
    if mol is None or mol.GetNumAtoms() == 0:
        raise InputError("a molecule without atoms has no graph")
    mol = chem.Mol(mol)
    if options.stereo:
        optional_import("rdkit.Chem.rdCIPLabeler", "chem").AssignCIPLabels(mol)
    atoms = []
    for a in mol.GetAtoms():
        tag = a.GetProp("_CIPCode") if options.stereo and a.HasProp("_CIPCode") else ""
        atoms.append(
            [
                *_one_hot(a.GetAtomicNum(), _ELEMENTS),
                *_one_hot(a.GetTotalDegree(), range(6)),
                *_one_hot(a.GetFormalCharge(), (-2, -1, 0, 1, 2)),
                *_one_hot(int(a.GetTotalNumHs()), range(5)),
                *_one_hot(str(a.GetHybridization()), ("SP", "SP2", "SP3", "SP3D", "SP3D2")),
                float(a.GetIsAromatic()),
                float(a.IsInRing()),
                float(tag in ("R", "r")),
                float(tag in ("S", "s")),
                a.GetMass() * 0.01,
                float(a.GetIsotope() > 0),
                float(a.GetNumRadicalElectrons()),
            ]
        )
    ends, bonds = [], []
    for b in mol.GetBonds():
        cis = b.GetProp("_CIPCode") if options.stereo and b.HasProp("_CIPCode") else ""
        row = [
            *_one_hot(str(b.GetBondType()), ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")),
            float(b.GetIsConjugated()),
            float(b.IsInRing()),
            float(cis in ("E", "e")),
            float(cis in ("Z", "z")),
        ]
        i, j = b.GetBeginAtomIdx(), b.GetEndAtomIdx()
        ends += [(i, j), (j, i)]
        bonds += [row, row]
    pairs = np.array(ends, np.int32).reshape(-1, 2)
    return Graph(
        pairs[:, 0],
        pairs[:, 1],
        {"x": np.array(atoms, np.float32)},
        {"e": np.array(bonds, np.float32).reshape(len(pairs), 9)},
    )


def fingerprints(mols: Sequence, kind: str = "morgan", *, size: int = 2048, radius: int = 2) -> np.ndarray:
    """Fingerprints, one row a molecule: "morgan" (ECFP, diameter 2·radius), "morgan-count", "atom-pair", "torsion", "maccs".

    Raises:
        InputError: an unknown kind.
    """
    if kind not in FINGERPRINTS:
        raise InputError(f"unknown fingerprint {kind!r}", remedy=did_you_mean(kind, FINGERPRINTS))
    if kind == "maccs":
        keys = optional_import("rdkit.Chem.MACCSkeys", "chem")
        return np.array([np.array(keys.GenMACCSKeys(m)) for m in mols], np.float32).reshape(len(mols), -1)
    generators = optional_import("rdkit.Chem.rdFingerprintGenerator", "chem")
    if kind.startswith("morgan"):
        made = generators.GetMorganGenerator(radius=radius, fpSize=size)
    elif kind == "atom-pair":
        made = generators.GetAtomPairGenerator(fpSize=size)
    else:
        made = generators.GetTopologicalTorsionGenerator(fpSize=size)
    one = made.GetCountFingerprintAsNumPy if kind == "morgan-count" else made.GetFingerprintAsNumPy
    return np.array([one(m) for m in mols], np.float32).reshape(len(mols), size)


def descriptors(mols: Sequence) -> tuple[np.ndarray, list[str]]:
    """All descriptors of RDKit and their names; what is undefined for a molecule is 0, huge values are cut at 1e5."""
    table = optional_import("rdkit.Chem.Descriptors", "chem")._descList
    with optional_import("rdkit.rdBase", "chem").BlockLogs():
        rows = [[f(m) for _, f in table] for m in mols]
    values = np.nan_to_num(np.array(rows, float).reshape(len(mols), len(table)), nan=0.0, posinf=1e5, neginf=-1e5)
    return np.clip(values, -1e5, 1e5), [name for name, _ in table]
