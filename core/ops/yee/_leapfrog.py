"""Many source-free leapfrog steps in a closed box as one operator, with its two implementations."""

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Inexact

from sciax.core.errors import ShapeError
from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.yee._native import leapfrog_native
from sciax.core.ops.yee._step import Coefficients, State, advance_e, advance_h, fence

Field = Inexact[Array, "nx ny nz"]
NONE = (None, None, None)


def _oracle(ex, ey, ez, hx, hy, hz, cx, cy, cz, *, dt, spacing, steps):
    e, h = (
        [np.array(f, np.result_type(f, float)) for f in (ex, ey, ez)],
        [np.array(f, np.result_type(f, float)) for f in (hx, hy, hz)],
    )

    def d(f, axis, forward):
        edge = np.zeros([1 if a == axis else n for a, n in enumerate(f.shape)], f.dtype)
        joined = np.concatenate([f, edge] if forward else [edge, f], axis)
        return np.diff(joined, axis=axis) / spacing[axis]

    for _ in range(steps):
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            h[a] = h[a] - dt * (d(e[c], b, True) - d(e[b], c, True))
        for a, gain in enumerate((cx, cy, cz)):
            b, c = (a + 1) % 3, (a + 2) % 3
            e[a] = e[a] + gain * (d(h[c], b, False) - d(h[b], c, False))
    return (*e, *h)


def _samples(rng: np.random.Generator) -> Iterable[Sample]:
    options = {"dt": 0.4, "spacing": (1.0, 1.2, 0.9), "steps": 3}
    for label, shape, scale in (
        ("ordinary", (5, 4, 6), 1.0),
        ("size one", (1, 1, 1), 1.0),
        ("empty", (0, 2, 3), 1.0),
        ("odd", (3, 7, 5), 1.0),
        ("badly scaled", (4, 3, 3), 1e7),
    ):
        fields = tuple(scale * rng.standard_normal(shape) for _ in range(6))
        yield Sample(label, (*fields, *(rng.uniform(0.1, 0.4, shape) for _ in range(3))), options)


def _pack(fields, gains, dt, spacing):
    shapes = {f.shape for f in (*fields, *gains)}
    if len(shapes) != 1 or fields[0].ndim != 3:
        raise ShapeError("leapfrog: fields and gains are 3-D arrays of one shape", got=sorted(shapes))
    real = jnp.real(fields[0]).dtype
    inverse = tuple(jnp.asarray(1.0 / s, real) for s in spacing)
    k = Coefficients(NONE, tuple(gains), NONE, (jnp.asarray(dt, real),) * 3, inverse, inverse, NONE, (), NONE)
    return State(tuple(fields[:3]), tuple(fields[3:])), k


def _native(ex, ey, ez, hx, hy, hz, cx, cy, cz, *, dt, spacing, steps):
    state, k = _pack((ex, ey, ez, hx, hy, hz), (cx, cy, cz), dt, spacing)
    new, _ = leapfrog_native(state, k, steps)
    return (*new.e, *new.h)


@operator(
    "yee.leapfrog",
    oracle=_oracle,
    samples=_samples,
    flops=lambda ex, *rest, steps, **_: 36.0 * np.size(ex) * steps,
    bytes=lambda ex, *rest, steps, **_: 15.0 * np.size(ex) * np.dtype(ex.dtype).itemsize * steps,
    implementations={"native": _native},
)
def leapfrog(
    ex: Field, ey: Field, ez: Field, hx: Field, hy: Field, hz: Field, cx: Field, cy: Field, cz: Field,
    *, dt: float, spacing: tuple[float, float, float], steps: int,
) -> tuple[Field, ...]:  # fmt: skip
    """H <- H - dt curl E, E <- E + c curl H, `steps` times; fields are zero beyond every face.

    Args:
        ex ... hz: fields; cx, cy, cz: gain of each electric component (dt / permittivity; zero on a conductor).
        dt: time step in units of length; spacing: of the grid.
        steps: how many.

    Returns:
        The six fields after the steps.
    """
    state, k = _pack((ex, ey, ez, hx, hy, hz), (cx, cy, cz), dt, spacing)

    def body(s, _):
        return fence(advance_e(fence(advance_h(s, k)), k)), None

    state, _ = lax.scan(body, state, None, length=steps)
    return (*state.e, *state.h)
