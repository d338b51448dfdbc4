"""Values that branches and loops carry: arrays and Python numbers are staged, everything else must not change."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from malt.operators.variables import Undefined, UndefinedReturnValue

from sciax.core.graph._errors import GraphError


def is_tracer(value: Any) -> bool:
    return isinstance(value, Tracer)


def is_array(value: Any) -> bool:
    return isinstance(value, jax.Array)


def is_dynamic(value: Any) -> bool:
    """Whether a leaf can be carried by compiled control flow."""
    if isinstance(value, (jax.Array, bool, int, float, complex, np.generic)):
        return True
    return isinstance(value, np.ndarray) and value.dtype.kind in "biufc"


class Poisoned(Undefined):
    """A variable whose value depends on which way a traced condition went; reading it explains why it has none."""

    __slots__ = ("message", "where")

    def __init__(self, symbol: str, message: str, where: tuple[str, int] | None):
        super().__init__(symbol)
        self.message, self.where = message, where

    def read(self):
        raise GraphError(
            f"variable {self.symbol_name!r} {self.message}",
            variable=self.symbol_name,
            remedy=f"give {self.symbol_name!r} a value of one shape, dtype and structure on every path",
        )


def is_undefined(value: Any) -> bool:
    return isinstance(value, Undefined)


def flatten(value: Any) -> tuple[list[Any], Any]:
    """Leaves and structure; None is a leaf, so that None against an array is a difference that can be named."""
    return jax.tree.flatten(value, is_leaf=lambda v: v is None)


def unflatten(structure: Any, leaves: list[Any]) -> Any:
    return jax.tree.unflatten(structure, leaves)


def copy_containers(value: Any) -> Any:
    """The same leaves in new containers, so that tracing a branch cannot change the caller's lists and dicts."""
    if isinstance(value, (Undefined, UndefinedReturnValue)) or is_dynamic(value):
        return value
    leaves, structure = flatten(value)
    return unflatten(structure, leaves)


def aval(value: Any) -> jax.ShapeDtypeStruct:
    if not hasattr(value, "dtype"):
        value = jnp.asarray(value)
    return jax.ShapeDtypeStruct(value.shape, value.dtype, weak_type=bool(getattr(value, "weak_type", False)))


def is_weak(value: Any) -> bool:
    """Whether JAX lets the dtype of this value give way, as that of a Python number does."""
    if isinstance(value, (bool, int, float, complex)):
        return True
    return bool(getattr(value, "weak_type", False))


def join(a: Any, b: Any) -> jax.ShapeDtypeStruct | None:
    """The aval that holds both, by JAX's promotion; None where the shapes differ."""
    if tuple(a.shape) != tuple(b.shape):
        return None
    if a.dtype == b.dtype:
        return jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=is_weak(a) and is_weak(b))
    weak_a, weak_b = is_weak(a), is_weak(b)
    if weak_a == weak_b:
        dtype = jnp.promote_types(a.dtype, b.dtype)
    else:
        strong, weak = (b, a) if weak_a else (a, b)
        kind = jnp.dtype(weak.dtype).kind
        python = {"b": False, "i": 0, "u": 0, "c": 0j}.get(kind, 0.0)
        dtype = jnp.result_type(strong.dtype, python)
    return jax.ShapeDtypeStruct(a.shape, dtype, weak_type=weak_a and weak_b)


def as_aval(value: Any, target: jax.ShapeDtypeStruct) -> Any:
    """`value` with the target's dtype and weakness."""
    array = jnp.asarray(value)
    if array.dtype != target.dtype or (is_weak(array) and not is_weak(target)):
        array = jax.lax.convert_element_type(array, target.dtype)
    return array


def zeros(target: jax.ShapeDtypeStruct) -> Any:
    if jnp.issubdtype(target.dtype, jax.dtypes.extended):
        return jnp.broadcast_to(jax.random.key(0), target.shape)
    return jnp.zeros(target.shape, target.dtype)


def describe(value: Any) -> str:
    """Shape and dtype, or type, for error messages."""
    if isinstance(value, UndefinedReturnValue):
        return "no value returned"
    if isinstance(value, Undefined):
        return "undefined"
    if value is None:
        return "None"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        extended = jnp.issubdtype(value.dtype, jax.dtypes.extended)
        return f"{value.dtype if extended else jnp.dtype(value.dtype).name}{list(value.shape)}"
    if isinstance(value, (bool, int, float, complex, str)):
        return f"{type(value).__name__} {value!r}"
    leaves, structure = flatten(value)
    if len(leaves) == 1 and leaves[0] is value:
        return type(value).__name__
    return f"{type(value).__name__} {jax.tree.unflatten(structure, [describe(v) for v in leaves])}"
