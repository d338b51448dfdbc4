"""The driver: compiled blocks of steps, neighbour lists rebuilt inside, an overflow redone with a larger list."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sciax.chem.md._integrators import Integrator, Phase
from sciax.chem.md._system import ForceField, System, kinetic_energy
from sciax.core.errors import ConvergenceError, FileFormatError, InputError, MissingFileError
from sciax.core.ops.neighbours import NeighbourList

COLUMNS = ("potential", "kinetic", "conserved", "temperature", "pressure")


@dataclass(frozen=True)
class Frame:
    """What observers and writers get: host arrays at the end of a block."""

    step: int
    time: float
    positions: np.ndarray
    velocities: np.ndarray
    forces: np.ndarray
    potential: float
    system: System


class Observer(Protocol):
    """Called once for each frame: a trajectory writer, an observable."""

    def __call__(self, frame: Frame) -> None: ...


@dataclass(frozen=True)
class Snapshot:
    """All that a simulation needs to go on, bit for bit: `save`, `load`, and pass to `simulate`.

    `room` is the size of the neighbour list (capacity, width, bins, reach, atoms per bin): another size could sum forces in
    another order.
    """

    phase: Phase
    step: int
    room: tuple[int, ...]

    def save(self, path: str | Path) -> Path:
        """Write as .npz (arrays only, nothing pickled)."""
        p = self.phase
        extra = {f"extra_{k}": np.asarray(a) for k, a in enumerate(p.extra)}
        key = np.asarray(jax.random.key_data(p.key))
        path = Path(path)
        with open(path, "wb") as out:
            np.savez(
                out,
                positions=p.positions,
                velocities=p.velocities,
                forces=p.forces,
                key=key,
                step=self.step,
                room=self.room,
                **extra,  # pyright: ignore
            )
        return path

    @staticmethod
    def load(path: str | Path) -> "Snapshot":
        """Read a file written by `save`.

        Raises:
            MissingFileError, FileFormatError.
        """
        if not Path(path).is_file():
            raise MissingFileError(f"no such file: {path}")
        try:
            with np.load(path, allow_pickle=False) as z:
                extra = tuple(jnp.asarray(z[f"extra_{k}"]) for k in range(sum(n.startswith("extra_") for n in z.files)))
                arrays = [jnp.asarray(z[n]) for n in ("positions", "velocities", "forces")]
                phase = Phase(*arrays, jax.random.wrap_key_data(jnp.asarray(z["key"])), extra)  # pyright: ignore
                return Snapshot(phase, int(z["step"]), tuple(map(int, z["room"])))
        except (ValueError, KeyError, OSError) as error:
            raise FileFormatError(f"{path} is not a snapshot of a simulation", got=str(error)) from None


@dataclass(frozen=True)
class MDResult:
    """Series of a simulation, one entry a step, in the integrator's units, and its end.

    Attributes:
        step: step numbers.
        time: times.
        potential, kinetic, conserved, temperature, pressure: per step; pressure is NaN-free: None unless periodic in three
            directions.
        rebuilds: how often the neighbour list was built.
        capacity: of the list at the end.
        snapshot: to go on from.
        system: with the final positions and velocities.
    """

    step: np.ndarray
    time: np.ndarray
    potential: np.ndarray
    kinetic: np.ndarray
    conserved: np.ndarray
    temperature: np.ndarray
    pressure: np.ndarray | None
    rebuilds: int
    capacity: int
    snapshot: Snapshot
    system: System

    @property
    def drift(self) -> float:
        """Slope of the conserved quantity per atom, by least squares, times the length of the run."""
        t = self.step - self.step.mean()
        if len(t) < 2:
            return 0.0
        slope = float(t @ (self.conserved - self.conserved.mean()) / (t @ t))
        return slope * float(self.step[-1] - self.step[0]) / self.system.atoms


def _scalars(p: Phase, energies: Array, strain: Array, system: System, integrator: Integrator, base: Array) -> Array:
    units, n = integrator.units, system.atoms
    potential = jnp.sum(energies)
    kinetic = kinetic_energy(p.velocities, system.masses, units)
    temperature = 2 * kinetic / (integrator.freedoms(n) * units.boltzmann)
    volume = jnp.abs(jnp.linalg.det(system.cell))
    pressure = (2 * kinetic - jnp.trace(strain)) / (3 * jnp.where(volume > 0, volume, 1))
    return jnp.stack([potential, kinetic, potential + kinetic + integrator.bath(p), temperature, pressure])


@eqx.filter_jit
def _block(
    p: Phase, nl: NeighbourList, system: System, field: ForceField, integrator: Integrator, steps: Array, room: int
):
    """`steps` <= `room` steps. `p` enters and leaves between steps; a flagged list makes the result worthless."""
    cell, masses = system.cell, system.masses
    zero = jnp.zeros((), p.positions.dtype)

    def step(carry):
        p, nl, prepared, i, log, _ = carry
        energies, forces, strain = field.evaluate(p.positions, cell, nl, prepared)
        p = integrator.second(eqx.tree_at(lambda q: q.forces, p, forces), masses)
        log = log.at[i].set(_scalars(p, energies, strain, system, integrator, zero))
        ahead = integrator.first(p, masses)
        last = i + 1 >= steps
        p = jax.tree.map(lambda a, b: _pick(last, a, b), p, ahead)
        return p, nl, prepared, i + 1, log, jnp.asarray(False)

    def usable(carry):
        p, nl, _, i, _, fresh = carry
        return (i < steps) & (fresh | ~nl.stale(p.positions)) & ~nl.overflowed

    # A loop inside a loop rather than a conditional rebuild at each step: a conditional copies the list every time.
    def segment(carry):
        p, nl, i, log, built = carry
        nl = nl.update(p.positions, cell, on_overflow="flag")
        prepared = field.prepare(nl, cell)
        p, nl, _, i, log, _ = jax.lax.while_loop(usable, step, (p, nl, prepared, i, log, jnp.asarray(True)))
        return p, nl, i, log, built + 1

    log = jnp.zeros((room, len(COLUMNS)), p.positions.dtype)
    start = (integrator.first(p, masses), nl, jnp.int32(0), log, jnp.int32(0))
    p, nl, _, log, built = jax.lax.while_loop(lambda c: (c[2] < steps) & ~c[1].overflowed, segment, start)
    return p, nl, log, built


def _pick(condition, a, b):
    """`where` that also takes random keys."""
    if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        data = jnp.where(condition, jax.random.key_data(a), jax.random.key_data(b))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(a))
    return jnp.where(condition, a, b)


@eqx.filter_jit
def _evaluate(positions, nl, system, field):
    return field.evaluate(positions, system.cell, nl, field.prepare(nl, system.cell))


def simulate(
    system: System,
    field: ForceField,
    integrator: Integrator,
    steps: int,
    *,
    key: Array | None = None,
    snapshot: Snapshot | None = None,
    block: int = 100,
    skin: float | None = None,
    observers: Sequence[Observer] = (),
    progress: Callable[[int], Any] | None = None,
    headroom: float = 1.25,
) -> MDResult:
    """Run `steps` steps of molecular dynamics.

    Args:
        system: the start; its velocities are used.
        field: forces; see `ForceField`.
        integrator: `NVE`, `Langevin` or `NoseHoover`.
        key: for stochastic integrators.
        snapshot: go on from here instead of from `system`'s positions and velocities. With the same `block`, a run split at
            a multiple of `block` equals the unsplit one bit for bit.
        block: steps compiled into one call; observers see the end of each. The list is rebuilt at each block's start.
        skin: extra reach of the neighbour list; by default 0.12 of the cutoff.
        observers: called with a `Frame` at the start and after each block.
        progress: called with the number of steps just done.

    Raises:
        InputError: bad arguments, a stochastic integrator without a key.
        ConvergenceError: energies that are not finite (an exploded simulation), naming the step.
    """
    if steps < 0 or block < 1:
        raise InputError("steps and block are counts", got=(steps, block), expected="steps >= 0, block >= 1")
    if system.atoms == 0:
        raise InputError("a system without atoms")
    if key is None:
        if integrator.stochastic and snapshot is None:
            raise InputError("this integrator draws random numbers", remedy="simulate(..., key=jax.random.key(seed))")
        key = jax.random.key(0)
    dtype = system.positions.dtype
    skin = 0.12 * field.cutoff if skin is None else skin
    lists = _lists(field, system, field.cutoff + skin)
    build = functools.partial(lists.build, cell=system.cell, pbc=system.pbc, cutoff=field.cutoff, skin=skin)
    if snapshot is None:
        nl = build(system.positions, headroom=headroom)
        _, forces, _ = _evaluate(system.positions, nl, system, field)
        phase, done = Phase(system.positions, system.velocities, forces, key, integrator.start(system.atoms, dtype)), 0
    else:
        phase, done = snapshot.phase, snapshot.step
        if phase.positions.shape != system.positions.shape or phase.positions.dtype != dtype:
            raise InputError(
                "the snapshot belongs to another system",
                got=(phase.positions.shape, phase.positions.dtype.name),
                expected=(system.positions.shape, dtype.name),
            )
        if len(snapshot.room) != len(lists.ROOM):
            raise InputError(
                "the snapshot was written with another kind of neighbour list, and would not go on bit for bit",
                got=snapshot.room,
                remedy="the machine (and the build of sciax) it was written with, or a start from its positions",
            )
        nl = lists.template(
            phase.positions, system.cell, system.pbc, cutoff=field.cutoff, skin=skin, room=snapshot.room
        )
    end, start = done + steps, done
    rows: list[np.ndarray] = []
    rebuilds = 0
    if snapshot is None and observers:
        energies = _evaluate(phase.positions, nl, system, field)[0]
        _tell(observers, done, phase, float(jnp.sum(energies)), system, integrator)
    while done < end:
        count = min(block, end - done)
        after, new, log, built = _block(phase, nl, system, field, integrator, jnp.int32(count), block)
        if bool(new.overflowed):
            if int(new.count) < 0:
                raise ConvergenceError(
                    f"positions are no longer finite between steps {done} and {done + count}", remedy=_REMEDY
                )
            # the block is thrown away and done again with room for what it met
            nl = new.grown(new.reference)
            continue
        log = np.asarray(log[:count], np.float64)
        bad = np.flatnonzero(~np.isfinite(log[:, :4]).all(1))
        if len(bad):
            raise ConvergenceError(
                f"the energy is not finite at step {done + int(bad[0]) + 1}",
                history=log[: bad[0], 2].tolist(),
                remedy=_REMEDY,
            )
        phase, nl, done, rebuilds = after, new, done + count, rebuilds + int(built)
        rows.append(log)
        if observers:
            _tell(observers, done, phase, float(log[-1, 0]), system, integrator)
        if progress is not None:
            progress(count)
    log = np.concatenate(rows) if rows else np.zeros((0, len(COLUMNS)))
    number = np.arange(start + 1, end + 1)
    final = eqx.tree_at(lambda s: (s.positions, s.velocities), system, (phase.positions, phase.velocities))
    series: dict[str, Any] = dict(zip(COLUMNS, log.T))
    if not all(system.pbc):
        series["pressure"] = None  # undefined without a volume
    return MDResult(
        number,
        number * integrator.dt,
        **series,
        rebuilds=rebuilds,
        capacity=nl.capacity,
        snapshot=Snapshot(phase, done, nl.room),
        system=final,
    )


def _lists(field: ForceField, system: System, reach: float):
    """The kind of list a force field wants for this system (`field.lists(cell, pbc, reach, atoms)`), `NeighbourList` else."""
    choose = getattr(field, "lists", None)
    return NeighbourList if choose is None else choose(system.cell, system.pbc, reach, system.atoms)


_REMEDY = "a smaller time step, a relaxed start (chem.relax), or a potential that knows these configurations"


def _tell(observers, step: int, p: Phase, potential: float, system: System, integrator: Integrator) -> None:
    if not math.isfinite(potential):
        raise ConvergenceError(f"the potential energy is not finite at step {step}", remedy=_REMEDY)
    positions, velocities, forces = (np.asarray(a) for a in (p.positions, p.velocities, p.forces))
    frame = Frame(step, step * integrator.dt, positions, velocities, forces, potential, system)
    for observer in observers:
        observer(frame)
