"""Where each array of a training lives: patterns over paths, checked, applied, explained."""

import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from sciax.core.errors import InputError, ShapeError, did_you_mean
from sciax.core.parallel._mesh import make_mesh

if TYPE_CHECKING:
    from sciax.core.parallel._machine import Machine
    from sciax.core.parallel.search import Search

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


def is_parameter(leaf: Any) -> bool:
    """An inexact array, or the shape of one."""
    return eqx.is_inexact_array(leaf) or (
        isinstance(leaf, jax.ShapeDtypeStruct) and jnp.issubdtype(leaf.dtype, jnp.inexact)
    )


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


def named(path: str, patterns: Mapping[str, Any]) -> bool:
    """Whether a pattern names the path."""
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


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
            `params` placement over the data axis: see `data_parallel`.
        state: pattern -> placement of the optimiser's state (and the gradients) where it is not the parameter's.
        search: how `Plan.auto` found it; with it, placements of all that is inside loss and gradient.
    """

    mesh: Mesh
    params: Mapping[str, Placement]
    batch: Placement | Mapping[str, Placement] = ()
    zero: str | None = None
    state: Mapping[str, Placement] = field(default_factory=dict)
    search: "Search | None" = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", {pattern: PartitionSpec(*spec) for pattern, spec in self.params.items()})
        object.__setattr__(self, "state", {pattern: PartitionSpec(*spec) for pattern, spec in self.state.items()})
        if isinstance(self.batch, Mapping):
            object.__setattr__(self, "batch", {pattern: PartitionSpec(*spec) for pattern, spec in self.batch.items()})
        else:
            object.__setattr__(self, "batch", PartitionSpec(*self.batch))
        if self.zero is not None and self.zero not in self.mesh.shape:
            raise InputError(f"the mesh has no axis {self.zero!r}", remedy=did_you_mean(self.zero, self.mesh.shape))

    @classmethod
    def auto(
        cls,
        model: PyTree,
        loss: Callable[..., Any],
        batch: PyTree,
        optimizer: Any = None,
        mesh: Mesh | None = None,
        *,
        machine: "Machine | None" = None,
        memory: float | None = None,
        params: Mapping[str, Placement] | None = None,
        data: Mapping[str, Placement] | None = None,
        precision: Any = None,
        key: Any = None,
        tie: bool | None = None,
        gap: float = 1e-4,
        limit: float = 60.0,
    ) -> "Plan":
        """The cheapest plan for loss and gradient on `machine`, by a search over the traced program.

        Each operation can be split along any of its loops by any mesh axis; changing an array's placement between two costs
        the collectives it takes. The sum is minimised exactly, as a mixed integer linear program (after Zheng et al. 2022, Alpa,
        whose inter-operator part is left out); `plan.explain()` prints what was found and the proved gap to the best. The plan
        also fixes every array inside loss and gradient, so that XLA sends what was predicted.

        Args:
            model, batch: arrays or `jax.ShapeDtypeStruct`s; nothing is run.
            loss: `loss(model, batch, key)`, as for `fit`.
            optimizer: its state counts as memory, and may be split apart from the parameters (ZeRO).
            mesh: default: all devices on one axis, "devices".
            machine: profile of a device and its links. Default: one CPU core.
            memory: bytes of one device that may be used. Default: the machine's.
            params, data: pattern -> placement of parameters and batch arrays that are given; the rest is searched.
            precision: as for `fit`.
            tie: give equal layers equal placements. Default: only if the program is large.
            gap: relative distance to the optimum at which the search may stop.
            limit: seconds for the solver.

        Raises:
            InputError: no plan fits in the memory; a pattern that matches nothing.
            ConvergenceError: no plan found in time.
        """
        from sciax.core.parallel._machine import CPU_CORE
        from sciax.core.parallel.search import auto

        return auto(
            model,
            loss,
            batch,
            optimizer,
            mesh,
            machine=CPU_CORE if machine is None else machine,
            memory=memory,
            params=params,
            data=data,
            precision=precision,
            key=key,
            tie=tie,
            gap=gap,
            limit=limit,
        )

    def explain(self, loss: Any = None, model: PyTree = None, batch: PyTree = None, **options: Any) -> Any:
        """What the plan does, to be printed.

        Without arguments: what `Plan.auto` predicted (`Search`). With loss, model and batch: what the compiled program does
        (`Explanation`, see `sciax.core.parallel.explain`).
        """
        if loss is not None:
            from sciax.core.parallel._explain import explain

            return explain(self, loss, model, batch, **options)
        if self.search is None:
            raise InputError("a plan made by hand is explained for a model", remedy="plan.explain(loss, model, batch)")
        return self.search

    def outside(self) -> "Plan":
        """The same placements of parameters, optimiser and batch, leaving what is inside loss and gradient to XLA."""
        return replace(self, search=None)

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
        if self.state:
            apart = _match(self.state, shapes, "model")  # type: ignore[arg-type]
            own |= {path: spec for path, spec in apart.items() if named(path, self.state)}
            for path, spec in own.items():
                check_spec(path, tuple(shapes[path].shape), spec, self.mesh)
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

    def inside(self, gradient: Callable[..., Any]) -> Callable[..., Any]:
        """The function of loss and gradients with what is inside it placed as the search has it; by hand nothing is."""
        return gradient if self.search is None else self.search.inside.apply(gradient, self.mesh)

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
