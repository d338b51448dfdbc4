"""What moves: positions, masses, cell; initial velocities; the force-field interface."""

from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.chem.units import Units
from sciax.core.errors import InputError, ShapeError
from sciax.core.ops.neighbours import NeighbourList
from sciax.datasets.atoms import Structure


class ForceField(Protocol):
    """Anything that turns positions and a neighbour list into per-atom energies, forces and dE/d(strain)."""

    @property
    def cutoff(self) -> float: ...

    def prepare(self, neighbours: NeighbourList, cell: Array) -> Any: ...

    def evaluate(
        self, positions: Array, cell: Array, neighbours: NeighbourList, prepared: Any
    ) -> tuple[Array, Array, Array]: ...


class System(eqx.Module):
    """Atoms in a cell.

    Attributes:
        positions, velocities: (atoms, 3); positions are never wrapped, so that displacements stay meaningful.
        masses: (atoms,).
        cell: lattice vectors in rows.
        pbc: periodicity.
        numbers: atomic numbers for trajectory files; zeros for model systems.
    """

    positions: Float[Array, "atoms 3"]
    velocities: Float[Array, "atoms 3"]
    masses: Float[Array, " atoms"]
    cell: Float[Array, "3 3"]
    pbc: tuple[bool, bool, bool] = eqx.field(static=True)
    numbers: tuple[int, ...] = eqx.field(static=True)

    @property
    def atoms(self) -> int:
        return self.positions.shape[0]


def make_system(positions, masses=1.0, *, cell=None, pbc=False, velocities=None, numbers=None, dtype=None) -> System:
    """A checked `System`; dtype follows `positions` unless given.

    Raises:
        ShapeError, InputError: arrays that do not fit, masses that are not positive, positions that are not finite.
    """
    positions = jnp.asarray(positions, dtype)
    if not jnp.issubdtype(positions.dtype, jnp.floating):
        positions = positions.astype(float)
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise ShapeError("positions are not of shape (atoms, 3)", got=positions.shape, expected="(atoms, 3)")
    n, dtype = positions.shape[0], positions.dtype
    host = (
        np.broadcast_to(np.asarray(masses, float), (n,)) if np.ndim(masses) < 2 and np.size(masses) in (1, n) else None
    )
    if host is None:
        raise ShapeError("masses do not fit the atoms", got=np.shape(masses), expected=(n,))
    if not (np.isfinite(host).all() and (host > 0).all()):
        raise InputError("a mass is not positive", got=float(np.min(host)), expected="> 0")
    velocities = jnp.zeros((n, 3), dtype) if velocities is None else jnp.asarray(velocities, dtype)
    if velocities.shape != (n, 3):
        raise ShapeError("velocities do not fit the atoms", got=velocities.shape, expected=(n, 3))
    if not (np.isfinite(np.asarray(positions)).all() and np.isfinite(np.asarray(velocities)).all()):
        raise InputError("positions or velocities are not finite")
    flags = (bool(pbc),) * 3 if isinstance(pbc, bool) else tuple(map(bool, pbc))
    cell = jnp.zeros((3, 3), dtype) if cell is None else jnp.asarray(cell, dtype)
    if any(flags) and not np.asarray(cell).any():
        raise InputError("a periodic system without a cell", got=f"pbc={flags}", remedy="cell=...")
    numbers = (0,) * n if numbers is None else tuple(int(z) for z in numbers)
    return System(positions, velocities, jnp.asarray(host, dtype), cell, flags, numbers)  # pyright: ignore


def from_structure(structure: Structure, *, dtype=None) -> System:
    """A system at rest with standard atomic weights."""
    return make_system(
        structure.positions,
        structure.masses,  # pyright: ignore
        cell=structure.cell,
        pbc=structure.pbc,  # pyright: ignore
        numbers=structure.numbers,
        dtype=dtype,
    )


def maxwell_velocities(system: System, temperature: float, key: Array, units: Units, *, exact: bool = True) -> System:
    """Maxwell-Boltzmann velocities without net momentum; `exact` rescales them to the temperature (3N - 3 freedoms).

    Raises:
        InputError: a negative temperature.
    """
    if not (np.isfinite(temperature) and temperature >= 0):
        raise InputError("a temperature is not negative", got=temperature, expected=">= 0")
    n = system.atoms
    noise = jax.random.normal(key, (n, 3), system.positions.dtype)
    scale = jnp.sqrt(units.boltzmann * temperature * units.acceleration / system.masses)[:, None]
    v = noise * scale
    v = v - jnp.sum(v * system.masses[:, None], 0) / jnp.sum(system.masses)
    if exact and n > 1 and temperature > 0:
        now = 2 * kinetic_energy(v, system.masses, units) / (freedoms(n) * units.boltzmann)
        v = v * jnp.sqrt(temperature / now)
    return eqx.tree_at(lambda s: s.velocities, system, v.astype(system.positions.dtype))


def freedoms(atoms: int) -> int:
    """Degrees of freedom with the centre of mass at rest."""
    return max(3 * atoms - 3, 1)


def kinetic_energy(velocities: Array, masses: Array, units: Units) -> Array:
    """½ Σ m v² in units of energy."""
    return units.kinetic * jnp.sum(masses[:, None] * velocities * velocities) / 2
