"""Unit systems of dynamics: Boltzmann's constant and how a force accelerates a mass."""

from dataclasses import dataclass

ELEMENTARY_CHARGE = 1.602176634e-19  # C, exact (SI 2019)
ATOMIC_MASS = 1.66053906660e-27  # kg, CODATA 2018


@dataclass(frozen=True)
class Units:
    """A system of units.

    Attributes:
        boltzmann: energy per temperature.
        acceleration: acceleration of one unit of mass under one unit of force (length per time squared).
        kinetic: energy of one unit of mass times one unit of velocity squared; 1/acceleration in a consistent system.
        names: of length, energy, time, temperature, mass.
        pressure: factor from energy per volume to the printed unit of pressure, and its name.
    """

    boltzmann: float
    acceleration: float
    names: tuple[str, str, str, str, str]
    pressure: tuple[float, str]

    @property
    def kinetic(self) -> float:
        return 1 / self.acceleration


METAL = Units(
    boltzmann=8.617333262e-5,  # eV/K, CODATA 2018
    acceleration=ELEMENTARY_CHARGE / ATOMIC_MASS * 1e-10,  # eV/(Å amu) in Å/fs²: 9.6485e-3
    names=("angstrom", "eV", "fs", "K", "amu"),
    pressure=(160.21766208, "GPa"),
)
"""Å, eV, fs, K, amu."""

LJ = Units(
    boltzmann=1.0,
    acceleration=1.0,
    names=("sigma", "epsilon", "tau", "epsilon/k", "m"),
    pressure=(1.0, "epsilon/sigma3"),
)
"""Reduced Lennard-Jones units."""
