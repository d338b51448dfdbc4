"""Sums of Pauli strings on states, grouped by X mask: one permuted multiply a group, never a matrix.

A string is P = i^y X^x Z^z with bit masks x, z and y = popcount(x & z) the number of its Y factors, so that
(P psi)[i] = (-i)^y (-1)^{parity(i & z)} psi[i ^ x].
"""

from dataclasses import dataclass
from functools import cache, cached_property, partial

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Complex, Float

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops.gates import _native

_UINT = np.uint32


@dataclass(frozen=True)
class PauliTerms:
    """Static strings of a Pauli sum, sorted by X mask; the coefficients are an array given at run time.

    Attributes:
        num_qubits: width of the register.
        table: (K, 3) int64 rows x, z, y as bytes.
    """

    num_qubits: int
    table: bytes

    @classmethod
    def of(cls, num_qubits: int, x, z) -> "PauliTerms":
        """From masks, which must be sorted by x.

        Raises:
            InputError: unsorted, or outside the register.
        """
        x, z = np.asarray(x, np.int64).reshape(-1), np.asarray(z, np.int64).reshape(-1)
        if np.any(np.diff(x) < 0):
            raise InputError("Pauli terms must be sorted by X mask")
        if x.size and (min(x.min(), z.min()) < 0 or max(x.max(), z.max()) >= 1 << num_qubits):
            raise InputError(f"a Pauli string acts outside the register of {num_qubits} qubits")
        return cls(num_qubits, np.stack([x, z, np.bitwise_count(x & z).astype(np.int64)], 1).tobytes())

    @cached_property
    def rows(self) -> np.ndarray:
        return np.frombuffer(self.table, np.int64).reshape(-1, 3)

    @property
    def count(self) -> int:
        return len(self.table) // 24

    def __hash__(self) -> int:
        return hash((self.num_qubits, self.table))


def _columns(terms: PauliTerms, dtype):
    rows = terms.rows
    last = np.append(rows[1:, 0] != rows[:-1, 0], True) if len(rows) else np.zeros(0, bool)
    phases = np.array([1, -1j, -1, 1j])[rows[:, 2] & 3].astype(dtype)
    return jnp.asarray(rows[:, 0].astype(_UINT)), jnp.asarray(rows[:, 1].astype(_UINT)), jnp.asarray(phases), last


def _partner(psi, index):
    return psi.at[..., index].get(mode="promise_in_bounds", unique_indices=True)


def _signs(index, z, real):
    return 1 - 2 * (lax.population_count(index & z) & _UINT(1)).astype(real)


def _apply_xla(psi, coefficients, *, terms: PauliTerms):
    if terms.count == 0:
        return jnp.zeros_like(psi)
    index = lax.iota(_UINT, psi.shape[-1])
    x, z, phase, last = _columns(terms, psi.dtype)
    weights = jnp.moveaxis(coefficients * phase, -1, 0)

    def body(carry, inputs):
        total, diagonal = carry
        w, x, z, last = inputs
        diagonal = diagonal + w[..., None] * _signs(index, z, coefficients.dtype)
        # The gather runs once for each distinct X mask, at the last term that has it.
        total = lax.cond(last, lambda t: t + diagonal * _partner(psi, index ^ x), lambda t: t, total)
        return (total, jnp.where(last, jnp.zeros((), psi.dtype), diagonal)), None

    zero = jnp.zeros_like(psi)
    return lax.scan(body, (zero, zero), (weights, x, z, jnp.asarray(last)))[0][0]


def _apply_native(psi, coefficients, *, terms: PauliTerms):
    if terms.count == 0:
        return jnp.zeros_like(psi)
    return _native.pauli(psi, coefficients, num_qubits=terms.num_qubits, terms=terms.rows)


def _apply_cpu(psi, coefficients, *, terms: PauliTerms):
    return (_apply_native if _native.available() else _apply_xla)(psi, coefficients, terms=terms)


def _overlaps_xla(bra, psi, *, terms: PauliTerms):
    real = bra.real.dtype
    if terms.count == 0:
        return jnp.zeros((*psi.shape[:-1], 0), real)
    index = lax.iota(_UINT, psi.shape[-1])
    x, z, phase, _ = _columns(terms, psi.dtype)

    def body(_, inputs):
        x, z, phase = inputs
        product = bra * _partner(psi, index ^ x) * _signs(index, z, real)
        return None, (phase * product.sum(-1)).real

    return jnp.moveaxis(lax.scan(body, None, (x, z, phase))[1], 0, -1)


_apply_p = Primitive("sciax_pauli_apply")
_overlaps_p = Primitive("sciax_pauli_overlaps")


@cache
def _compiled(primitive, terms):
    return jax.jit(partial(primitive.bind, terms=terms))


def _eager(primitive):
    def impl(*arrays, terms):
        with jax.disable_jit(False):  # under disable_jit the primitive would call itself for ever
            return _compiled(primitive, terms)(*arrays)

    return impl


_apply_p.def_impl(_eager(_apply_p))
_overlaps_p.def_impl(_eager(_overlaps_p))
_apply_p.def_abstract_eval(lambda psi, c, *, terms: jax.core.ShapedArray(psi.shape, psi.dtype))
_overlaps_p.def_abstract_eval(
    lambda bra, psi, *, terms: jax.core.ShapedArray((*psi.shape[:-1], terms.count), np.zeros(0, psi.dtype).real.dtype)
)
mlir.register_lowering(_apply_p, mlir.lower_fun(_apply_xla, multiple_results=False))
mlir.register_lowering(_apply_p, mlir.lower_fun(_apply_cpu, multiple_results=False), platform="cpu")
mlir.register_lowering(_overlaps_p, mlir.lower_fun(_overlaps_xla, multiple_results=False))


def _batch_rule(primitive):
    def rule(arrays, axes, **parameters):
        size = next(a.shape[d] for a, d in zip(arrays, axes) if d is not None)
        moved = [
            jnp.broadcast_to(a, (size, *a.shape)) if d is None else jnp.moveaxis(a, d, 0) for a, d in zip(arrays, axes)
        ]
        return primitive.bind(*moved, **parameters), 0

    return rule


batching.primitive_batchers[_apply_p] = _batch_rule(_apply_p)
batching.primitive_batchers[_overlaps_p] = _batch_rule(_overlaps_p)


# Both are bilinear and are each other's transposes, so derivatives of every order close.


def _bilinear_jvp(primitive):
    def rule(primals, tangents, *, terms):
        a, b = primals
        da, db = tangents
        out = primitive.bind(a, b, terms=terms)
        parts = [primitive.bind(da, b, terms=terms)] if type(da) is not ad.Zero else []
        parts += [primitive.bind(a, db, terms=terms)] if type(db) is not ad.Zero else []
        return out, sum(parts[1:], parts[0])

    return rule


ad.primitive_jvps[_apply_p] = _bilinear_jvp(_apply_p)
ad.primitive_jvps[_overlaps_p] = _bilinear_jvp(_overlaps_p)


def _apply_transpose(ct, psi, c, *, terms):
    if type(ct) is ad.Zero:
        return None, None
    if ad.is_undefined_primal(psi):  # H is Hermitian for real coefficients: its transpose is its conjugate
        return jnp.conj(_apply_p.bind(jnp.conj(ct), c, terms=terms)), None
    return None, _overlaps_p.bind(ct, psi, terms=terms)


def _overlaps_transpose(ct, bra, psi, *, terms):
    if type(ct) is ad.Zero:
        return None, None
    if ad.is_undefined_primal(bra):
        return _apply_p.bind(psi, ct, terms=terms), None
    return None, jnp.conj(_apply_p.bind(jnp.conj(bra), ct, terms=terms))


ad.primitive_transposes[_apply_p] = _apply_transpose
ad.primitive_transposes[_overlaps_p] = _overlaps_transpose


def _check(state, terms: PauliTerms, who: str):
    if not jnp.issubdtype(state.dtype, jnp.complexfloating):
        raise DTypeError(f"{who} works on complex states", got=state.dtype, expected="complex64 or complex128")
    if state.ndim < 1 or state.shape[-1] != 1 << terms.num_qubits:
        raise ShapeError(
            f"{who}: not a state of the register", got=state.shape, expected=f"(..., {1 << terms.num_qubits})"
        )


def pauli_apply(
    psi: Complex[Array, "*batch amplitudes"], coefficients: Float[Array, "*batch terms"], *, terms: PauliTerms
) -> Complex[Array, "*batch amplitudes"]:
    """H psi with H = sum_k c_k P_k, c real.

    Raises:
        DTypeError, ShapeError: arrays that do not fit the terms.
    """
    psi, coefficients = jnp.asarray(psi), jnp.asarray(coefficients)
    _check(psi, terms, "pauli_apply")
    if jnp.issubdtype(coefficients.dtype, jnp.complexfloating):
        raise DTypeError("coefficients of a Hermitian Pauli sum are real", got=coefficients.dtype, expected="float")
    if coefficients.ndim < 1 or coefficients.shape[-1] != terms.count:
        raise ShapeError("coefficients do not fit the terms", got=coefficients.shape, expected=f"(..., {terms.count})")
    batch = jnp.broadcast_shapes(psi.shape[:-1], coefficients.shape[:-1])
    psi = jnp.broadcast_to(psi, batch + psi.shape[-1:])
    coefficients = jnp.broadcast_to(coefficients, batch + coefficients.shape[-1:]).astype(psi.real.dtype)
    return _apply_p.bind(psi, coefficients, terms=terms)


def pauli_overlaps(
    bra: Complex[Array, "*batch amplitudes"], psi: Complex[Array, "*batch amplitudes"], *, terms: PauliTerms
) -> Float[Array, "*batch terms"]:
    """Re sum_i bra[i] (P_k psi)[i] for every string; with bra = conj(psi) the expectation values <P_k>.

    Raises:
        DTypeError, ShapeError: arrays that do not fit the terms.
    """
    bra, psi = jnp.asarray(bra), jnp.asarray(psi)
    _check(bra, terms, "pauli_overlaps")
    _check(psi, terms, "pauli_overlaps")
    bra, psi = jnp.broadcast_arrays(bra, psi)
    return _overlaps_p.bind(bra, psi, terms=terms)
