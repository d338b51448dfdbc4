"""Sparse multilinear products: one table, any role as the output, closed under differentiation of any order.

    out[k] = Σ_t v_t Π_o operand_o[index_t,o]        over the terms t with output index k

Its derivative in an operand is the same product with another role as output, so the JAX primitive defined here has itself as
tangent and as transpose: no order of differentiation ever leaves the kernel. (Left to XLA, the transposed graph of the plain
expression no longer fuses and costs five times as much on CPU.)
"""

import functools
import itertools
from dataclasses import dataclass, field

import jax
import jax.extend as jex
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from sciax.core.errors import InputError, ShapeError
from sciax.core.ops._registry import Sample, operator


@dataclass(frozen=True, eq=False)
class Table:
    """Terms of a multilinear product.

    Attributes:
        index: (terms, roles), the component of each role in each term; the last role is the usual output.
        values: (terms,), float64.
        sizes: number of components of each role.
    """

    index: np.ndarray
    values: np.ndarray
    sizes: tuple[int, ...]
    _key: tuple = field(init=False, repr=False)

    def __post_init__(self) -> None:
        index = np.ascontiguousarray(self.index, np.int32).reshape(-1, len(self.sizes))
        values = np.ascontiguousarray(self.values, np.float64)
        if len(index) != len(values):
            raise ShapeError("a table needs one value a term", got=(index.shape, values.shape))
        if len(index) and ((index < 0).any() or (index >= np.array(self.sizes)).any()):
            raise InputError("a term of the table points outside its role's components", expected=self.sizes)
        for name, array in (("index", index), ("values", values)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "_key", (index.tobytes(), values.tobytes(), self.sizes))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._key == other._key

    def __len__(self) -> int:
        return len(self.values)


@functools.cache
def _plan(table: Table, out: int, weights: tuple[int, ...]) -> tuple[int, ...]:
    """The order of the input roles, outermost factor first, that needs the fewest multiplications (weighted by size)."""
    roles = [r for r in range(len(table.sizes)) if r != out]
    best: tuple[float, tuple[int, ...]] | None = None
    for order in itertools.permutations(roles):
        cost = 0.0
        for depth in range(len(order)):
            columns = table.index[:, [out, *order[: depth + 1]]]
            inner = max(weights[r] for r in order[depth:])
            cost += len(np.unique(columns, axis=0)) * inner
        if best is None or cost < best[0]:
            best = (cost, order)
    assert best is not None
    return best[1]


def _kernel(*operands: Array, table: Table, out: int, out_batch: tuple[int, ...]) -> Array:
    """The sum, factored by distributivity: Σ_a A[a] (Σ_b B[b] (Σ_c v C[c]))."""
    roles = [r for r in range(len(table.sizes)) if r != out]
    given = dict(zip(roles, operands))
    dtype = jnp.result_type(*operands)
    batch = jnp.broadcast_shapes(*(x.shape[1:] for x in operands))
    weights = [1] * len(table.sizes)
    for r in roles:
        weights[r] = int(np.prod(given[r].shape[1:])) or 1
    order = _plan(table, out, tuple(weights))
    terms: dict = {}
    for row, value in zip(table.index.tolist(), table.values.tolist()):
        node = terms.setdefault(row[out], {})
        for r in order[:-1]:
            node = node.setdefault(row[r], {})
        node[row[order[-1]]] = node.get(row[order[-1]], 0.0) + value

    def total(node: dict, depth: int) -> Array:
        x, acc = given[order[depth]], None
        for index, inner in node.items():
            if depth + 1 == len(order):
                term = x[index] * np.asarray(inner, dtype) if inner != 1.0 else x[index]
            else:
                term = x[index] * total(inner, depth + 1)
            acc = term if acc is None else acc + term
        return acc  # type: ignore[return-value]

    reduce = tuple(
        a for a, (full, kept) in enumerate(zip(batch, out_batch)) if kept == 1 and full != 1
    )  # axes along which the output role is shared
    rows = []
    for k in range(table.sizes[out]):
        row = jnp.broadcast_to(total(terms[k], 0), batch) if k in terms else jnp.zeros(batch, dtype)
        rows.append(row)
    stacked = jnp.stack(rows) if rows else jnp.zeros((0, *batch), dtype)
    if reduce == (len(batch) - 1,) and len(batch) > 1:
        # a matrix product: XLA's own sum over the contiguous axis does not vectorise on CPU
        stacked = jnp.matmul(stacked, jnp.ones((batch[-1], 1), dtype), precision="highest")
    elif reduce:
        stacked = stacked.sum([a + 1 for a in reduce], keepdims=True)
    return jnp.broadcast_to(stacked, (table.sizes[out], *out_batch)).astype(dtype)


BLOCK_BYTES = 2**19
"""Working set of one block on the CPU: within the second-level cache. Measured: at 10,000 edges x 32 channels blocks of 64 to 256
edges are alike, 0.7 of the time of the whole; blocks of 1,000 are slower than none."""


def _blocked(*operands: Array, table: Table, out: int, out_batch: tuple[int, ...]) -> Array:
    """`_kernel` along the longest axis in blocks, so that what the rows of the output share is read from memory once."""
    batch = jnp.broadcast_shapes(*(x.shape[1:] for x in operands))
    whole = functools.partial(_kernel, table=table, out=out)
    axis = int(np.argmax(batch[:-1])) if len(batch) > 1 else 0
    dtype = jnp.result_type(*operands)
    length = batch[axis] if batch else 0
    row = sum(table.sizes) * max(1, int(np.prod(batch))) // max(length, 1) * dtype.itemsize
    block = max(16, BLOCK_BYTES // max(row, 1))
    if len(batch) < 2 or length < 4 * block or out_batch[axis] != length:
        return whole(*operands, out_batch=out_batch)
    part = (*out_batch[:axis], block, *out_batch[axis + 1 :])

    def body(i, result):
        start = jnp.minimum(i * block, length - block)  # the last block overlaps the one before
        cut = [
            x if x.shape[axis + 1] == 1 else jax.lax.dynamic_slice_in_dim(x, start, block, axis + 1) for x in operands
        ]
        return jax.lax.dynamic_update_slice_in_dim(result, whole(*cut, out_batch=part), start, axis + 1)

    return jax.lax.fori_loop(0, -(-length // block), body, jnp.zeros((table.sizes[out], *out_batch), dtype))


multilinear_p = jex.core.Primitive("sciax_multilinear")
multilinear_p.def_impl(
    lambda *operands, **params: (
        jax.jit(functools.partial(_kernel, **params))(*operands)
        if any(isinstance(x, Tracer) for x in operands)
        else _compiled(tuple(operands), **params)
    )
)


@functools.partial(jax.jit, static_argnames=("table", "out", "out_batch"))
def _compiled(operands, *, table, out, out_batch):
    return _kernel(*operands, table=table, out=out, out_batch=out_batch)


def _abstract(*operands, table, out, out_batch):
    return ShapedArray((table.sizes[out], *out_batch), jnp.result_type(*operands))


multilinear_p.def_abstract_eval(_abstract)
_lower_whole = mlir.lower_fun(_kernel, multiple_results=False)
_lower_blocked = mlir.lower_fun(_blocked, multiple_results=False)


def _lower_cpu(ctx, *args, **params):
    # a loop over blocks of an axis that is split over devices would gather it
    single = getattr(ctx.module_context.axis_context, "num_devices", None) == 1
    return (_lower_blocked if single else _lower_whole)(ctx, *args, **params)


mlir.register_lowering(multilinear_p, _lower_whole)
mlir.register_lowering(multilinear_p, _lower_cpu, platform="cpu")


def _jvp(primals, tangents, *, table, out, out_batch):
    value = multilinear_p.bind(*primals, table=table, out=out, out_batch=out_batch)
    total = None
    for k, tangent in enumerate(tangents):
        if isinstance(tangent, ad.Zero):
            continue
        operands = [*primals[:k], tangent, *primals[k + 1 :]]
        term = multilinear_p.bind(*operands, table=table, out=out, out_batch=out_batch)
        total = term if total is None else total + term
    return value, jnp.zeros_like(value) if total is None else total


def _transpose(cotangent, *operands, table, out, out_batch):
    """The output role and the role of the one linear operand change places."""
    roles = [r for r in range(len(table.sizes)) if r != out]
    result = []
    for role, operand in zip(roles, operands):
        if not ad.is_undefined_primal(operand):
            result.append(None)
        elif isinstance(cotangent, ad.Zero):
            result.append(ad.Zero(operand.aval))
        else:
            known = {r: x for r, x in zip(roles, operands) if r != role} | {out: cotangent}
            inputs = [known[r] for r in range(len(table.sizes)) if r != role]
            result.append(multilinear_p.bind(*inputs, table=table, out=role, out_batch=tuple(operand.aval.shape[1:])))
    return result


def _batch(operands, dims, *, table, out, out_batch):
    size = next(x.shape[d] for x, d in zip(operands, dims) if d is not None)
    moved = [jnp.expand_dims(x, 1) if d is None else jnp.moveaxis(x, d, 1) for x, d in zip(operands, dims)]
    value = multilinear_p.bind(*moved, table=table, out=out, out_batch=(size, *out_batch))
    return value, 1


ad.primitive_jvps[multilinear_p] = _jvp
ad.primitive_transposes[multilinear_p] = _transpose
batching.primitive_batchers[multilinear_p] = _batch


def _oracle(*operands, table):
    batch = np.broadcast_shapes(*(x.shape[1:] for x in operands))
    out = np.zeros((table.sizes[-1], *batch), np.result_type(*operands))
    for row, value in zip(table.index, table.values):
        term = value
        for x, index in zip(operands, row[:-1]):
            term = term * x[index]
        out[row[-1]] += term
    return out


def _samples(rng):
    table = Table(np.column_stack([rng.integers(0, n, 14) for n in (3, 4, 2, 5)]), rng.normal(size=14), (3, 4, 2, 5))
    shapes = lambda e, u: (rng.normal(size=(3, e, u)), rng.normal(size=(4, e, 1)), rng.normal(size=(2, e, u)))  # noqa: E731
    yield Sample("ordinary, one operand shared over channels", shapes(5, 3), {"table": table})
    yield Sample(
        "size one, badly scaled", tuple(a * c for a, c in zip(shapes(1, 1), (1e6, 1e-6, 1e3))), {"table": table}
    )
    pair = Table(np.array([[0, 1, 0], [1, 0, 0], [1, 1, 2]]), np.array([1.0, -2.0, 0.5]), (2, 2, 3))
    yield Sample("empty, a row without terms", (rng.normal(size=(2, 0)), rng.normal(size=(2, 0))), {"table": pair})


@operator(
    "so3.multilinear",
    oracle=_oracle,
    samples=_samples,
    flops=lambda *operands, table: float(len(table) * len(table.sizes) * np.prod(np.shape(operands[0])[1:])),
)
def multilinear(*operands: Array, table: Table) -> Array:
    """out[k] = Σ_t v_t Π_o operand_o[index_t,o], components along the first axis, all further axes broadcast.

    Args:
        operands: one array per input role of the table, of shape (components, *batch); batch shapes have equal rank and
            broadcast (a size of 1 is shared). Real or complex.
        table: terms, static.

    Raises:
        ShapeError: wrong number of operands, components that do not fit the table, batch shapes that do not broadcast.
    """
    if len(operands) != len(table.sizes) - 1:
        raise ShapeError("wrong number of operands for this table", got=len(operands), expected=len(table.sizes) - 1)
    for x, size in zip(operands, table.sizes):
        if x.ndim < 1 or x.shape[0] != size:
            raise ShapeError("an operand does not fit the table", got=x.shape, expected=f"({size}, ...)")
    if len({x.ndim for x in operands}) != 1:
        raise ShapeError(
            "operands differ in rank", got=[x.shape for x in operands], expected="equal rank; use axes of size 1"
        )
    try:
        batch = np.broadcast_shapes(*(x.shape[1:] for x in operands))
    except ValueError:
        raise ShapeError("batch shapes do not broadcast", got=[x.shape[1:] for x in operands]) from None
    dtype = jnp.result_type(*operands)
    return multilinear_p.bind(
        *(jnp.asarray(x, dtype) for x in operands), table=table, out=len(operands), out_batch=batch
    )
