"""Where the batch of a step comes from.

A source is a pure function of (step, key): the batch of step 1000 does not depend on how steps 0 to 999 were run. A resumed
training therefore needs no iterator state, only the step, and sees the very same batches.
"""

from collections.abc import Callable
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PyTree

from sciax.core.errors import InputError, ShapeError

Batch = PyTree
Cache = PyTree


class BatchSource(Protocol):
    """The batch of a step, computed inside the compiled loop."""

    def begin(self, step: Int[Array, ""]) -> Cache:
        """What `take` keeps from one step to the next; a function of the step, so it is never saved."""
        ...

    def take(self, cache: Cache, step: Int[Array, ""], key: Key[Array, ""]) -> tuple[Batch, Cache]:
        """The batch of `step`; `key` is the step's own key, already folded with it."""
        ...


class FullBatch(eqx.Module):
    """The same batch at every step."""

    data: PyTree

    def begin(self, step: Int[Array, ""]) -> Cache:
        return None

    def take(self, cache: Cache, step: Int[Array, ""], key: Key[Array, ""]) -> tuple[Batch, Cache]:
        return self.data, cache


class Sampled(eqx.Module):
    """Batches drawn by a traceable function: `draw(key, step)`, for example new collocation points at every step."""

    draw: Callable[[Key[Array, ""], Int[Array, ""]], Batch]

    def begin(self, step: Int[Array, ""]) -> Cache:
        return None

    def take(self, cache: Cache, step: Int[Array, ""], key: Key[Array, ""]) -> tuple[Batch, Cache]:
        return self.draw(key, step), cache


class ArrayBatches(eqx.Module):
    """Mini-batches of arrays that are held on the device, shuffled anew in every epoch.

    Each epoch visits every sample once, but for the last `n % batch_size` of its order, which wait for another epoch's order.

    Attributes:
        data: arrays with the same leading (sample) axis.
        key: key of the shuffling; epoch e uses `fold_in(key, e)`.
    """

    data: PyTree
    batch_size: int = eqx.field(static=True)
    shuffle: bool = eqx.field(static=True)
    key: Key[Array, ""]

    def __init__(self, data: PyTree, batch_size: int, *, key: Key[Array, ""] | None = None, shuffle: bool = True):
        """
        Raises:
            ShapeError: leaves without a common leading axis; a batch larger than the data.
            InputError: shuffling without a key.
        """
        sizes = {np.shape(leaf)[0] if np.ndim(leaf) else None for leaf in jax.tree.leaves(data)}
        if len(sizes) != 1 or None in sizes:
            raise ShapeError("the arrays of a data set share their leading axis", got=f"leading sizes {sizes}")
        size = int(next(iter(sizes)))  # type: ignore[arg-type]  # None was refused above
        if not 1 <= batch_size <= size:
            raise ShapeError(
                "the batch size does not fit the data", got=f"batch_size={batch_size}", expected=f"1 to {size} samples"
            )
        if shuffle and key is None:
            raise InputError("shuffling needs a key", remedy="ArrayBatches(data, batch_size, key=jax.random.key(0))")
        self.data = jax.tree.map(jnp.asarray, data)
        self.batch_size = int(batch_size)
        self.shuffle = shuffle
        self.key = jax.random.key(0) if key is None else key

    @property
    def samples(self) -> int:
        return jax.tree.leaves(self.data)[0].shape[0]

    @property
    def steps_per_epoch(self) -> int:
        return self.samples // self.batch_size

    def _order(self, epoch: Int[Array, ""]) -> Int[Array, "samples"]:
        if self.shuffle:
            return jax.random.permutation(jax.random.fold_in(self.key, epoch), self.samples)
        return jnp.arange(self.samples)

    def begin(self, step: Int[Array, ""]) -> Cache:
        epoch = step // self.steps_per_epoch
        return epoch, self._order(epoch)

    def take(self, cache: Cache, step: Int[Array, ""], key: Key[Array, ""]) -> tuple[Batch, Cache]:
        epoch, within = jnp.divmod(step, self.steps_per_epoch)
        known, order = cache
        # The order is sorted anew only where an epoch begins.
        order = jax.lax.cond(epoch == known, lambda: order, lambda: self._order(epoch))
        rows = jax.lax.dynamic_slice_in_dim(order, within * self.batch_size, self.batch_size)
        return jax.tree.map(lambda leaf: leaf[rows], self.data), (epoch, order)


class HostBatches:
    """Batches that live on the host (files, a data loader): `load(step)` returns NumPy arrays.

    `fit` loads the next chunk in a thread while the device works on the present one.

    Args:
        load: random access by step number, so that a resumed run continues with the right batch.
    """

    def __init__(self, load: Callable[[int], Batch]):
        self.load = load

    def stack(self, first: int, count: int, capacity: int) -> Batch:
        """Batches `first` to `first + count - 1` stacked; rows past `count` repeat the last one and are never read."""
        items = [self.load(first + i) for i in range(count)]
        items += [items[-1]] * (capacity - count)
        return jax.tree.map(lambda *leaves: np.stack(leaves), *items)


def as_source(batches: Any) -> "BatchSource | HostBatches":
    """What `fit` accepts as batches: a source; a function `(key, step) -> batch`; or a pytree of arrays, used whole."""
    if isinstance(batches, HostBatches) or hasattr(batches, "begin"):  # an array, too, has `take`
        return batches
    if callable(batches):
        return Sampled(batches)
    if hasattr(batches, "__next__"):
        raise InputError(
            "a plain iterator cannot be resumed: nothing says which batch belongs to a step",
            got=type(batches).__name__,
            remedy="wrap random access to it: HostBatches(lambda step: ...)",
        )
    leaves = jax.tree.leaves(batches)
    if not leaves or not all(isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float) for leaf in leaves):
        raise InputError(
            "batches are not arrays",
            got=type(batches).__name__,
            expected="arrays, a batch source, or a function (key, step)",
        )
    return FullBatch(jax.tree.map(jnp.asarray, batches))
