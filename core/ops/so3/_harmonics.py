"""Real spherical harmonics as polynomials in x, y, z: no angles, so no poles and no NaN in any derivative."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import DTypeError, InputError, ShapeError, did_you_mean
from sciax.core.ops._registry import Sample, operator

NORMALISATIONS = ("component", "integral", "norm")


def _oracle(vectors, *, lmax, normalise=True, normalisation="component"):
    """Associated Legendre functions of SciPy, in angles."""
    from scipy.special import gammaln, lpmv

    r = np.linalg.norm(vectors, axis=-1)
    safe = np.where(r == 0, 1, r)
    ux, uy, uz = (vectors / safe[..., None]).T
    theta, phi = np.clip(uy, -1, 1), np.arctan2(ux, uz)  # polar axis y; azimuth from z to x
    rows = []
    for l in range(lmax + 1):
        scale = {"component": 1.0, "norm": (2 * l + 1) ** -0.5, "integral": (4 * np.pi) ** -0.5}[normalisation]
        for m in range(-l, l + 1):
            a = abs(m)
            n = np.sqrt((2 * l + 1) * np.exp(gammaln(l - a + 1) - gammaln(l + a + 1)) * (2 if m else 1)) * (-1) ** a
            angle = np.sin(a * phi) if m < 0 else np.cos(a * phi)
            value = scale * n * lpmv(a, l, theta) * angle
            rows.append(np.where(r == 0, scale if l == 0 else 0.0, value * (1 if normalise else r**l)).T)
    return np.stack(rows)


def _samples(rng):
    v = rng.normal(size=(5, 3))
    yield Sample("ordinary", (v,), {"lmax": 3})
    yield Sample("one, not normalised", (v[:1],), {"lmax": 2, "normalise": False, "normalisation": "integral"})
    yield Sample("empty", (v[:0],), {"lmax": 1})
    scale = np.array([[1e-3], [1e3], [10.0]])
    yield Sample("badly scaled", (v[:3] * scale,), {"lmax": 2, "normalisation": "norm"})


@operator(
    "so3.spherical_harmonics",
    oracle=_oracle,
    samples=_samples,
    flops=lambda vectors, *, lmax, **_: 6.0 * (lmax + 1) ** 2 * vectors.shape[0],
    unsupported={"complex": "vectors are real"},
)
def spherical_harmonics(
    vectors: Float[Array, "*batch 3"], *, lmax: int, normalise: bool = True, normalisation: str = "component"
) -> Float[Array, "components *batch"]:
    """Y_lm of each vector for l = 0..lmax, components first: (lmax + 1)² rows in the order l, then m = -l..l.

    Solid harmonics r^l Y_lm by the recursion of the Legendre polynomials in the polar coordinate y and r², times Re and Im of
    (z + ix)^m. At the zero vector Y_0 is its constant, all others and all gradients are 0.

    Args:
        normalise: evaluate at v/|v|; otherwise the homogeneous polynomials |v|^l Y.
        normalisation: "component": |Y_l|² = 2l + 1; "norm": |Y_l| = 1; "integral": ∫ Y² = 1 over the sphere.

    Raises:
        InputError: lmax < 0, unknown normalisation. DTypeError: complex vectors. ShapeError: last axis not 3.
    """
    if normalisation not in NORMALISATIONS:
        raise InputError(f"unknown normalisation {normalisation!r}", remedy=did_you_mean(normalisation, NORMALISATIONS))
    if lmax < 0:
        raise InputError("a degree is not negative", got=lmax)
    if vectors.ndim < 1 or vectors.shape[-1] != 3:
        raise ShapeError("vectors do not have three components", got=vectors.shape, expected="(..., 3)")
    if not jnp.issubdtype(vectors.dtype, jnp.floating):
        raise DTypeError("vectors are not real floating numbers", got=vectors.dtype, expected="float32 or float64")
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    if normalise:
        # scaled by the largest component first: squares of 1e-30 or 1e30 would leave float32
        big = jnp.maximum(jnp.maximum(jnp.abs(x), jnp.abs(y)), jnp.abs(z))
        zero = big == 0
        big = jnp.where(zero, 1, big)
        x, y, z = x / big, y / big, z / big
        r = jnp.sqrt(jnp.where(zero, 1, x * x + y * y + z * z))
        x, y, z = x / r, y / r, z / r
        r2 = None  # is 1
    else:
        r2 = x * x + y * y + z * z
    one = jnp.ones_like(x)
    # cos_[m] + i sin_[m] = (z + ix)^m
    cos_, sin_ = [one], [jnp.zeros_like(x)]
    for m in range(1, lmax + 1):
        cos_.append(z if m == 1 else z * cos_[-1] - x * sin_[-1])
        sin_.append(x if m == 1 else z * sin_[-1] + x * cos_[m - 1])
    rows: list[list] = [[None] * (2 * l + 1) for l in range(lmax + 1)]
    for m in range(lmax + 1):
        before, now = None, one * float(math.prod(range(1, 2 * m, 2)))  # (2m-1)!!
        for l in range(m, lmax + 1):
            if l > m:
                step = (2 * l - 1) / (l - m) * y * now
                if before is not None:
                    down = (l + m - 1) / (l - m) * before
                    step = step - (down if r2 is None else down * r2)
                before, now = now, step
            scale = {"component": 1.0, "norm": (2 * l + 1) ** -0.5, "integral": (4 * math.pi) ** -0.5}[normalisation]
            n = math.sqrt((2 * l + 1) * math.factorial(l - m) / math.factorial(l + m) * (2 if m else 1)) * scale
            rows[l][l + m] = n * now * cos_[m] if m else n * now
            if m:
                rows[l][l - m] = n * now * sin_[m]
    out = jnp.stack([c for row in rows for c in row])
    if normalise and lmax > 0:
        degree = jnp.asarray([l > 0 for l in range(lmax + 1) for _ in range(2 * l + 1)]).reshape(-1, *([1] * x.ndim))
        out = jnp.where(degree & zero, 0, out)
    return out
