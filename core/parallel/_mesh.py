"""Device meshes, by named axes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import AxisType, Mesh

from sciax.core.errors import InputError


def make_mesh(axes: Mapping[str, int], devices: Sequence[Any] | None = None) -> Mesh:
    """A mesh of `axes` {name: size} over the devices; one size may be -1, "what is left".

    The axis types are stated (Auto: XLA's partitioner propagates from the placements a plan gives), since JAX's own default
    has changed to Explicit, under which a sharded contraction is an error.

    Raises:
        InputError: sizes that do not multiply to the number of devices.
    """
    devices = jax.devices() if devices is None else list(devices)
    sizes = dict(axes)
    unknown = [name for name, size in sizes.items() if size == -1]
    if len(unknown) > 1 or any(size < 1 and size != -1 for size in sizes.values()):
        raise InputError("mesh axes have positive sizes, one of them may be -1", got=sizes)
    known = math.prod(size for size in sizes.values() if size != -1)
    if unknown and len(devices) % known == 0:
        sizes[unknown[0]] = len(devices) // known
    if math.prod(sizes.values()) != len(devices):
        raise InputError(
            "the mesh does not fit the devices",
            got=f"{' x '.join(f'{name}={size}' for name, size in sizes.items())}",
            expected=f"a product of {len(devices)} devices",
            remedy="on CPU, JAX_NUM_CPU_DEVICES=8 before the start makes eight virtual devices",
        )
    types = (AxisType.Auto,) * len(sizes)
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=types, devices=devices)
