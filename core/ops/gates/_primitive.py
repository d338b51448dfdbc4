"""Running a program as a JAX primitive with rules for every transformation.

`gates_run` and `gates_prepare` are primitives of their own, so that one function has it all: values and first reverse
derivatives by the reversible (adjoint) rule with the memory of a few states; forward mode; vmap through leading axes; higher
orders through the plain scan. On the CPU the compiled kernel serves them where it is installed; the rules are the same.
"""

from functools import cache, partial

import jax
import jax.core
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Complex

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops.gates import _native, _xla
from sciax.core.ops.gates._program import Program

IMPLEMENTATIONS = ("auto", "native", "xla")


def gates_run(
    psi: Complex[Array, "*batch amplitudes"],
    coefficients: Complex[Array, "*batch gates 4"],
    *,
    program: Program,
    implementation: str = "auto",
) -> Complex[Array, "*batch amplitudes"]:
    """Apply a unitary program to states.

    Args:
        psi: amplitudes, qubit 0 the least significant bit of the index.
        coefficients: A0, A1, B0, B1 of each instruction, of the dtype of `psi`.
        program: the instructions; together with the coefficients each must be unitary, since derivatives undo them. Use
            `run_plain` for maps that are not.
        implementation: "xla"; "native" (compiled CPU kernel); or "auto", native where it exists.

    Raises:
        ShapeError, DTypeError: arrays that do not fit the program; InputError: an unknown implementation.
    """
    psi, coefficients = jnp.asarray(psi), jnp.asarray(coefficients)
    _check(coefficients, program, implementation)
    if psi.dtype != coefficients.dtype:
        raise DTypeError("state and coefficients differ in dtype", got=f"{psi.dtype}, {coefficients.dtype}")
    if psi.ndim < 1 or psi.shape[-1] != 1 << program.num_qubits:
        raise ShapeError(
            "not a state of the program's register", got=psi.shape, expected=f"(..., {1 << program.num_qubits})"
        )
    batch = jnp.broadcast_shapes(psi.shape[:-1], coefficients.shape[:-2])
    psi = jnp.broadcast_to(psi, batch + psi.shape[-1:])
    coefficients = jnp.broadcast_to(coefficients, batch + coefficients.shape[-2:])
    return _run_p.bind(psi, coefficients, program=program, implementation=implementation)


def gates_prepare(
    coefficients: Complex[Array, "*batch gates 4"], *, program: Program, implementation: str = "auto"
) -> Complex[Array, "*batch amplitudes"]:
    """`gates_run` from |0...0>, whose array is never made: the forward pass needs one state of memory.

    Raises: as `gates_run`.
    """
    coefficients = jnp.asarray(coefficients)
    _check(coefficients, program, implementation)
    return _prepare_p.bind(coefficients, program=program, implementation=implementation)


def _check(coefficients, program, implementation):
    if implementation not in IMPLEMENTATIONS:
        raise InputError("unknown implementation", got=implementation, expected=", ".join(IMPLEMENTATIONS))
    if implementation == "native":
        _native.require()
    if not jnp.issubdtype(coefficients.dtype, jnp.complexfloating):
        raise DTypeError(
            "gate coefficients must be complex", got=coefficients.dtype, expected="complex64 or complex128"
        )
    if coefficients.ndim < 2 or coefficients.shape[-2:] != (program.num_instructions, 4):
        raise ShapeError(
            "coefficients do not fit the program",
            got=coefficients.shape,
            expected=f"(..., {program.num_instructions}, 4)",
        )


# -- run and prepare: values ------------------------------------------------------------------------------------------------

_run_p = Primitive("sciax_gates_run")
_prepare_p = Primitive("sciax_gates_prepare")
_tangent_p = Primitive("sciax_gates_tangent")
_adjoint_p = Primitive("sciax_gates_adjoint")
_adjoint_p.multiple_results = True


@cache
def _compiled(primitive, parameters):
    return jax.jit(partial(primitive.bind, **dict(parameters)))


def _eager(primitive):
    def impl(*arrays, **parameters):
        with jax.disable_jit(False):  # under disable_jit the primitive would call itself for ever
            return _compiled(primitive, tuple(sorted(parameters.items())))(*arrays)

    return impl


def _shape(like, program):
    return jax.core.ShapedArray((*like.shape[:-2], 1 << program.num_qubits), like.dtype)


def _run_xla(psi, coefficients, *, program, implementation):
    return _xla.run_plain(psi, coefficients, program=program)


def _run_native(psi, coefficients, *, program, implementation):
    return _native.run(psi, coefficients, program=program)


def _prepare_xla(coefficients, *, program, implementation):
    start = _xla.zero_state(program, coefficients.dtype, coefficients.shape[:-2])
    return _xla.run_plain(start, coefficients, program=program)


def _prepare_native(coefficients, *, program, implementation):
    if program.repeats == 1:
        return _native.prepare(coefficients, program=program)
    start = _xla.zero_state(program, coefficients.dtype, coefficients.shape[:-2])
    return _native.run(start, coefficients, program=program)


def _adjoint_xla(psi_out, coefficients, cotangent, *, program, implementation):
    return _xla.run_adjoint(psi_out, coefficients, cotangent, program=program)[1:]


def _adjoint_native(psi_out, coefficients, cotangent, *, program, implementation):
    if program.repeats == 1:
        return _native.adjoint(psi_out, coefficients, cotangent, program=program)[1:]
    return _native.adjoint_repeated(psi_out, coefficients, cotangent, program=program)[1:]


def _tangent_xla(psi, coefficients, psi_out, dpsi, dcoefficients, *, program, implementation):
    return _xla.run_tangent(psi, coefficients, dpsi, dcoefficients, program=program)


def _lower(primitive, xla, native):
    multiple = primitive.multiple_results
    mlir.register_lowering(primitive, mlir.lower_fun(xla, multiple_results=multiple))

    def on_cpu(*arrays, program, implementation):
        compiled = native if implementation != "xla" and _native.available() else None
        return (xla if compiled is None else compiled)(*arrays, program=program, implementation=implementation)

    mlir.register_lowering(primitive, mlir.lower_fun(on_cpu, multiple_results=multiple), platform="cpu")


_run_p.def_impl(_eager(_run_p))
_prepare_p.def_impl(_eager(_prepare_p))
_tangent_p.def_impl(_eager(_tangent_p))
_adjoint_p.def_impl(_eager(_adjoint_p))
_run_p.def_abstract_eval(lambda psi, c, *, program, implementation: _shape(c, program))
_prepare_p.def_abstract_eval(lambda c, *, program, implementation: _shape(c, program))
_tangent_p.def_abstract_eval(lambda psi, c, out, dpsi, dc, *, program, implementation: _shape(c, program))
_adjoint_p.def_abstract_eval(
    lambda out, c, ct, *, program, implementation: (_shape(c, program), jax.core.ShapedArray(c.shape, c.dtype))
)
_lower(_run_p, _run_xla, _run_native)
_lower(_prepare_p, _prepare_xla, _prepare_native)
_lower(_tangent_p, _tangent_xla, None)
_lower(_adjoint_p, _adjoint_xla, _adjoint_native)


# -- batching: every array carries the batch as leading axes -----------------------------------------------------------------


def _batch_rule(primitive):
    def rule(arrays, axes, **parameters):
        size = next(a.shape[d] for a, d in zip(arrays, axes) if d is not None)
        moved = [
            jnp.broadcast_to(a, (size, *a.shape)) if d is None else jnp.moveaxis(a, d, 0) for a, d in zip(arrays, axes)
        ]
        out = primitive.bind(*moved, **parameters)
        return (out, [0] * len(out)) if primitive.multiple_results else (out, 0)

    return rule


for _p in (_run_p, _prepare_p, _tangent_p, _adjoint_p):
    batching.primitive_batchers[_p] = _batch_rule(_p)


# -- derivatives ------------------------------------------------------------------------------------------------------------


def _dense(tangent, like):
    return jnp.zeros_like(like) if type(tangent) is ad.Zero else tangent


def _run_jvp(primals, tangents, **parameters):
    psi, c = primals
    out = _run_p.bind(psi, c, **parameters)
    dpsi, dc = (_dense(t, p) for t, p in zip(tangents, primals))
    return out, _tangent_p.bind(psi, c, out, dpsi, dc, **parameters)


def _prepare_jvp(primals, tangents, **parameters):
    (c,), (dc,) = primals, tangents
    out = _prepare_p.bind(c, **parameters)
    start = _xla.zero_state(parameters["program"], c.dtype, c.shape[:-2])
    return out, _tangent_p.bind(start, c, out, jnp.zeros_like(start), dc, **parameters)


def _tangent_transpose(cotangent, psi, c, out, dpsi, dc, **parameters):
    if type(cotangent) is ad.Zero:
        return (None,) * 5
    ct_psi, ct_c = _adjoint_p.bind(out, c, cotangent, **parameters)
    return (
        None,
        None,
        None,
        ct_psi if ad.is_undefined_primal(dpsi) else None,
        ct_c if ad.is_undefined_primal(dc) else None,
    )


def _through_xla(primitive, xla):
    """Derivatives of derivatives: by autodiff of the portable implementation."""

    def rule(primals, tangents, **parameters):
        tangents = [_dense(t, p) for t, p in zip(tangents, primals)]
        return jax.jvp(lambda *arrays: xla(*arrays, **parameters), tuple(primals), tuple(tangents))

    return rule


def _tangent_jvp(primals, tangents, **parameters):
    """The tangent is linear in its last two arguments; only a change of the point needs second derivatives."""
    if all(type(t) is ad.Zero for t in tangents[:2]):
        psi, c, out, dpsi, dc = primals
        ddpsi, ddc = _dense(tangents[3], dpsi), _dense(tangents[4], dc)
        return _tangent_p.bind(*primals, **parameters), _tangent_p.bind(psi, c, out, ddpsi, ddc, **parameters)
    return _through_xla(_tangent_p, _tangent_xla)(primals, tangents, **parameters)


def _adjoint_general(psi_out, coefficients, cotangent, *, program, implementation):
    """The adjoint as a function that stays right when its arguments vary off the unitary manifold.

    Second derivatives perturb `psi_out` and the coefficients independently, and `run_adjoint` undoes gates with the dagger,
    whose derivative is that of the inverse only for unitary variations. Here the state is undone with the true inverse.
    """
    inverse = _inverse(coefficients, program)
    reverse = _reversed(program)
    start = _xla.run_plain(psi_out, inverse[..., ::-1, :], program=reverse)
    _, transpose = jax.vjp(lambda p, c: _xla.run_plain(p, c, program=program), start, coefficients)
    ct_psi, ct_c = transpose(cotangent)
    return ct_psi, jnp.where(program.active[:, None], ct_c, 0)


def _inverse(c, program):
    """Coefficients of the inverse of each instruction, from the 2x2 blocks [[A_s, B_s], [B_t, A_t]], t the partner's index."""
    flips = program.flips_parity.astype(bool)[:, None]
    diagonal = (program.rows[:, 0] == 0)[:, None]
    a, b = c[..., :2], c[..., 2:]
    other_a, other_b = (jnp.where(flips, v[..., ::-1], v) for v in (a, b))
    det = jnp.where(diagonal, (a + b) ** 2, a * other_a - b * other_b)
    det = jnp.where(det == 0, 1, det)  # only coefficients that no amplitude selects can be singular
    inv_a = jnp.where(diagonal, a + b, other_a) / det
    inv_b = jnp.where(diagonal, 0, -b) / det
    return jnp.concatenate([inv_a, inv_b], axis=-1)


@cache
def _reversed(program: Program) -> Program:
    return Program.from_rows(program.num_qubits, program.rows[::-1], program.repeats)


ad.primitive_jvps[_run_p] = _run_jvp
ad.primitive_jvps[_prepare_p] = _prepare_jvp
ad.primitive_jvps[_tangent_p] = _tangent_jvp
ad.primitive_transposes[_tangent_p] = _tangent_transpose
ad.primitive_jvps[_adjoint_p] = _through_xla(_adjoint_p, _adjoint_general)
