"""A network as a potential: reference energies, forces and stress by differentiation, float64 totals, files."""

import functools
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.chem.potentials._mace import Mace
from sciax.chem.potentials._nequip import NequIP
from sciax.chem.potentials._painn import PaiNN
from sciax.chem.potentials._schnet import SchNet
from sciax.core.errors import FileFormatError, InputError, MissingFileError, UnsupportedError, did_you_mean
from sciax.core.ops.neighbours import NeighbourList, host_pairs, pairs
from sciax.core.ops.neighbours import displacements as pair_vectors
from sciax.datasets.atoms import Structure
from sciax.datasets.elements import SYMBOLS
from sciax.science.graph import BatchShape, Graph, PaddedGraph, batch_graphs, bucket_shapes

ARCHITECTURES = {"mace": Mace, "nequip": NequIP, "painn": PaiNN, "schnet": SchNet}


class Potential(eqx.Module):
    """E = Σ_i [E0(z_i) + shift(z_i) + scale · network_i].

    Attributes:
        network: per-atom energies in units of scale, from edge vectors.
        scale, shift: eV; from the training set.
        elements: atomic numbers it knows, in species order.
        e0: reference energies (eV) by species, in float64; added on the host, never in the network's precision.
        recipe: architecture and options, for files.
    """

    network: Any
    scale: Float[Array, ""]
    shift: Float[Array, " species"]
    elements: tuple[int, ...] = eqx.field(static=True)
    e0: tuple[float, ...] = eqx.field(static=True)
    recipe: tuple[tuple[str, Any], ...] = eqx.field(static=True)

    @property
    def cutoff(self) -> float:
        return self.network.cutoff

    @property
    def dtype(self):
        return self.scale.dtype

    def residuals(self, vectors, species, centers, others) -> Float[Array, " atoms"]:
        """Per-atom energies without E0."""
        return self.network(vectors, species, centers, others) * self.scale + self.shift[species]

    def species(self, numbers) -> np.ndarray:
        """Species indices of atomic numbers.

        Raises:
            InputError: an element that the potential was not made for.
        """
        known = {z: k for k, z in enumerate(self.elements)}
        missing = sorted(set(map(int, numbers)) - set(known))
        if missing:
            raise InputError(
                f"this potential does not know {', '.join(SYMBOLS[z] for z in missing)}",
                expected=", ".join(SYMBOLS[z] for z in self.elements),
            )
        return np.array([known[int(z)] for z in numbers], np.int32)


def make_potential(
    architecture: str,
    elements: Sequence[int],
    *,
    cutoff: float = 5.0,
    key: Array,
    e0: Mapping[int, float] | None = None,
    scale: float = 1.0,
    shift: float | Mapping[int, float] = 0.0,
    dtype=jnp.float32,
    **options: Any,
) -> Potential:
    """A potential with random weights.

    Args:
        architecture: "mace", "nequip", "painn" or "schnet"; `options` go to its class.
        elements: atomic numbers.
        e0: reference energy of each element, eV; 0 by default.

    Raises:
        InputError: an unknown architecture or option, no elements, elements without a reference energy.
    """
    if architecture not in ARCHITECTURES:
        raise InputError(f"unknown architecture {architecture!r}", remedy=did_you_mean(architecture, ARCHITECTURES))
    elements = tuple(sorted({int(z) for z in elements}))
    if not elements or not cutoff > 0:
        raise InputError("a potential needs elements and a positive cutoff", got=(elements, cutoff))
    if e0 is not None and set(elements) - set(e0):
        lacking = ", ".join(SYMBOLS[z] for z in elements if z not in e0)
        raise InputError(f"no reference energy for {lacking}", remedy="reference_energies(...), or complete e0=")
    try:
        network = ARCHITECTURES[architecture](len(elements), cutoff, key=key, dtype=dtype, **options)
    except TypeError as error:
        raise InputError(f"{architecture} does not take these options: {error}", got=sorted(options)) from None
    shifts = [shift.get(z, 0.0) for z in elements] if isinstance(shift, Mapping) else [float(shift)] * len(elements)
    recipe = (("architecture", architecture), ("cutoff", float(cutoff)), *sorted(options.items()))
    energies = tuple(float(e0[z]) if e0 is not None else 0.0 for z in elements)
    return Potential(network, jnp.asarray(scale, dtype), jnp.asarray(shifts, dtype), elements, energies, recipe)


def make_graph(potential: Potential, structure: Structure) -> Graph:
    """The graph of a structure within the potential's cutoff, several images included.

    Raises:
        InputError: unknown elements, positions that are not finite, a degenerate cell, two atoms in one place.
    """
    species = potential.species(structure.numbers)
    i, j, s = _edges(structure, potential.cutoff)
    cell = np.asarray(structure.cell, float)
    r = np.linalg.norm(structure.positions[j] - structure.positions[i] + s @ cell, axis=1)
    if len(r) and r.min() < 1e-3:
        k = int(r.argmin())
        raise InputError(f"atoms {i[k]} and {j[k]} lie in one place", got=f"distance {r[k]:.2e} Å")
    dtype = np.dtype(potential.dtype)
    nodes = {"positions": np.asarray(structure.positions).astype(dtype), "species": species}
    return Graph(j, i, nodes, {"shifts": s.astype(np.int32)}, {"cell": cell.astype(dtype)})


def _edges(structure: Structure, cutoff: float):
    # small systems go to the KD-tree: the compiled search would be compiled into XLA for each number of atoms
    if len(structure) < 3000:
        return host_pairs(structure.positions, structure.cell, structure.pbc, cutoff)
    found = pairs(jnp.asarray(structure.positions), jnp.asarray(structure.cell), pbc=structure.pbc, cutoff=cutoff)
    n = int(found.count)
    return tuple(np.asarray(a)[:n] for a in (found.centers, found.others, found.shifts))


def atomic_residuals(potential: Potential, positions: Array, graph: PaddedGraph, strain: Array | None = None) -> Array:
    """Per-atom energies without E0 of a batch; `strain` (graphs, 3, 3) deforms positions and cells alike."""
    graph = jax.tree.map(jnp.asarray, graph)  # host arrays do not index by traced ones
    n = positions.shape[0]
    inner = jnp.minimum(graph.receivers, n - 1)
    owner = jnp.minimum(graph.graph_of_node[inner], graph.graph_mask.shape[0] - 1)
    image = jnp.einsum(
        "es,esc->ec", graph.edges["shifts"].astype(positions.dtype), graph.globals["cell"][owner], precision="highest"
    )
    vectors = (positions[graph.senders] - positions[inner]) + image
    if strain is not None:
        vectors = vectors + jnp.einsum("ec,ecd->ed", vectors, strain[owner], precision="highest")
    vectors = jnp.where(graph.edge_mask[:, None], vectors, 0)
    values = potential.residuals(vectors, graph.nodes["species"], graph.receivers, graph.senders)
    return jnp.where(graph.node_mask, values, 0)


def energies_and_forces(potential: Potential, graph: PaddedGraph, *, stress: bool = False):
    """(per-atom residual energies, forces, dE/d(strain) or None) of a batch."""
    positions = jnp.asarray(graph.nodes["positions"])
    if not stress:
        pull, values = _with_values(lambda x: atomic_residuals(potential, x, graph), positions)
        return values, -pull[0], None
    zero = jnp.zeros((graph.graph_mask.shape[0], 3, 3), positions.dtype)
    pull, values = _with_values(
        lambda x, e: atomic_residuals(potential, x, graph, (e + jnp.swapaxes(e, 1, 2)) / 2), positions, zero
    )
    return values, -pull[0], pull[1]


def _with_values(f, *args):
    values, back = jax.vjp(f, *args)
    return back(jnp.ones_like(values)), values


@functools.partial(eqx.filter_jit)
def _evaluate(potential, graph, stress: bool):
    return energies_and_forces(potential, graph, stress=stress)


@dataclass(frozen=True)
class Prediction:
    """What a potential says of a structure.

    Attributes:
        energy: total, eV, summed in float64 with the reference energies.
        forces: eV/Å.
        atomic_energies: eV, float64, references included.
        strain_derivative: dE/dε, eV, symmetric; of a slab or wire too. None for a molecule. The virial is its negative.
        structure: what it was computed for.
    """

    energy: float
    forces: np.ndarray
    atomic_energies: np.ndarray
    strain_derivative: np.ndarray | None
    structure: Structure

    @property
    def stress(self) -> np.ndarray:
        """(1/V) dE/dε in eV/Å³, tensile positive.

        Raises:
            UnsupportedError: unless the three directions are periodic: elsewhere there is no volume to divide by.
        """
        if not all(self.structure.pbc) or self.strain_derivative is None:
            raise UnsupportedError(
                "stress is defined for a bulk only, periodic in three directions",
                got=f"pbc={self.structure.pbc}",
                remedy="for a slab: surface_stress (eV/Å²), or strain_derivative (eV)",
            )
        return self.strain_derivative / self.structure.volume

    @property
    def surface_stress(self) -> np.ndarray:
        """(1/A) dE/dε in eV/Å² of a slab, 3x3, with the open direction's rows and columns as they are.

        Raises:
            UnsupportedError: unless two directions are periodic.
        """
        open_ = [k for k in range(3) if not self.structure.pbc[k]]
        if len(open_) != 1 or self.strain_derivative is None:
            raise UnsupportedError("surface stress is defined for a slab", got=f"pbc={self.structure.pbc}")
        a, b = (self.structure.cell[k] for k in range(3) if k != open_[0])
        return self.strain_derivative / np.linalg.norm(np.cross(a, b))


def predict(potential: Potential, structures: Structure | Sequence[Structure], *, batch: int = 16) -> list[Prediction]:
    """Energies, forces and (where something is periodic) strain derivatives of structures, in padded batches of few shapes."""
    structures = [structures] if isinstance(structures, Structure) else list(structures)
    out: list[Prediction | None] = [None] * len(structures)
    for periodic in (False, True):
        chosen = [k for k, s in enumerate(structures) if any(s.pbc) == periodic]
        if not chosen:
            continue
        graphs = [make_graph(potential, structures[k]) for k in chosen]
        shapes, bucket = bucket_shapes([(g.n_nodes, len(g.senders)) for g in graphs], batch)
        for b, shape in enumerate(shapes):
            members = np.flatnonzero(bucket == b)
            for start in range(0, len(members), shape.graphs):
                part = members[start : start + shape.graphs]
                _predict_batch(
                    potential, [graphs[m] for m in part], shape, periodic, [chosen[m] for m in part], structures, out
                )
    return out  # type: ignore[return-value]


def _predict_batch(potential, graphs, shape: BatchShape, periodic: bool, where, structures, out) -> None:
    values, forces, strain = _evaluate(potential, batch_graphs(graphs, shape), periodic)
    values, forces = np.asarray(values, np.float64), np.asarray(forces)
    ends = list(itertools.accumulate(g.n_nodes for g in graphs))
    for k, (graph, end) in enumerate(zip(graphs, ends)):
        part = slice(end - graph.n_nodes, end)
        atomic = values[part] + np.array(potential.e0)[graph.nodes["species"]]
        derivative = None if strain is None else np.asarray(strain[k], np.float64)
        if not np.isfinite(atomic).all():
            raise InputError(f"the energy of structure {where[k]} is not finite", remedy="look at its distances")
        out[where[k]] = Prediction(float(atomic.sum()), forces[part], atomic, derivative, structures[where[k]])


@dataclass(frozen=True)
class Ensemble:
    """Several potentials: the mean predicts, the spread says how far to trust it."""

    members: tuple[Potential, ...]

    def __post_init__(self) -> None:
        if len(self.members) < 2:
            raise InputError("an ensemble needs at least two members", got=len(self.members))

    def predict(self, structures, *, batch: int = 16) -> list[tuple[Prediction, float, np.ndarray]]:
        """For each structure (mean prediction, standard deviation of the energy in eV, of the force vectors per atom)."""
        runs = [predict(m, structures, batch=batch) for m in self.members]
        out = []
        for same in zip(*runs):
            forces = np.stack([p.forces for p in same])
            energies = np.array([p.energy for p in same])
            strain = None if same[0].strain_derivative is None else np.mean([p.strain_derivative for p in same], 0)
            mean = Prediction(
                float(energies.mean()),
                forces.mean(0),
                np.mean([p.atomic_energies for p in same], 0),
                strain,
                same[0].structure,
            )
            spread = np.sqrt(((forces - forces.mean(0)) ** 2).sum(-1).sum(0) / (len(same) - 1))
            out.append((mean, float(energies.std(ddof=1)), spread))
        return out


class PotentialField(eqx.Module):
    """A potential as a force field of `chem.md`: `PotentialField(potential, numbers)`."""

    potential: Potential
    species: Array
    e0: float = eqx.field(static=True)

    def __init__(self, potential: Potential, numbers):
        self.potential = potential
        self.species = jnp.asarray(potential.species(numbers))
        self.e0 = float(np.sum(np.array(potential.e0)[np.asarray(self.species)]))

    @property
    def cutoff(self) -> float:
        return self.potential.cutoff

    def prepare(self, neighbours: NeighbourList, cell: Array):
        return None

    def evaluate(self, positions, cell, neighbours: NeighbourList, prepared):
        """Energies exclude the constant E0, which would only cost digits (`e0` holds it)."""

        def energy(x, strain):
            d = pair_vectors(x, cell, neighbours.centers, neighbours.others, neighbours.shifts)
            d = d + jnp.matmul(d, (strain + strain.T) / 2, precision="highest")
            # pairs in the skin lie beyond the cutoff, where every feature is 0
            return self.potential.residuals(d, self.species, neighbours.centers, neighbours.others)

        values, back = jax.vjp(energy, positions, jnp.zeros((3, 3), positions.dtype))
        gradient, strain = back(jnp.ones_like(values))
        return values, -gradient, strain


def save_potential(path: str | Path, potential: Potential) -> Path:
    """Write weights and recipe; nothing is pickled."""
    head = {
        "format": "sciax-potential-1",
        "recipe": dict(potential.recipe),
        "elements": potential.elements,
        "e0": potential.e0,
        "dtype": np.dtype(potential.dtype).name,
    }
    with open(path, "wb") as out:
        out.write((json.dumps(head) + "\n").encode())
        eqx.tree_serialise_leaves(out, eqx.filter(potential, eqx.is_array))
    return Path(path)


def load_potential(path: str | Path) -> Potential:
    """Read a file of `save_potential`.

    Raises:
        MissingFileError, FileFormatError.
    """
    if not Path(path).is_file():
        raise MissingFileError(f"no such file: {path}")
    with open(path, "rb") as handle:
        try:
            head = json.loads(handle.readline())
            if head["format"] != "sciax-potential-1":
                raise ValueError(head["format"])
            recipe = dict(head["recipe"])
            like = make_potential(
                recipe.pop("architecture"),
                head["elements"],
                key=jax.random.key(0),
                e0=dict(zip(head["elements"], head["e0"])),
                dtype=jnp.dtype(head["dtype"]),
                **recipe,
            )
            arrays, static = eqx.partition(like, eqx.is_array)
            return eqx.combine(eqx.tree_deserialise_leaves(handle, arrays), static)
        except (ValueError, KeyError, RuntimeError, UnicodeDecodeError, TypeError) as error:
            raise FileFormatError(f"{path} is not a potential", got=str(error)[:200]) from None
