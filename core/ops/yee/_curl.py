"""Staggered curls on the Yee lattice: six separate arrays, zero-filled shifts, per-axis inverse spacings.

Layout (Yee 1966): component arrays all have the shape (nx, ny, nz); entry (i, j, k) of Ex sits at (i+1/2, j, k), of Hx at
(i, j+1/2, k+1/2), cyclically. A zero-filled shift is a perfect conductor at the far face; a periodic or Bloch axis adds the
wrapped plane times a phase. Separate arrays and `lax.pad` are on purpose: on XLA's CPU back end `jnp.roll` and a stacked
(3, ...) array are two to three times slower.
"""

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Inexact

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops._registry import Sample, operator

Component = Inexact[Array, "nx ny nz"] | None
Spacing = Inexact[Array, " n"] | Inexact[Array, ""] | float | None


def shift(field, axis: int, offset: int, phase=None):
    """`field[i - offset]` along `axis` (offset +1 or -1), zero beyond the edge, or the wrapped plane times `phase`."""
    n = field.shape[axis]
    pads = [(0, 0, 0)] * field.ndim
    pads[axis] = (offset, -offset, 0)
    zero = jnp.zeros((), field.dtype)
    moved = lax.pad(field, zero, pads)
    if phase is None:
        return moved
    # offset -1 needs field[0] at the end, offset +1 needs field[-1] at the start
    edge = lax.slice_in_dim(field, 0, 1, axis=axis) if offset < 0 else lax.slice_in_dim(field, n - 1, n, axis=axis)
    pads[axis] = (n - 1, 0, 0) if offset < 0 else (0, n - 1, 0)
    factor = phase if offset < 0 else 1 / phase
    return moved + lax.pad(edge * jnp.asarray(factor, field.dtype), zero, pads)


def along(values, axis: int):
    """A 1-D array laid along one of three axes; scalars pass."""
    values = jnp.asarray(values)
    return values if values.ndim == 0 else values.reshape([-1 if a == axis else 1 for a in range(3)])


def difference(field, axis: int, inverse, forward: bool, phase=None):
    """Forward (f[i+1]-f[i]) or backward (f[i]-f[i-1]) difference times the inverse spacing."""
    d = shift(field, axis, -1, phase) - field if forward else field - shift(field, axis, 1, phase)
    return d * along(inverse, axis)


def _check(components, spacings, wrap, who: str) -> None:
    shapes = {c.shape for c in components if c is not None}
    if len(shapes) != 1:
        raise ShapeError(
            f"{who}: components must be given and have one shape", got=sorted(shapes), expected="one 3-D shape"
        )
    (shape,) = shapes
    if len(shape) != 3:
        raise ShapeError(f"{who}: components are 3-D arrays", got=shape, expected="(nx, ny, nz)")
    for c in components:
        if c is not None and not jnp.issubdtype(c.dtype, jnp.inexact):
            raise DTypeError(
                f"{who}: fields must be floating or complex", got=c.dtype, expected="float32, float64, complex"
            )
    for axis, (inverse, phase) in enumerate(zip(spacings, wrap)):
        if inverse is not None and np.ndim(inverse) not in (0, 1):
            raise ShapeError(f"{who}: inverse spacing of axis {axis}", got=np.shape(inverse), expected="() or (n,)")
        if inverse is not None and np.ndim(inverse) == 1 and np.shape(inverse)[0] != shape[axis]:
            raise ShapeError(f"{who}: inverse spacing of axis {axis}", got=np.shape(inverse), expected=(shape[axis],))
        if phase is not None and inverse is None:
            raise InputError(f"{who}: axis {axis} is periodic but has no spacing")


def _curl(f, inverses, wrap, forward: bool):
    def d(component, axis):
        if f[component] is None or inverses[axis] is None:
            return None
        return difference(f[component], axis, inverses[axis], forward, wrap[axis])

    out = []
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        plus, minus = d(c, b), d(b, c)
        out.append(plus if minus is None else -minus if plus is None else plus - minus)
    return tuple(out)


def _oracle(fx, fy, fz, inv_x, inv_y, inv_z, *, wrap=(None, None, None), forward):
    f, inverses, out = (fx, fy, fz), (inv_x, inv_y, inv_z), []

    def d(a, axis):
        # Index by index along the axis: nothing shared with the shifts above.
        a = np.moveaxis(np.asarray(a), axis, 0)
        n, res = a.shape[0], np.zeros(a.shape, np.result_type(a, np.float64))
        inverse = np.broadcast_to(inverses[axis], (n,))
        for i in range(n):
            if forward:
                other = a[i + 1] if i + 1 < n else (0 if wrap[axis] is None else wrap[axis] * a[0])
                res[i] = (other - a[i]) * inverse[i]
            else:
                other = a[i - 1] if i > 0 else (0 if wrap[axis] is None else a[n - 1] / wrap[axis])
                res[i] = (a[i] - other) * inverse[i]
        return np.moveaxis(res, 0, axis)

    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        out.append(d(f[c], b) - d(f[b], c))
    return tuple(out)


def _oracle_e(*args, **kwargs):
    return _oracle(*args, **kwargs, forward=True)


def _oracle_h(*args, **kwargs):
    return _oracle(*args, **kwargs, forward=False)


def _samples(rng: np.random.Generator) -> Iterable[Sample]:
    def fields(shape, scale=1.0):
        return tuple(scale * rng.standard_normal(shape) for _ in range(3))

    yield Sample(
        "ordinary", (*fields((6, 5, 4)), rng.uniform(0.5, 2, 6), rng.uniform(0.5, 2, 5), rng.uniform(0.5, 2, 4))
    )
    yield Sample("uniform spacing", (*fields((4, 4, 4)), np.array(0.5), np.array(0.5), np.array(0.5)))
    yield Sample("size one", (*fields((1, 1, 1)), np.array(1.0), np.array(1.0), np.array(1.0)))
    yield Sample("empty", (*fields((0, 3, 2)), np.array(1.0), np.array(1.0), np.array(1.0)))
    yield Sample("flat, odd", (*fields((7, 5, 1)), rng.uniform(0.5, 2, 7), np.array(1.0), np.array(0.0)))
    strided = tuple(rng.standard_normal((4, 6, 5)).transpose(2, 0, 1) for _ in range(3))
    yield Sample("non-contiguous", (*strided, np.array(1.0), np.array(2.0), np.array(3.0)))
    yield Sample("badly scaled", (*fields((4, 3, 3), 1e6), np.array(1e-6), np.array(1e-6), np.array(1e-6)))
    yield Sample(
        "periodic", (*fields((5, 4, 3)), np.array(1.0), np.array(2.0), np.array(1.0)), {"wrap": (1.0, None, 1.0)}
    )


def _flops(fx, fy, fz, *args, **kwargs):
    return 3 * 5 * float(np.size(fx))


def _bytes(fx, fy, fz, *args, **kwargs):
    return 6.0 * np.size(fx) * np.dtype(fx.dtype).itemsize


@operator("yee.curl_e", oracle=_oracle_e, samples=_samples, flops=_flops, bytes=_bytes)
def curl_e(
    ex: Component,
    ey: Component,
    ez: Component,
    inv_x: Spacing,
    inv_y: Spacing,
    inv_z: Spacing,
    *,
    wrap: tuple = (None, None, None),
) -> tuple[Component, Component, Component]:
    """Curl of E, located at H: (dEz/dy - dEy/dz, ...) by forward differences.

    Args:
        ex, ey, ez: components of one shape (nx, ny, nz); None for a component that is identically zero (2-D, 1-D).
        inv_x, inv_y, inv_z: inverse spacing between neighbouring nodes (1/m), a scalar or one value an index; None for an
            axis along which nothing varies.
        wrap: for each axis None (E is zero beyond the far face: a conductor) or the factor of a wrapped plane,
            f(x + L) = factor f(x): 1 for periodic, exp(i k L) for Bloch.

    Returns:
        Three arrays, or None where no term exists.

    Raises:
        ShapeError, DTypeError, InputError: see the messages.

    Source: K. S. Yee, IEEE Trans. Antennas Propag. 14 (1966) 302.
    """
    _check((ex, ey, ez), (inv_x, inv_y, inv_z), wrap, "curl_e")
    return _curl((ex, ey, ez), (inv_x, inv_y, inv_z), wrap, True)


@operator("yee.curl_h", oracle=_oracle_h, samples=_samples, flops=_flops, bytes=_bytes)
def curl_h(
    hx: Component,
    hy: Component,
    hz: Component,
    inv_x: Spacing,
    inv_y: Spacing,
    inv_z: Spacing,
    *,
    wrap: tuple = (None, None, None),
) -> tuple[Component, Component, Component]:
    """Curl of H, located at E, by backward differences; arguments as `curl_e`, spacings between neighbouring half nodes."""
    _check((hx, hy, hz), (inv_x, inv_y, inv_z), wrap, "curl_h")
    return _curl((hx, hy, hz), (inv_x, inv_y, inv_z), wrap, False)
