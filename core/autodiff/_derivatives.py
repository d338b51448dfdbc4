"""First and higher derivatives.

Complex convention, JAX's, in one place: for a real function of complex z = a + ib, `grad` is df/da - i df/db, the conjugate of
the direction of steepest ascent. So |z|^2 at 1 + 2i has gradient 2 - 4i, and a descent step subtracts its conjugate.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from sciax.core.errors import DTypeError, InputError, ShapeError, did_you_mean

ArgNums = int | tuple[int, ...]


def is_tracer(x: Any) -> bool:
    from jax.core import Tracer

    return isinstance(x, Tracer)


def _is_inexact(x: Any) -> bool:
    return jnp.issubdtype(jax.dtypes.result_type(x), jnp.inexact)


def _positions(argnums: ArgNums, n: int, who: str) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for k in numbers:
        if isinstance(k, bool) or not isinstance(k, int) or not -n <= k < n:
            raise InputError(f"{who}: argnums={argnums} with {n} positional arguments", expected=f"integers below {n}")
    return tuple(k % n for k in numbers)


def require_inexact(args: tuple, argnums: ArgNums, who: str) -> None:
    """An error if something that is to be differentiated is not made of floats.

    Raises:
        DTypeError: integers or booleans (numbers that are Python ints too).
    """
    for k in _positions(argnums, len(args), who):
        for path, leaf in jax.tree_util.tree_flatten_with_path(args[k])[0]:
            if not (hasattr(leaf, "dtype") or isinstance(leaf, (bool, int, float, complex))):
                raise DTypeError(
                    f"{who}: argument {k}{jax.tree_util.keystr(path)} is a {type(leaf).__name__}, not an array",
                    remedy="differentiate with respect to arrays; pass the rest as other arguments",
                )
            if not _is_inexact(leaf):
                raise DTypeError(
                    f"{who}: argument {k}{jax.tree_util.keystr(path)} is not floating-point",
                    got=str(jax.dtypes.result_type(leaf)),
                    expected="a float or complex dtype",
                    remedy="convert it, as jnp.asarray(x, jnp.float32)",
                )


def require_real(args: tuple, argnums: ArgNums, who: str) -> None:
    """As `require_inexact`, and not complex: a Jacobian of complex numbers has two parts, d/dz and d/d(conj z)."""
    require_inexact(args, argnums, who)
    for k in _positions(argnums, len(args), who):
        for leaf in jax.tree.leaves(args[k]):
            if jnp.issubdtype(jax.dtypes.result_type(leaf), jnp.complexfloating):
                raise DTypeError(
                    f"{who}: argument {k} is complex",
                    got=str(jax.dtypes.result_type(leaf)),
                    expected="a real floating dtype",
                    remedy="differentiate with respect to real and imaginary part, or use jvp or vjp",
                )


def require_vector(x: Any, who: str) -> Any:
    """One real floating vector."""
    if not (hasattr(x, "shape") or isinstance(x, (int, float, complex, list))):
        raise ShapeError(
            f"{who} differentiates with respect to one vector", got=type(x).__name__, expected="an array (d,)"
        )
    if isinstance(x, list):
        raise ShapeError(f"{who} differentiates with respect to one vector", got="a list", remedy="jnp.asarray it")
    require_real((x,), 0, who)
    x = jnp.asarray(x)
    if x.ndim != 1:
        raise ShapeError(
            f"{who} differentiates with respect to one vector",
            got=x.shape,
            expected="(d,)",
            remedy="use jax.vmap over points",
        )
    return x


def _require_callable(f: Any, who: str) -> None:
    if not callable(f):
        raise InputError(f"{who} needs a function", got=type(f).__name__)


def _scalar(f: Callable[..., Any], has_aux: bool, who: str) -> Callable[..., Any]:
    @functools.wraps(f, updated=())
    def checked(*args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        value = out[0] if has_aux else out
        if not hasattr(value, "shape") and not isinstance(value, (int, float, complex)):
            raise ShapeError(
                f"{who}: the function returns a {type(value).__name__}, not one number",
                expected="a scalar array" if not has_aux else "(scalar array, auxiliary)",
                remedy="return a scalar; further values go with has_aux=True",
            )
        if jnp.shape(value) != ():
            raise ShapeError(
                f"{who}: the function returns an array, and the gradient is that of one number",
                got=f"shape {jnp.shape(value)}",
                expected="shape ()",
                remedy="sum it, or use jacobian",
            )
        if jnp.iscomplexobj(value):
            raise DTypeError(f"{who}: the function is complex-valued", remedy="differentiate its real part, or use jvp")
        return out

    return checked


def value_and_grad(f: Callable[..., Any], argnums: ArgNums = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns `f(...)` and its gradient with respect to the arguments `argnums`.

    Args:
        f: real scalar function; with `has_aux` it returns (scalar, anything).

    Raises (when called):
        ShapeError: f does not return a scalar. DTypeError: integer arguments, complex value.
    """
    _require_callable(f, "value_and_grad")
    inner = jax.value_and_grad(_scalar(f, has_aux, "grad"), argnums, has_aux=has_aux)

    @functools.wraps(f, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        require_inexact(args, argnums, "grad")
        return inner(*args, **kwargs)

    return call


def grad(f: Callable[..., Any], argnums: ArgNums = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a real scalar function; see `value_and_grad`."""
    both = value_and_grad(f, argnums, has_aux=has_aux)

    @functools.wraps(f, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return call


def _match(primals: Any, tangents: Any, who: str) -> None:
    if jax.tree.structure(primals) != jax.tree.structure(tangents):
        raise ShapeError(
            f"{who}: point and direction differ in structure",
            got=jax.tree.structure(tangents),
            expected=jax.tree.structure(primals),
        )
    for p, t in zip(jax.tree.leaves(primals), jax.tree.leaves(tangents)):
        if jnp.shape(p) != jnp.shape(t):
            raise ShapeError(f"{who}: point and direction differ in shape", got=jnp.shape(t), expected=jnp.shape(p))


def _like(primals: Any, tangents: Any) -> Any:
    for p, t in zip(jax.tree.leaves(primals), jax.tree.leaves(tangents)):
        if not (hasattr(t, "dtype") or isinstance(t, (bool, int, float, complex))):
            raise DTypeError("a direction must consist of numbers", got=type(t).__name__)
        if jnp.iscomplexobj(t) and not jnp.iscomplexobj(p):
            raise DTypeError(
                "a complex direction at a real point", got=str(jax.dtypes.result_type(t)), remedy="take its real part"
            )
    return jax.tree.map(lambda p, t: jnp.asarray(t, jax.dtypes.result_type(p)), primals, tangents)


def jvp(f: Callable[..., Any], primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    """`f(*primals)` and its derivative along `tangents`.

    Raises:
        ShapeError: directions that do not fit. DTypeError: integer primals.
    """
    _require_callable(f, "jvp")
    primals, tangents = tuple(primals), tuple(tangents)
    _match(primals, tangents, "jvp")
    require_inexact(primals, tuple(range(len(primals))), "jvp")
    primals = jax.tree.map(jnp.asarray, primals)
    return jax.jvp(f, primals, _like(primals, tangents))


def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple]]:
    """`f(*primals)` and the function from a cotangent of the result to cotangents of the primals."""
    _require_callable(f, "vjp")
    require_inexact(primals, tuple(range(len(primals))), "vjp")
    value, pull = jax.vjp(f, *jax.tree.map(jnp.asarray, primals))

    def checked(cotangent: Any) -> tuple:
        _match(value, cotangent, "vjp")
        return pull(_like(value, cotangent))

    return value, checked


def _size(tree: Any) -> int:
    return sum(math.prod(jnp.shape(x)) for x in jax.tree.leaves(tree))


def jacobian(
    f: Callable[..., Any], argnums: ArgNums = 0, *, method: Literal["auto", "forward", "reverse"] = "auto"
) -> Callable[..., Any]:
    """The dense Jacobian: result shape + argument shape for each pair of leaves.

    Args:
        method: "forward" (one jvp an input), "reverse" (one vjp an output), "auto" the one with fewer.
    """
    _require_callable(f, "jacobian")
    if method not in ("auto", "forward", "reverse"):
        raise InputError(f"unknown method {method!r}", remedy=did_you_mean(method, ("auto", "forward", "reverse")))

    @functools.wraps(f, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        require_real(args, argnums, "jacobian")
        if not all(jax.tree.leaves(args[k]) for k in _positions(argnums, len(args), "jacobian")):
            raise InputError("jacobian: an argument holds no arrays", got=[type(a).__name__ for a in args])
        chosen = method
        if chosen == "auto":
            numbers = _positions(argnums, len(args), "jacobian")
            outputs = _size(jax.eval_shape(f, *args, **kwargs))
            chosen = "forward" if sum(_size(args[k]) for k in numbers) <= outputs else "reverse"
        return (jax.jacfwd if chosen == "forward" else jax.jacrev)(f, argnums)(*args, **kwargs)

    return call


def hessian(f: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """Second derivatives of a real scalar function, forward over reverse."""
    _require_callable(f, "hessian")
    inner = jax.jacfwd(jax.jacrev(_scalar(f, False, "hessian"), argnums), argnums)

    @functools.wraps(f, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        require_real(args, argnums, "hessian")
        if not all(jax.tree.leaves(args[k]) for k in _positions(argnums, len(args), "hessian")):
            raise InputError("hessian: an argument holds no arrays", got=[type(a).__name__ for a in args])
        return inner(*args, **kwargs)

    return call


def hvp(f: Callable[[Any], Any], x: Any, v: Any) -> Any:
    """Hessian of a real scalar function at `x` times `v`, at about four evaluations of f."""
    _require_callable(f, "hvp")
    _match(x, v, "hvp")
    require_inexact((x,), 0, "hvp")
    x = jax.tree.map(jnp.asarray, x)
    return jax.jvp(jax.grad(_scalar(f, False, "hvp")), (x,), (_like(x, v),))[1]


def directional(
    f: Callable[[Any], Any], x: Any, v: Any, order: int = 1, *, method: Literal["nested", "taylor"] = "nested"
) -> Any:
    """d^n/dt^n f(x + t v) at t = 0.

    Args:
        order: n >= 0.
        method: "nested" forward derivatives (faster on CPU at every order measured, 2 to 6); "taylor" is jax's jet, whose cost
            grows polynomially instead of exponentially with n.
    """
    _require_callable(f, "directional")
    if isinstance(order, bool) or not isinstance(order, int) or order < 0:
        raise InputError("directional: order must be an integer >= 0", got=order)
    _match(x, v, "directional")
    require_inexact((x,), 0, "directional")
    x = jax.tree.map(jnp.asarray, x)
    v = _like(x, v)
    if order == 0:
        return f(x)
    if method == "taylor":
        from jax.experimental import jet

        leaves, structure = jax.tree.flatten(x)
        directions = jax.tree.leaves(v)
        series = [[d] + [jnp.zeros_like(d)] * (order - 1) for d in directions]
        _, terms = jet.jet(lambda *a: f(jax.tree.unflatten(structure, a)), tuple(leaves), tuple(series))
        return jax.tree.map(lambda t: t[order - 1], terms, is_leaf=lambda t: isinstance(t, list))
    if method != "nested":
        raise InputError(f"unknown method {method!r}", remedy=did_you_mean(method, ("nested", "taylor")))
    g = f
    for _ in range(order):
        g = _along(g, v)
    return g(x)


def _along(g: Callable[[Any], Any], v: Any) -> Callable[[Any], Any]:
    return lambda y: jax.jvp(g, (y,), (v,))[1]
