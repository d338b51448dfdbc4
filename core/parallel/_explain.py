"""What a plan does to one training step: where each array is, what is sent, how long it may take."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from sciax.core.parallel._hlo import Collective, collectives, communication
from sciax.core.parallel._machine import CPU_CORE, Machine
from sciax.core.parallel._plan import Plan, array_paths, is_parameter
from sciax.core.train._step import make_gradient


@dataclass(frozen=True)
class Placed:
    """One array: its path, shape, placement and bytes on one device."""

    path: str
    shape: tuple[int, ...]
    spec: str
    bytes_per_device: int


@dataclass(frozen=True)
class Explanation:
    """Answer of `explain`; print it.

    Attributes:
        arrays: placement of each parameter and batch array.
        collectives: what loss and gradient send, each once, with how often.
        flops_per_device: of loss and gradient, by XLA (the body of a loop counted once).
        seconds: predicted for loss and gradient on `machine`, compute and communication one after the other.
    """

    arrays: list[Placed]
    collectives: list[Collective]
    flops_per_device: float
    compute_seconds: float
    communication_seconds: float
    machine: Machine
    mesh: dict[str, int]

    @property
    def seconds(self) -> float:
        return self.compute_seconds + self.communication_seconds

    @property
    def bytes_per_device(self) -> int:
        return sum(item.bytes_per_device for item in self.arrays)

    def __str__(self) -> str:
        width = max([len(item.path) for item in self.arrays] + [5])
        shapes = max([len(str(item.shape)) for item in self.arrays] + [5])
        specs = max([len(item.spec) for item in self.arrays] + [9])
        lines = [
            f"mesh {' x '.join(f'{name}={size}' for name, size in self.mesh.items())}, machine: {self.machine.name}",
            f"{'array':<{width}}  {'shape':<{shapes}}  {'placement':<{specs}}  bytes a device",
        ]
        lines += [
            f"{item.path:<{width}}  {item.shape!s:<{shapes}}  {item.spec:<{specs}}  {item.bytes_per_device:,}"
            for item in self.arrays
        ]
        lines.append(f"{'all':<{width}}  {'':<{shapes}}  {'':<{specs}}  {self.bytes_per_device:,}")
        lines.append(
            "loss and gradient send: " + (", ".join(f"{c.kind} {c.bytes:,} B" for c in self.collectives) or "nothing")
        )
        lines.append(
            f"predicted {1e3 * self.seconds:.3g} ms a step: compute {1e3 * self.compute_seconds:.3g} ms "
            f"({self.flops_per_device:.3g} FLOP a device), communication {1e3 * self.communication_seconds:.3g} ms"
        )
        return "\n".join(lines)


def explain(
    plan: Plan, loss: Callable[..., Any], model: PyTree, batch: PyTree, *, key: Any = None, machine: Machine = CPU_CORE
) -> Explanation:
    """Compile loss and gradient under `plan` and say what that means; runs nothing.

    Args:
        loss: `loss(model, batch, key)`, as for `fit`.
        model, batch: arrays or `jax.ShapeDtypeStruct`s.
    """
    key = jax.random.key(0) if key is None else key
    params, static = eqx.partition(model, is_parameter)

    gradient = plan.inside(make_gradient(static, loss))

    def step(params, batch):
        (value, _), grads = gradient(plan.constrain(params), plan.constrain_batch(batch), key, None)
        return value, plan.constrain_gradients(grads)

    def described(tree, specs):
        return plan._by_path(
            tree, specs, lambda leaf, place: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=place)
        )

    param_specs, batch_specs = plan.param_specs(params), plan.batch_specs(batch)
    compiled = jax.jit(step).lower(described(params, param_specs), described(batch, batch_specs)).compile()
    sent = collectives(compiled.as_text() or "")
    cost = compiled.cost_analysis() or {}
    flops = float(cost.get("flops", 0.0))
    devices = plan.mesh.size
    arrays = []
    for label, tree, specs in (("model", params, param_specs), ("batch", batch, batch_specs)):
        for path, leaf in array_paths(tree).items():
            part = plan.sharding(specs[path]).shard_shape(tuple(leaf.shape))
            size = int(np.prod(part)) * np.dtype(leaf.dtype).itemsize
            arrays.append(Placed(f"{label}: {path}", tuple(leaf.shape), str(tuple(specs[path])), size))
    return Explanation(
        arrays,
        sent,
        flops,
        flops / machine.flops,
        communication(sent, machine, devices),
        machine,
        dict(plan.mesh.shape),
    )
