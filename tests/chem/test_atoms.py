"""Atomistic files: explicit keys, loud failures, units, round trips."""

import numpy as np
import pytest

from sciax.core.errors import FileFormatError, InputError, MissingFileError, ShapeError
from sciax.datasets.atoms import KBAR, Structure, from_ase, from_symbols, read_extxyz, read_mlearn, to_ase, write_extxyz

FRAME = """2
Lattice="3 0 0 0 4 0 0 0 5" Properties=species:S:1:pos:R:3:F_dft:R:3 E_dft=-10.5 note="a b" virial="1 0 0 0 2 0 0 0 3" pbc="T T T"
C 0 0 0 0.1 0.2 0.3
O 1.1 0 0 -0.1 -0.2 -0.3
"""


def write(tmp_path, text=FRAME):
    path = tmp_path / "a.xyz"
    path.write_text(text)
    return path


def test_keys_are_explicit(tmp_path):
    path = write(tmp_path)
    (s,) = read_extxyz(path, energy="E_dft", forces="F_dft", virial="virial")
    assert s.energy == -10.5 and s.symbols == ["C", "O"] and s.pbc == (True, True, True) and s.info["note"] == "a b"
    np.testing.assert_allclose(s.forces[1], [-0.1, -0.2, -0.3])
    np.testing.assert_allclose(s.stress, -np.diag([1, 2, 3]) / 60)
    assert read_extxyz(path, energy=None, forces=None)[0].energy is None
    for kwargs, what in (({"forces": "F_dft"}, "energy"), ({"energy": "E_dft"}, "forces")):
        with pytest.raises(FileFormatError, match=f"no {what} under the key"):
            read_extxyz(path, **kwargs)
    with pytest.raises(FileFormatError, match="E_dft"):  # the message lists what is there
        read_extxyz(path, energy="E_dtf", forces=None)


def test_round_trip(tmp_path):
    rng = np.random.default_rng(0)
    s = Structure(
        np.array([14, 8], np.int32),
        rng.normal(size=(2, 3)),
        np.eye(3) * 4,
        (True, True, False),
        -3.25,
        rng.normal(size=(2, 3)),
        np.eye(3),
    )
    write_extxyz(tmp_path / "b.xyz.gz", [s, s])
    back = read_extxyz(tmp_path / "b.xyz.gz", stress="stress")
    assert len(back) == 2 and back[1].pbc == s.pbc and back[1].energy == s.energy
    np.testing.assert_allclose(back[1].positions, s.positions, atol=1e-9)
    np.testing.assert_allclose(back[1].stress, s.stress)
    molecule = write_extxyz(tmp_path / "c.xyz", Structure(np.array([1], np.int32), np.zeros((1, 3))))
    assert read_extxyz(molecule, energy=None, forces=None)[0].pbc == (False, False, False)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda t: t.replace("2\n", "two\n", 1), "number of atoms"),
        (lambda t: "\n".join(t.splitlines()[:-1]) + "\n", "truncated"),
        (lambda t: t.replace("1.1", "x.y"), "not numeric"),
        (lambda t: t.replace('"3 0 0 0 4 0 0 0 5"', '"3 0 0"'), "Lattice"),
        (lambda t: t.replace('"T T T"', '"T T Q"'), "three of T/F"),
        (lambda t: t.replace("-10.5", "nan"), "not finite"),
        (lambda t: t.replace("pos:R:3", "where:R:3"), "species and pos"),
        (lambda t: "", "no frames"),
    ],
)
def test_broken_files(tmp_path, change, match):
    with pytest.raises(FileFormatError, match=match):
        read_extxyz(write(tmp_path, change(FRAME)), energy="E_dft", forces="F_dft")


def test_unknown_symbol_and_missing_file(tmp_path):
    with pytest.raises(InputError, match="unknown chemical symbol"):
        from_symbols(["Xx"])
    with pytest.raises(MissingFileError):
        read_extxyz(tmp_path / "no.xyz")
    with pytest.raises(ShapeError):
        Structure(np.array([1, 1]), np.zeros((1, 3)))
    (tmp_path / "bad.json").write_text("[{}]")
    with pytest.raises(FileFormatError, match="mlearn"):
        read_mlearn(tmp_path / "bad.json")


def test_constraints_and_calculators_of_ase():
    """Energies sit in a calculator; constraints do not zero the forces read."""
    ase = pytest.importorskip("ase")
    from ase.calculators.emt import EMT
    from ase.constraints import FixAtoms

    atoms = ase.Atoms("Cu2", [[0, 0, 0], [2.3, 0, 0]], constraint=FixAtoms([0]))
    with pytest.raises(InputError, match="no calculator"):
        from_ase(atoms, with_results=True)
    atoms.calc = EMT()
    s = from_ase(atoms, with_results=True)
    assert abs(s.forces[0]).max() > 0.1 and s.stress is None
    assert to_ase(s).get_potential_energy() == s.energy


def test_kbar():
    assert KBAR == pytest.approx(1 / 1602.1766, rel=1e-6)  # eV/Å³


def test_shared_files(shared_data):
    frames = read_extxyz(shared_data / "chem" / "acac_train_300K.xyz")
    assert len(frames) == 500 and len(frames[0]) == 15 and frames[0].energy == -9391.45554428476
    lone = read_extxyz(shared_data / "chem" / "acac_isolated_atoms.xyz", forces=None)
    assert {s.symbols[0]: round(s.energy, 6) for s in lone} == {"H": -13.568422, "C": -1026.8539, "O": -2037.796869}
    silicon = read_mlearn(shared_data / "chem" / "mlearn_Si_test.json.gz")
    assert len(silicon) == 25 and all(s.stress is not None for s in silicon)
