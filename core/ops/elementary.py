"""Elementary functions that keep to 4 ULP in float32 over their whole range, where XLA's own do not.

An ULP is the spacing of float32 at the exact result; results below the smallest normal number (1.2e-38) may be flushed to
zero, as XLA does on CPU. docs/accuracy/ops.md lists XLA's own functions beside these. float64 goes to XLA's functions; half
precisions are computed in float32. Derivatives are closed forms, of any order, in both modes.

Method: a factor exp(-x^2) loses x^2 ULP if x^2 is rounded, so x is split into a head of 12 bits, whose square is exact, and the
rest. The polynomials were fitted by iterated reweighted least squares to a uniform relative error (below 2e-8 each), their
coefficients rounded to float32 one after the other, lowest first, with the others refitted.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import DTypeError
from sciax.core.ops._registry import Sample, operator

# erf(x) / x - 1 in powers of x^2, |x| < 0.9
_ERF = (0.128379166, -0.376126289, 0.112836242, -0.02685556, 0.00519175315, -0.000803975272, 7.94310035e-05)
# For s = 1 and 1/2: shift k, constant c, head, then the rest of (x + c) exp(s x^2) erfc(sqrt(s) x) in powers of
# t = (x - k) / (x + k), sqrt(s) x in 0.5 .. 10.2 (variable of Shepherd and Laframboise 1981); the constant term is split in
# two, so that it is not rounded
_TAILS = {
    1.0: (
        3.0,
        0.5,
        0.626504004,
        (
            2.51840966e-08,
            -0.0678105205,
            -0.0237811543,
            0.064821221,
            -0.059636906,
            0.0341697186,
            -0.0118813599,
            0.00119355228,
            0.000916983815,
            -0.00026293096,
        ),
    ),
    0.5: (
        4.25,
        0.7071067690849304,
        0.885927379,
        (
            -1.25329276e-08,
            -0.0959565639,
            -0.0333105065,
            0.0914367214,
            -0.0843673721,
            0.0485273115,
            -0.0170030445,
            0.00178646599,
            0.00128621957,
            -0.000382718106,
        ),
    ),
}
# erfinv(x) / x in powers of w - 3.125, w = -log(1 - x^2) < 6.25, and of sqrt(w) - 3.25 above (variables of Giles 2010)
_ERFINV = (
    1.65365458,
    0.240158185,
    -0.00603373535,
    -0.000740710238,
    0.000186795616,
    -1.38821506e-05,
    -1.3893075e-06,
    4.2496697e-07,
    -2.46373784e-08,
    -4.57540006e-09,
    6.58905042e-10,
)
_ERFINV_FAR = (
    3.08388567,
    1.0052588,
    0.00536947884,
    -0.0037446348,
    0.00250068936,
    -0.00173209095,
    0.00094025064,
    -0.000255665858,
)
# (f(x) / x - 1) / x^2 in powers of x^2 for atan |x| < 0.4143, tanh |x| < 0.6, sinh |x| < 1
_ATAN = (-0.333333164, 0.199985281, -0.14244388, 0.1059912, -0.0608986318)
_TANH = (-0.333332986, 0.133319363, -0.0537847169, 0.0207986254, -0.00589796668)
_SINH = (0.166666672, 0.00833331048, 0.000198428956, 2.78221319e-06)
# (exp(r) - 1 - r) / r^2 in powers of r, -0.46 < r < 0.36; log 2 in two parts, of which whole multiples of the first are exact
_EXP = (0.5, 0.166666567, 0.0416664481, 0.00833550934, 0.00139367802, 0.000187700614)
_LOG2 = (0.693145751953125, 1.428606765330187e-06)


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    out = jnp.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        out = out * x + jnp.asarray(c, x.dtype)
    return out


def _head(x: Array) -> Array:
    """x with its last 12 mantissa bits cleared: products of two such numbers are exact."""
    bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
    return jax.lax.bitcast_convert_type(bits & jnp.uint32(0xFFFFF000), jnp.float32)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """a b and its rounding error (Dekker 1971)."""
    p, ah, bh = a * b, _head(a), _head(b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _exp_parts(x: Array, low: Array | float = 0.0) -> tuple[Array, Array]:
    """(p, n) with exp(x + low) = p 2^n, to 0.6 ULP, for -170 < x <= 88 and |low| < 0.1; float32."""
    n = jnp.round(x * (1 / math.log(2)))
    r = ((x - n * _LOG2[0]) - n * _LOG2[1]) + low
    return 1 + (r + r * r * _polynomial(r, _EXP)), n.astype(jnp.int32)


def _times_power_of_2(x: Array, n: Array) -> Array:
    """x 2^n for |n| < 250, in two factors of which each is a normal number."""
    power = lambda k: jax.lax.bitcast_convert_type((k + 127) << 23, jnp.float32)  # noqa: E731
    first = n >> 1
    return x * power(first) * power(n - first)


def _exp_times(factor: Array, x: Array, low: Array | float = 0.0) -> Array:
    """factor exp(x + low), also where the exponential alone underflows."""
    p, n = _exp_parts(x, low)
    return _times_power_of_2(factor * p, n)


def _gauss_times(factor: Array | float, x: Array, s: float) -> Array:
    """factor exp(-s x^2) for s = 1 or 1/2; float32."""
    x = jnp.clip(jnp.abs(x), 0, 10.4 / math.sqrt(s))
    head = _head(x)
    return _exp_times(factor * jnp.ones_like(x), -s * (head * head), -s * ((x - head) * (x + head)))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _gauss(x: Array, s: float) -> Array:
    """exp(-s x^2) for s = 1 or 1/2."""
    if x.dtype != jnp.float32:
        return jnp.exp(-s * x * x)
    return _gauss_times(1.0, x, s)


@_gauss.defjvp
def _gauss_jvp(s: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), out = primals, _gauss(primals[0], s)
    return out, -2 * s * x * out * tangents[0]


def _tail(x: Array, s: float, factor: Array | float = 1.0) -> Array:
    """factor erfc(sqrt(s) |x|) where sqrt(s) |x| > 0.5; the factor comes before the exponential, which may underflow."""
    shift, offset, head, rest = _TAILS[s]
    a = jnp.clip(jnp.abs(x), 0.7, 20) if s == 0.5 else jnp.clip(jnp.abs(x), 0.5, 20)
    ratio = (head + _polynomial((a - shift) / (a + shift), rest)) / (a + offset)
    return _gauss_times(factor * ratio, x, s)


def _function(
    name: str,
    exact: Callable[..., Any],
    derivative: Callable[[Array, Array], Array],
    *,
    wide: Callable[[Array], Array],
    low: float = -4.0,
    high: float = 4.0,
) -> Callable[[Callable[[Array], Array]], Callable[[Array], Array]]:
    """Turn a float32 kernel into a registered operator.

    Args:
        exact: oracle. derivative: from x and f(x). wide: the function for float64. low, high: where its samples lie.
    """

    def samples(rng: np.random.Generator) -> list[Sample]:
        x = rng.uniform(low, high, 6)
        powers = np.clip(x * 10.0 ** np.array([-30, -12, -3, 0, 0, 1]), -80, 60)
        scaled = powers if math.isinf(low) or high > 1 else x * 10.0 ** np.array([-30, -12, -6, -3, -1, 0])
        return [Sample("ordinary", (x,)), Sample("badly scaled", (scaled,)), Sample("empty", (np.zeros(0),))]

    def make(kernel: Callable[[Array], Array]) -> Callable[[Array], Array]:
        @jax.custom_jvp
        def rule(x: Array) -> Array:
            return wide(x) if x.dtype == jnp.float64 else kernel(x)

        @rule.defjvp
        def rule_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
            (x,), out = primals, rule(primals[0])
            return out, derivative(x, out) * tangents[0]

        def function(x: Float[Array, "..."]) -> Float[Array, "..."]:
            x = jnp.asarray(x)
            if not jnp.issubdtype(x.dtype, jnp.floating):
                remedy = "jax.numpy has complex ones" if jnp.iscomplexobj(x) else "x.astype(jnp.float32)"
                raise DTypeError(f"elementary.{name} takes real floating numbers", got=x.dtype, remedy=remedy)
            return rule(x.astype(jnp.float32)).astype(x.dtype) if x.dtype.itemsize < 4 else rule(x)

        function.__doc__, function.__module__ = kernel.__doc__, kernel.__module__
        function.__name__ = function.__qualname__ = kernel.__name__
        register = operator(
            f"elementary.{name}",
            oracle=exact,
            samples=samples,
            flops=lambda x: 30.0 * np.size(x),
            unsupported={"complex": "a real function; jax.numpy and jax.nn have complex ones"},
        )
        return register(function)

    return make


def _scipy(name: str) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(x)

    return call


_ROOT_PI, _ROOT_2 = math.sqrt(math.pi), math.sqrt(2.0)


@_function("erf", _scipy("erf"), lambda x, y: 2 / _ROOT_PI * _gauss(x, 1.0), wide=jax.lax.erf)
def erf(x: Array) -> Array:
    """erf(x) = 2 / sqrt(pi) integral of exp(-t^2) from 0 to x; any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    a = jnp.minimum(jnp.abs(x), 20)
    far = jnp.copysign(1 - _tail(x, 1.0), x)
    return jnp.where(a < 0.9, x + x * _polynomial(a * a, _ERF), far)


@_function("erfc", _scipy("erfc"), lambda x, y: -2 / _ROOT_PI * _gauss(x, 1.0), wide=jax.lax.erfc, high=3.0)
def erfc(x: Array) -> Array:
    """erfc(x) = 1 - erf(x), accurate in the tail; any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    a = jnp.minimum(jnp.abs(x), 20)
    tail = _tail(x, 1.0)
    near = 1 - (x + x * _polynomial(a * a, _ERF))
    return jnp.where(a < 0.5, near, jnp.where(x < 0, 2 - tail, tail))


@_function(
    "erfinv", _scipy("erfinv"), lambda x, y: _ROOT_PI / 2 * jnp.exp(y * y), wide=jax.lax.erf_inv, low=-0.95, high=0.95
)
def erfinv(x: Array) -> Array:
    """The y with erf(y) = x for |x| <= 1 (+-1 give +-inf, |x| > 1 NaN); any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    w = jnp.where(jnp.abs(x) < 0.5, -jnp.log1p(-x * x), -jnp.log((1 - x) * (1 + x)))
    near, far = jnp.minimum(w, 6.25), jnp.sqrt(jnp.clip(w, 6.25, 20))
    ratio = jnp.where(w < 6.25, _polynomial(near - 3.125, _ERFINV), _polynomial(far - 3.25, _ERFINV_FAR))
    return jnp.where(jnp.abs(x) == 1, x * jnp.inf, jnp.where(jnp.abs(x) > 1, jnp.nan, x * ratio))


def _near_half(x: Array) -> Array:
    """Phi(x) for |x| < 0.8."""
    a = x * (1 / _ROOT_2)
    return 0.5 + 0.5 * (a + a * _polynomial(jnp.minimum(a * a, 1), _ERF))


def _ndtr_wide(x: Array) -> Array:
    return 0.5 * jax.lax.erfc(-x / _ROOT_2)


_PHI = 1 / math.sqrt(2 * math.pi)


@_function("ndtr", _scipy("ndtr"), lambda x, y: _PHI * _gauss(x, 0.5), wide=_ndtr_wide)
def ndtr(x: Array) -> Array:
    """Phi(x) = erfc(-x / sqrt 2) / 2, the normal distribution function; any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    tail = _tail(x, 0.5, 0.5)
    return jnp.where(jnp.abs(x) < 0.8, _near_half(x), jnp.where(x < 0, tail, 1 - tail))


@_function(
    "gelu",
    lambda x: x * _scipy("ndtr")(x),
    lambda x, y: ndtr(x) + x * _PHI * _gauss(x, 0.5),
    wide=lambda x: x * _ndtr_wide(x),
)
def gelu(x: Array) -> Array:
    """x Phi(x) (Hendrycks and Gimpel 2016), exact form; any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    low = _tail(x, 0.5, 0.5 * jnp.maximum(x, -20))  # Phi alone underflows sooner than x Phi
    high = x * jnp.where(x < 0.8, _near_half(jnp.clip(x, -0.8, 0.8)), 1 - _tail(x, 0.5, 0.5))
    return jnp.where(x <= -0.8, low, high)


_GELU_1, _GELU_3 = 2 * math.sqrt(2 / math.pi), 2 * math.sqrt(2 / math.pi) * 0.044715


def _gelu_tanh_derivative(x: Array, y: Array) -> Array:
    x = jnp.clip(x, -30, 30)
    s = jax.nn.sigmoid(x * (_GELU_1 + _GELU_3 * x * x))
    return s + x * s * (1 - s) * (_GELU_1 + 3 * _GELU_3 * x * x)


@_function(
    "gelu_tanh",
    lambda x: x / (1 + np.exp(-np.clip(x, -30, 30) * (_GELU_1 + _GELU_3 * np.clip(x, -30, 30) ** 2))),
    _gelu_tanh_derivative,
    wide=lambda x: x * jax.nn.sigmoid(x * (_GELU_1 + _GELU_3 * x * x)),
)
def gelu_tanh(x: Array) -> Array:
    """x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, the tanh form of gelu; any shape, real; <= 4 ULP. Raises DTypeError."""
    z = jnp.clip(x, -30, 30)
    # v = z (c1 + c3 z^2) to twice the precision: exp(v) loses |v| ULP otherwise
    c1, c3 = (jnp.full_like(z, float(np.float32(c))) for c in (_GELU_1, _GELU_3))
    square, square_low = _product(z, z)
    cubic, cubic_low = _product(c3, square)
    cubic_low = cubic_low + c3 * square_low + (_GELU_3 - float(np.float32(_GELU_3))) * square
    total = c1 + cubic
    big = jnp.maximum(c1, cubic)
    total_low = (jnp.minimum(c1, cubic) - (total - big)) + cubic_low + (_GELU_1 - float(np.float32(_GELU_1)))
    v, v_low = _product(z, total)
    v_low = v_low + z * total_low
    v, v_low = jnp.clip(v, -120, 30), jnp.clip(v_low, -0.05, 0.05)
    p, n = _exp_parts(-jnp.abs(v), jnp.where(v < 0, v_low, -v_low))
    e = _times_power_of_2(p, n)
    return jnp.where(v < 0, _times_power_of_2(z * p, n), x) / (1 + e)


def _silu_derivative(x: Array, y: Array) -> Array:
    s = jax.nn.sigmoid(x)
    return s + s * (1 - s) * jnp.clip(x, -200, 200)


@_function("silu", lambda x: x * _scipy("expit")(x), _silu_derivative, wide=jax.nn.silu)
def silu(x: Array) -> Array:
    """x / (1 + exp(-x)); any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    p, n = _exp_parts(-jnp.minimum(jnp.abs(x), 120))
    e = _times_power_of_2(p, n)
    return jnp.where(x < 0, _times_power_of_2(jnp.maximum(x, -120) * p, n), x) / (1 + e)


def _mish_wide(x: Array) -> Array:
    e = jnp.exp(jnp.minimum(x, 30))
    n = e * (e + 2)
    return x * n / (n + 2)


def _mish_derivative(x: Array, y: Array) -> Array:
    z = jnp.clip(x, -200, 30)
    e = jnp.exp(z)
    n = e * (e + 2)
    return n / (n + 2) + z * 4 * e * (e + 1) / (n + 2) ** 2


@_function("mish", lambda x: x * np.tanh(np.logaddexp(0, x)), _mish_derivative, wide=_mish_wide)
def mish(x: Array) -> Array:
    """x tanh(log(1 + exp(x))) (Misra 2019); any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    z = jnp.clip(x, -120, 30)
    p, n = _exp_parts(z)
    e = _times_power_of_2(p, n)
    whole = e * (e + 2) + 2
    # tanh(log(1 + e)) = e (e + 2) / whole, as e less a correction or as 1 less a correction: few roundings reach the result
    low = _times_power_of_2(z * p, n)
    high = jnp.where(x > 20, x, z - z * (2 / whole))
    return jnp.where(x < 0, low - low * (e * (e + 1) / whole), high)


@_function("atan", np.arctan, lambda x, y: 1 / (1 + x * x), wide=jnp.arctan)
def atan(x: Array) -> Array:
    """arctan(x); any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    a = jnp.abs(x)
    # atan(a) = angle + atan(z) with |z| < tan(pi / 8), as in Cephes (Moshier 1989)
    large, middle = a > 2.414213562, a > 0.4142135624
    angle = jnp.where(large, math.pi / 2, jnp.where(middle, math.pi / 4, 0.0)).astype(x.dtype)
    rest = jnp.where(large, math.pi / 2 - 1.57079637, jnp.where(middle, math.pi / 4 - 0.785398185, 0.0)).astype(x.dtype)
    z = jnp.where(
        large, -1 / jnp.maximum(a, 1), jnp.where(middle, (jnp.minimum(a, 3) - 1) / (jnp.minimum(a, 3) + 1), a)
    )
    square = z * z
    return jnp.copysign(angle + (z + (z * (square * _polynomial(square, _ATAN)) + rest)), x)


@_function("tanh", np.tanh, lambda x, y: (1 - y) * (1 + y), wide=jnp.tanh)
def tanh(x: Array) -> Array:
    """tanh(x); any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    z = x * x
    far = jnp.copysign(1 - 2 / (jnp.exp(2 * jnp.minimum(jnp.abs(x), 20)) + 1), x)
    return jnp.where(jnp.abs(x) < 0.6, x + x * (z * _polynomial(jnp.minimum(z, 1), _TANH)), far)


@_function("exp2", np.exp2, lambda x, y: math.log(2) * y, wide=jnp.exp2)
def exp2(x: Array) -> Array:
    """2^x; any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    z = jnp.clip(x, -151, 129)
    n = jnp.round(z)
    r = (z - n) * math.log(2)
    return _times_power_of_2(1 + (r + r * r * _polynomial(r, _EXP)), n.astype(jnp.int32))


@_function("sinh", np.sinh, lambda x, y: _cosh(x), wide=jnp.sinh)
def sinh(x: Array) -> Array:
    """sinh(x); any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    a, z = jnp.abs(x), x * x
    half = jnp.exp(0.5 * a)  # exp(a) overflows before sinh(a) does
    middle = 0.5 * (jnp.exp(jnp.minimum(a, 80)) - jnp.exp(-a))
    far = jnp.copysign(jnp.where(a > 80, (0.5 * half) * half, middle), x)
    return jnp.where(a < 1, x + x * (z * _polynomial(jnp.minimum(z, 1), _SINH)), far)


def _cosh(x: Array) -> Array:
    return cosh(x)


@_function("cosh", np.cosh, lambda x, y: sinh(x), wide=jnp.cosh)
def cosh(x: Array) -> Array:
    """cosh(x); any shape, real; <= 4 ULP in float32. Raises DTypeError."""
    a = jnp.abs(x)
    half = jnp.exp(0.5 * a)
    return jnp.where(a > 80, (0.5 * half) * half, 0.5 * (jnp.exp(jnp.minimum(a, 80)) + jnp.exp(-a)))
