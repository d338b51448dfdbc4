"""Crystal structures from CIF files, through gemmi."""

import math
from pathlib import Path

import numpy as np

from sciax.core.errors import FileFormatError, MissingFileError, UnsupportedError, optional_import
from sciax.datasets.atoms import Structure


def read_cif(path: str | Path, block: str | None = None) -> Structure:
    """The full unit cell of a CIF file: symmetry applied, images that fall together merged, positions in Å.

    Elements come from the type symbols, and from the labels where there are none. `info` holds the block's name and the
    space group as the file names it.

    Args:
        block: name of the data block; by default the first that holds atoms.

    Raises:
        MissingFileError: no such file.
        FileFormatError: not CIF, no block with atoms, a cell or coordinates that are missing or not numbers, unknown elements.
        UnsupportedError: sites that are partly occupied or shared: which atoms are there is then not settled. The message
            names the first.
    """
    gemmi = optional_import("gemmi", "chem")
    if not Path(path).is_file():
        raise MissingFileError(f"no such file: {path}")
    try:
        document = gemmi.cif.read(str(path))
    except (ValueError, RuntimeError, OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path} is not CIF", got=str(error)[:200]) from None
    found = {b.name: b for b in document if b.find_values("_atom_site_fract_x")}
    if block is not None and block not in found:
        raise FileFormatError(f"{path}: no block {block!r} with atoms", expected=", ".join(found) or "none has atoms")
    if not found:
        raise FileFormatError(f"{path}: no block holds fractional coordinates of atoms", got=[b.name for b in document])
    chosen = found[next(iter(found)) if block is None else block]
    for axis in "xyz":
        values = list(chosen.find_values(f"_atom_site_fract_{axis}"))
        bad = next((k for k, v in enumerate(values) if not math.isfinite(gemmi.cif.as_number(v))), None)
        if bad is not None:
            raise FileFormatError(f"{path}: atom {bad + 1} has no number as its {axis}", got=values[bad])
    for tag in ("_symmetry_Int_Tables_number", "_space_group_IT_number"):
        if quoted := chosen.find_value(tag):  # some programs quote it, and gemmi then takes it for text
            chosen.set_pair(tag, gemmi.cif.as_string(quoted))
    try:
        small = gemmi.make_small_structure_from_block(chosen)
    except (ValueError, RuntimeError) as error:
        raise FileFormatError(
            f"{path}: block {chosen.name!r} is not a crystal structure", got=str(error)[:200]
        ) from None
    cell = np.array(small.cell.orth.mat.tolist()).T
    if not (np.isfinite(cell).all() and small.cell.is_crystal()):
        raise FileFormatError(f"{path}: the cell is missing or not a cell", got=str(small.cell))
    for site in small.sites:
        if site.element.atomic_number == 0:
            raise FileFormatError(f"{path}: {site.label} is of no known element", got=site.type_symbol or site.label)
        # published occupancies are rounded, refined ones may exceed 1 by their error
        if not 0.995 <= site.occ <= 1.01 or site.disorder_group:
            raise UnsupportedError(
                f"{path}: site {site.label} is partly occupied or disordered",
                got=site.occ,
                remedy="choose one of the arrangements and write it as a CIF of its own",
            )
    sites = small.get_all_unit_cell_sites()
    fractional = np.array([s.fract.tolist() for s in sites])
    numbers = np.array([s.element.atomic_number for s in sites], np.int32)
    info = {"block": chosen.name, "space_group": small.spacegroup_hm or "P 1"}
    return Structure(numbers, fractional @ cell, cell, (True, True, True), info=info)
