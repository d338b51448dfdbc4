"""Custom derivative rules, checked against finite differences when they are registered."""

from collections.abc import Callable
from typing import Any

import jax

from sciax.core.autodiff._check import check_gradients
from sciax.core.errors import InputError


def custom_rule(
    f: Callable[..., Any],
    *,
    jvp: Callable[..., Any] | None = None,
    fwd: Callable[..., Any] | None = None,
    bwd: Callable[..., Any] | None = None,
    check_at: tuple,
    rtol: float | None = None,
) -> Any:
    """`f` with a derivative rule of its own, refused if the rule is wrong at `check_at`.

    Args:
        jvp: jvp(primals, tangents) -> (value, tangent), as `jax.custom_jvp`.
        fwd, bwd: as `jax.custom_vjp`. Give either `jvp`, or both of these.
        check_at: arguments at which the rule is compared with finite differences of f.
        rtol: tolerance; default by dtype.

    Raises:
        GradientError: the rule disagrees. InputError: no rule, or both kinds.
    """
    if (jvp is None) == (fwd is None and bwd is None) or (fwd is None) != (bwd is None):
        raise InputError("custom_rule needs either jvp=, or fwd= and bwd=")
    if not isinstance(check_at, tuple) or not check_at:
        raise InputError("custom_rule: check_at must be a tuple of arguments", got=check_at)
    if jvp is not None:
        ruled: Any = jax.custom_jvp(f)
        ruled.defjvp(jvp)
        modes: tuple[str, ...] = ("forward", "reverse")
    else:
        ruled = jax.custom_vjp(f)
        ruled.defvjp(fwd, bwd)
        modes = ("reverse",)
    check_gradients(ruled, *check_at, modes=modes, rtol=rtol)
    return ruled
