"""Integrators as two half steps around one force evaluation: `first` moves, `second` ends the step.

One interface, so that the driver decides between the halves whether the neighbour list must be built again.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.chem.md._system import freedoms, kinetic_energy
from sciax.chem.units import Units
from sciax.core.errors import InputError


class Phase(eqx.Module):
    """The moving part of a simulation; `extra` belongs to the integrator."""

    positions: Float[Array, "atoms 3"]
    velocities: Float[Array, "atoms 3"]
    forces: Float[Array, "atoms 3"]
    key: Array
    extra: tuple


class Integrator(eqx.Module):
    """Interface. `bath(phase)` is what must be added to kinetic + potential energy to give the conserved quantity."""

    dt: float = eqx.field(static=True)
    units: Units = eqx.field(static=True)

    @property
    def stochastic(self) -> bool:
        return False

    def freedoms(self, atoms: int) -> int:
        """Degrees of freedom that carry the temperature."""
        return freedoms(atoms)

    def start(self, atoms: int, dtype) -> tuple:
        return ()

    def first(self, p: Phase, masses: Array) -> Phase:
        raise NotImplementedError

    def second(self, p: Phase, masses: Array) -> Phase:
        raise NotImplementedError

    def bath(self, p: Phase) -> Array:
        return jnp.zeros((), p.positions.dtype)

    def __check_init__(self) -> None:
        if not (np.isfinite(self.dt) and self.dt > 0):
            raise InputError("the time step is not positive", got=self.dt, expected="> 0")


def _kick(p: Phase, masses: Array, time: float, units: Units) -> Phase:
    v = p.velocities + (time * units.acceleration) * p.forces / masses[:, None]
    return eqx.tree_at(lambda q: q.velocities, p, v)


def _drift(p: Phase, time: float) -> Phase:
    return eqx.tree_at(lambda q: q.positions, p, p.positions + time * p.velocities)


class NVE(Integrator):
    """Velocity Verlet: second order, symplectic, time reversible. Swope et al., J. Chem. Phys. 76, 637 (1982)."""

    def first(self, p, masses):
        return _drift(_kick(p, masses, self.dt / 2, self.units), self.dt)

    def second(self, p, masses):
        return _kick(p, masses, self.dt / 2, self.units)


class Langevin(Integrator):
    """BAOAB splitting of Langevin dynamics: m dv = F dt - γ m v dt + √(2γ m kT) dW. Samples configurations to high order.

    Args:
        temperature: of the bath.
        friction: γ in 1/time; 1/(100 fs) is gentle, 1/(10 fs) strong, for molecules.

    Source: B. Leimkuhler, C. Matthews, Appl. Math. Res. Express 2013, 34.
    """

    temperature: float = eqx.field(static=True)
    friction: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        if not (self.temperature >= 0 and self.friction > 0):
            raise InputError(
                "Langevin dynamics needs temperature >= 0 and friction > 0", got=(self.temperature, self.friction)
            )

    @property
    def stochastic(self) -> bool:
        return True

    def freedoms(self, atoms):
        return 3 * atoms  # the noise moves the centre of mass too

    def first(self, p, masses):
        p = _drift(_kick(p, masses, self.dt / 2, self.units), self.dt / 2)
        key, draw = jax.random.split(p.key)
        c = np.exp(-self.friction * self.dt)
        kt = self.units.boltzmann * self.temperature * self.units.acceleration
        spread = jnp.sqrt((1 - c * c) * kt / masses)[:, None].astype(p.velocities.dtype)
        v = c * p.velocities + spread * jax.random.normal(draw, p.velocities.shape, p.velocities.dtype)
        return _drift(Phase(p.positions, v, p.forces, key, p.extra), self.dt / 2)

    def second(self, p, masses):
        return _kick(p, masses, self.dt / 2, self.units)


class NoseHoover(Integrator):
    """Nosé-Hoover chain: canonical by extended deterministic dynamics; `bath` makes the conserved energy exact.

    Args:
        temperature: of the bath.
        period: time scale of the thermostat, 50-100 time steps; the masses are Q₁ = g kT τ², Q_k = kT τ².
        length: of the chain.

    Third-order Suzuki-Yoshida splitting of the thermostat. Source: G. J. Martyna et al., Mol. Phys. 87, 1117 (1996).
    """

    temperature: float = eqx.field(static=True)
    period: float = eqx.field(static=True)
    length: int = eqx.field(static=True, default=3)

    def __check_init__(self) -> None:
        if not (self.temperature > 0 and self.period > 0 and self.length >= 1):
            raise InputError(
                "a Nosé-Hoover chain needs temperature, period > 0 and length >= 1",
                got=(self.temperature, self.period, self.length),
            )

    def start(self, atoms, dtype):
        g = freedoms(atoms)
        kt = self.units.boltzmann * self.temperature
        mass = kt * self.period**2 * np.array([g] + [1] * (self.length - 1))
        zero = jnp.zeros(self.length, dtype)
        return zero, zero, jnp.asarray(mass, dtype), jnp.asarray(g, dtype)

    def _push_chain(self, rate, mass, g, twice: Array, h: float, *, reverse: bool) -> Array:
        """Half a step of the chain's rates: from its end to the particles, or (the mirror image) back."""
        kt, n = self.units.boltzmann * self.temperature, self.length
        for k in reversed(range(n)) if reverse else range(n):
            force = (twice - g * kt if k == 0 else mass[k - 1] * rate[k - 1] ** 2 - kt) / mass[k]
            damp = jnp.exp(-rate[k + 1] * h / 4) if k + 1 < n else 1.0
            rate = rate.at[k].set((rate[k] * damp + force * h / 2) * damp)
        return rate

    def _half(self, p: Phase, masses: Array) -> Phase:
        place, rate, mass, g = p.extra
        twice = 2 * kinetic_energy(p.velocities, masses, self.units)
        scale = jnp.ones((), twice.dtype)
        w = 1 / (2 - 2 ** (1 / 3))
        for weight in (w, 1 - 2 * w, w):
            h = weight * self.dt / 2
            rate = self._push_chain(rate, mass, g, twice * scale * scale, h, reverse=True)
            scale = scale * jnp.exp(-rate[0] * h)
            place = place + rate * h
            rate = self._push_chain(rate, mass, g, twice * scale * scale, h, reverse=False)
        return Phase(p.positions, p.velocities * scale, p.forces, p.key, (place, rate, mass, g))

    def first(self, p, masses):
        return _drift(_kick(self._half(p, masses), masses, self.dt / 2, self.units), self.dt)

    def second(self, p, masses):
        return self._half(_kick(p, masses, self.dt / 2, self.units), masses)

    def bath(self, p):
        kt = self.units.boltzmann * self.temperature
        place, rate, mass, g = p.extra
        return jnp.sum(mass * rate**2) / 2 + kt * (g * place[0] + jnp.sum(place[1:]))
