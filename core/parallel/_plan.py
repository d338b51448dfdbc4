"""Where each array of a training lives: patterns over paths, checked, applied, explained."""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from sciax.core.errors import InputError, ShapeError, did_you_mean
from sciax.core.parallel._mesh import make_mesh

Placement = PartitionSpec | tuple[str | tuple[str, ...] | None, ...]


def path_of(keys: tuple[Any, ...]) -> str:
    """A leaf's path as plans write it: "layers/0/weight"."""
    return jax.tree_util.keystr(keys, simple=True, separator="/")


def array_paths(tree: PyTree) -> dict[str, Any]:
    """Path -> array (or shape) for the array leaves of a tree."""
    return {
        path_of(keys): leaf
        for keys, leaf in jax.tree_util.tree_leaves_with_path(tree)
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype")
    }


def axes_of(entry: Any) -> tuple[str, ...]:
    """The mesh axes of one entry of a PartitionSpec."""
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, str) else tuple(entry)


def check_spec(path: str, shape: tuple[int, ...], spec: PartitionSpec, mesh: Mesh) -> None:
    """Raise if `spec` cannot place an array of `shape`: unknown or repeated axis, too many entries, indivisible dimension."""
    if len(spec) > len(shape):
        raise ShapeError(
            f"{path}: the placement has more entries than the array has axes", got=f"{spec} for shape {shape}"
        )
    seen: set[str] = set()
    for dimension, entry in zip(shape, spec, strict=False):
        size = 1
        for axis in axes_of(entry):
            if axis not in mesh.shape:
                raise InputError(
                    f"{path}: the mesh has no axis {axis!r}", got=str(spec), remedy=did_you_mean(axis, mesh.shape)
                )
            if axis in seen:
                raise InputError(f"{path}: mesh axis {axis!r} is used twice in one placement", got=str(spec))
            seen.add(axis)
            size *= mesh.shape[axis]
        if dimension % size:
            raise ShapeError(
                f"{path}: an axis of length {dimension} cannot be divided among {size} devices",
                got=f"shape {shape}, placement {spec}, mesh {dict(mesh.shape)}",
                remedy="choose another axis of the array or of the mesh, or pad it to a multiple",
            )


def _match(patterns: Mapping[str, PartitionSpec], leaves: Mapping[str, Any], what: str) -> dict[str, PartitionSpec]:
    """The placement of each leaf; a pattern without a leaf and a leaf under two different placements are errors."""
    chosen: dict[str, tuple[str, PartitionSpec]] = {}
    for pattern, spec in patterns.items():
        hits = [path for path in leaves if fnmatch.fnmatchcase(path, pattern)]
        if not hits:
            raise InputError(
                f"the pattern {pattern!r} matches nothing in the {what}", remedy=did_you_mean(pattern, leaves)
            )
        for path in hits:
            if path in chosen and chosen[path][1] != spec:
                raise InputError(
                    f"{path}: two patterns place it differently",
                    got=f"{chosen[path][0]!r}: {chosen[path][1]} and {pattern!r}: {spec}",
                    remedy="make one of them narrower",
                )
            chosen[path] = pattern, spec
    return {path: chosen[path][1] if path in chosen else PartitionSpec() for path in leaves}


@dataclass(frozen=True)
class Plan:
    """Placement of a model, its optimiser's state and the batch on a mesh.

    Patterns are shell-style (`*`, `?`, `[...]`; `*` crosses "/") over paths like "layers/0/weight"; an array that no pattern
    names is replicated. The optimiser's moments and averages follow their parameters.

        mesh = make_mesh({"data": 2, "model": 4})
        plan = Plan(mesh, {"*/layers/0/weight": P("model", None), "*/layers/1/weight": P(None, "model")}, batch=P("data"))
        fit(model, loss, batches, optimizer, steps, plan=plan)

    Attributes:
        mesh: from `make_mesh`.
        params: pattern -> placement of parameters.
        batch: placement of every array of the batch, or pattern -> placement.
        zero: mesh axis over which optimiser state is split besides (ZeRO-1); its gradients then are too (ZeRO-2). ZeRO-3 is a
            `params` placement over the data axis: see `zero3`.
    """

    mesh: Mesh
    params: Mapping[str, Placement]
    batch: Placement | Mapping[str, Placement] = ()
    zero: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", {pattern: PartitionSpec(*spec) for pattern, spec in self.params.items()})
        if isinstance(self.batch, Mapping):
            object.__setattr__(self, "batch", {pattern: PartitionSpec(*spec) for pattern, spec in self.batch.items()})
        else:
            object.__setattr__(self, "batch", PartitionSpec(*self.batch))
        if self.zero is not None and self.zero not in self.mesh.shape:
            raise InputError(f"the mesh has no axis {self.zero!r}", remedy=did_you_mean(self.zero, self.mesh.shape))

    # -- what goes where -------------------------------------------------------------------------------------------------

    def param_specs(self, params: PyTree) -> dict[str, PartitionSpec]:
        """Path -> placement of the arrays of a model.

        Raises:
            InputError: a pattern without a match, two patterns that disagree, an unknown mesh axis.
            ShapeError: an axis that the mesh does not divide.
        """
        leaves = array_paths(params)
        specs = _match(self.params, leaves, "model")  # type: ignore[arg-type]
        for path, spec in specs.items():
            check_spec(path, tuple(leaves[path].shape), spec, self.mesh)
        return specs

    def batch_specs(self, batch: PyTree) -> dict[str, PartitionSpec]:
        """Path -> placement of the arrays of a batch; scalars are replicated."""
        leaves = array_paths(batch)
        if isinstance(self.batch, Mapping):
            specs = _match(self.batch, leaves, "batch")  # type: ignore[arg-type]
        else:
            specs = {path: PartitionSpec(*self.batch[: len(leaf.shape)]) for path, leaf in leaves.items()}
        for path, spec in specs.items():
            check_spec(path or "batch", tuple(leaves[path].shape), spec, self.mesh)
        return specs

    def _followers(self, tree: PyTree, params: PyTree) -> dict[str, PartitionSpec]:
        """Placement of arrays that belong to parameters (moments, averages, gradients): the path ends in the parameter's path."""
        own, shapes = self.param_specs(params), array_paths(params)
        specs = {}
        for path, leaf in array_paths(tree).items():
            owner = next(
                (
                    name
                    for name in own
                    if (path == name or path.endswith("/" + name)) and leaf.shape == shapes[name].shape
                ),
                None,
            )
            spec = PartitionSpec() if owner is None else own[owner]
            if owner is not None and self.zero is not None:
                spec = self._split_further(tuple(leaf.shape), spec)
            specs[path] = spec
        return specs

    def _split_further(self, shape: tuple[int, ...], spec: PartitionSpec) -> PartitionSpec:
        """`spec` with the ZeRO axis on the first dimension that it divides evenly; unchanged where none does."""
        assert self.zero is not None
        entries = [axes_of(spec[i]) if i < len(spec) else () for i in range(len(shape))]
        if any(self.zero in entry for entry in entries):
            return spec
        for i, (length, entry) in enumerate(zip(shape, entries, strict=True)):
            parts = self.mesh.shape[self.zero] * int(np.prod([self.mesh.shape[axis] for axis in entry]))
            if length % parts == 0 and length >= parts:
                entries[i] = (*entry, self.zero)
                return PartitionSpec(*(entry if len(entry) > 1 else (entry[0] if entry else None) for entry in entries))
        return spec

    def state_specs(self, state: Any) -> dict[str, PartitionSpec]:
        """Path -> placement of a `TrainState` (parameters, optimiser state, average)."""
        specs = {f"params/{path}": spec for path, spec in self.param_specs(state.params).items()}
        for name in ("opt_state", "ema"):
            specs |= {
                f"{name}/{path}" if path else name: spec
                for path, spec in self._followers(getattr(state, name), state.params).items()
            }
        return specs | {path: PartitionSpec() for path in array_paths(state) if path not in specs}

    # -- putting it there ------------------------------------------------------------------------------------------------

    def sharding(self, spec: PartitionSpec) -> NamedSharding:
        return NamedSharding(self.mesh, spec)

    def _by_path(self, tree: PyTree, specs: Mapping[str, PartitionSpec], put) -> PyTree:
        def each(keys, leaf):
            spec = specs.get(path_of(keys))
            return leaf if spec is None else put(leaf, self.sharding(spec))

        return jax.tree_util.tree_map_with_path(each, tree)

    def place(self, state: PyTree) -> PyTree:
        """The training state (or a model) with its arrays where the plan has them. Every process calls it with the same values."""
        return self._by_path(state, self._specs(state), _put)

    def constrain(self, state: PyTree) -> PyTree:
        """The same inside a compiled function: what XLA's partitioner must keep to."""
        return self._by_path(state, self._specs(state), jax.lax.with_sharding_constraint)

    def constrain_batch(self, batch: PyTree) -> PyTree:
        return self._by_path(batch, self.batch_specs(batch), jax.lax.with_sharding_constraint)

    def constrain_gradients(self, grads: PyTree) -> PyTree:
        """Gradients where the optimiser's state is (ZeRO-2: each device keeps the part it updates)."""
        return self._by_path(grads, self._followers(grads, grads), jax.lax.with_sharding_constraint)

    def replicate(self, tree: PyTree) -> PyTree:
        """The arrays of a tree on every device of the mesh, of every process."""
        whole = self.sharding(PartitionSpec())
        return jax.tree.map(lambda leaf: _put(leaf, whole) if hasattr(leaf, "dtype") else leaf, tree)

    def place_batch(self, batch: PyTree) -> PyTree:
        return self._by_path(batch, self.batch_specs(batch), _put)

    def _specs(self, tree: PyTree) -> dict[str, PartitionSpec]:
        if hasattr(tree, "params") and hasattr(tree, "opt_state"):
            return self.state_specs(tree)
        return self.param_specs(eqx.filter(tree, eqx.is_array_like) if isinstance(tree, eqx.Module) else tree)


def _put(leaf: Any, sharding: NamedSharding) -> jax.Array:
    """To its place, over several processes too: each fills in the parts of its own devices."""
    if sharding.is_fully_addressable:
        return jax.device_put(leaf, sharding)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_put(jax.random.key_data(leaf), sharding), impl=jax.random.key_impl(leaf))
    whole = np.asarray(leaf)
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def data_parallel(axis: str = "data", mesh: Mesh | None = None, *, zero: int = 0, model: PyTree = None) -> Plan:
    """The batch split over `axis`, every parameter on each device.

    Args:
        mesh: default: all devices on `axis`.
        zero: 0 replicates all; 1 and 2 split the optimiser's state and with it the gradients; 3 the parameters too (needs
            `model`, whose arrays are split on the first axis that divides).
    """
    mesh = make_mesh({axis: -1}) if mesh is None else mesh
    plan = Plan(mesh, {}, batch=(axis,), zero=axis if zero in (1, 2) else None)
    if zero == 3:
        if model is None:
            raise InputError(
                "ZeRO-3 splits parameters and must see them", remedy="data_parallel(..., zero=3, model=model)"
            )
        splitter = Plan(mesh, {}, zero=axis)
        arrays = array_paths(eqx.filter(model, eqx.is_inexact_array))
        params = {path: splitter._split_further(tuple(leaf.shape), PartitionSpec()) for path, leaf in arrays.items()}
        return Plan(mesh, {literal_pattern(path): spec for path, spec in params.items()}, batch=(axis,))
    if zero not in (0, 1, 2):
        raise InputError("ZeRO has stages 0 to 3", got=zero)
    return plan


def literal_pattern(path: str) -> str:
    """The pattern that matches exactly `path`."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in path)
