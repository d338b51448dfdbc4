"""Potentials inside ASE."""

import numpy as np

from sciax.chem.potentials import Potential, predict
from sciax.core.errors import optional_import
from sciax.datasets.atoms import from_ase


def ase_calculator(potential: Potential, **kwargs):
    """An ASE calculator of `potential`: energy, free_energy, energies, forces, and stress for bulks.

    Asking for the stress of a molecule or a slab raises `PropertyNotImplementedError`, as ASE's own calculators do.
    Stress in ASE's order xx yy zz yz xz xy, eV/Å³. Any float dtype of the atoms is fine: the potential's own is used.

    Raises:
        MissingDependencyError: ase is not installed.
    """
    base = optional_import("ase.calculators.calculator", "chem")

    class SciaxCalculator(base.Calculator):
        implemented_properties = ("energy", "free_energy", "energies", "forces", "stress")

        def calculate(self, atoms=None, properties=("energy",), system_changes=base.all_changes):
            super().calculate(atoms, properties, system_changes)
            p = predict(potential, from_ase(self.atoms))[0]
            self.results = {
                "energy": p.energy,
                "free_energy": p.energy,
                "energies": p.atomic_energies,
                "forces": np.asarray(p.forces, float),
            }
            if all(p.structure.pbc):
                self.results["stress"] = p.stress[[0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]]
            elif "stress" in properties:
                raise base.PropertyNotImplementedError(
                    "stress is defined for a bulk only, periodic in three directions"
                )

    return SciaxCalculator(**kwargs)
