"""CIF: symmetry, traps from users' reports (quoted numbers, uncertainties, labels, occupancies, dots), refusals."""

import numpy as np
import pytest

from sciax.core.errors import FileFormatError, MissingFileError, UnsupportedError
from sciax.datasets.cif import read_cif

pytest.importorskip("gemmi")

SALT = """data_salt
_symmetry_space_group_name_H-M 'F m -3 m'
_symmetry_Int_Tables_number '225'
_cell_length_a 5.640(2)
_cell_length_b 5.640(2)
_cell_length_c 5.640(2)
_cell_angle_alpha 90
_cell_angle_beta 90
_cell_angle_gamma 90
loop_
_atom_site_label
_atom_site_type_symbol
_atom_site_fract_x
_atom_site_fract_y
_atom_site_fract_z
_atom_site_occupancy
Na1 Na1+ 0 0 0 1.000(2)
Cl1 Cl1- 0.5 0.5 0.5 1
"""


def write(folder, text):
    (folder / "a.cif").write_text(text)
    return folder / "a.cif"


def test_symmetry_fills_the_cell(tmp_path):
    """Rock salt: 4 + 4 ions, each with six unlike neighbours at a/2."""
    s = read_cif(write(tmp_path, SALT))
    assert sorted(s.numbers) == [11] * 4 + [17] * 4 and s.pbc == (True,) * 3
    np.testing.assert_allclose(s.cell, 5.64 * np.eye(3), atol=1e-9)
    d = s.positions[s.numbers == 17] - s.positions[s.numbers == 11][0]
    d -= 5.64 * np.round(d / 5.64)
    assert np.isclose(np.linalg.norm(d, axis=1).min(), 2.82)
    assert s.info["space_group"] == "F m -3 m"


def test_cells_that_are_skewed_keep_their_lengths(tmp_path):
    text = SALT.replace("F m -3 m", "P 1").replace("'225'", "1").replace("gamma 90", "gamma 120")
    s = read_cif(write(tmp_path, text))
    a, b, _ = s.cell
    assert len(s) == 2
    assert np.isclose(np.linalg.norm(b), 5.64) and np.isclose(a @ b, -(5.64**2) / 2)


def test_elements_from_labels(tmp_path):
    text = SALT.replace("_atom_site_type_symbol\n", "").replace(" Na1+ ", " ").replace(" Cl1- ", " ")
    assert sorted(set(read_cif(write(tmp_path, text)).numbers)) == [11, 17]


@pytest.mark.parametrize(
    ("old", "new", "error", "match"),
    [
        ("0 0 0 1.000(2)", "0 0 0 0.707(2)", UnsupportedError, "Na1 is partly occupied"),
        ("0.5 0.5 0.5 1", "0.5 . 0.5 1", FileFormatError, "atom 2 has no number as its y"),
        ("Cl1 Cl1-", "Qq1 Qq", FileFormatError, "no known element"),
        ("_atom_site_fract_x", "_atom_site_other_x", FileFormatError, "no block holds"),
        ("_cell_length_a 5.640(2)", "_cell_length_a ?", FileFormatError, "cell is missing"),
        ("data_salt", "salt", FileFormatError, "not CIF"),
    ],
)
def test_refusals(tmp_path, old, new, error, match):
    with pytest.raises(error, match=match):
        read_cif(write(tmp_path, SALT.replace(old, new)))


def test_missing_file_and_block(tmp_path):
    with pytest.raises(MissingFileError):
        read_cif(tmp_path / "none.cif")
    with pytest.raises(FileFormatError, match="no block 'x'"):
        read_cif(write(tmp_path, SALT), "x")


def test_published_files(shared_data):
    """pymatgen's files: oxidation states in the type symbols, 8, 32 and 64 atoms."""
    for name, count in (("mp-18767-LiMnO2", 8), ("mp-1175469-Li9Co7O16", 32), ("amorphous_si64", 64)):
        assert len(read_cif(shared_data / "chem" / f"{name}.cif")) == count
