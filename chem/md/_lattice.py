"""Starting configurations of model systems."""

import numpy as np

from sciax.chem.md._system import System, make_system
from sciax.core.errors import InputError

_FCC = np.array([[0, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])


def fcc_lattice(repeats: int, density: float, *, dtype=None) -> System:
    """4·repeats³ atoms of unit mass on a face-centred cubic lattice of the given number density, at rest.

    Raises:
        InputError: repeats < 1 or a density that is not positive.
    """
    if repeats < 1 or not density > 0:
        raise InputError("a lattice needs repeats >= 1 and density > 0", got=(repeats, density))
    a = (4 / density) ** (1 / 3)
    corner = np.stack(np.meshgrid(*[np.arange(repeats)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    return make_system(((corner + _FCC) * a).reshape(-1, 3), cell=np.eye(3) * a * repeats, pbc=True, dtype=dtype)
