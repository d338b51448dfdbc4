"""Which loops an operation consists of, and so how it can be split: one rule a family of primitives.

An operation is a nest of loops; each dimension of each operand and result is run over by one loop or must be whole. A loop that
runs over a dimension of the result can be split at no cost; one that is summed over leaves partial sums.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sciax.core.graph._count import TRANSCENDENTAL
from sciax.core.parallel.search._program import Op

Loops = tuple[int | None, ...]


@dataclass(frozen=True)
class Rule:
    """Loops of the dimensions of each operand and result; None: the dimension must be whole.

    Attributes:
        sums: loops that no result has and that may be split, leaving partial results.
        same: an elementwise operation: operands of the result's shape share its layout.
    """

    ins: tuple[Loops, ...]
    outs: tuple[Loops, ...]
    sums: frozenset[int] = frozenset()
    same: bool = False


ELEMENTWISE = TRANSCENDENTAL | frozenset(
    "add sub mul div neg max min abs sign floor ceil round select_n and or not xor eq ne lt le gt ge integer_pow square rem "
    "is_finite clamp nextafter real imag conj complex convert_element_type copy copy_p add_any one_minus_square "
    "shift_left shift_right_logical shift_right_arithmetic stop_gradient reduce_precision population_count clz erf_inv "
    "igamma igammac lgamma digamma polygamma bessel_i0e bessel_i1e regularized_incomplete_beta random_gamma_grad "
    "no_reverse device_put".split()
)
SUMS = frozenset("reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor".split())
BATCHED = {
    "cholesky": 2,
    "triangular_solve": 2,
    "lu": 2,
    "qr": 2,
    "geqrf": 2,
    "eigh": 2,
    "svd": 2,
    "eig": 2,
    "top_k": 1,
}
"""Linear algebra: number of trailing dimensions that must be whole."""


def rule_of(op: Op) -> Rule:
    """The rule of an operation; of one we do not know: everything whole, each device computes all."""
    shapes_in = [tuple(v.shape) for v in op.ins]
    shapes_out = [tuple(v.shape) for v in op.outs]
    if op.name == "optimization_barrier":
        return _pairs(shapes_in)
    params = {} if op.eqn is None else op.eqn.params
    if op.name in ELEMENTWISE:
        return _elementwise(shapes_in, shapes_out[0])
    if op.name in SUMS:
        kept = [i for i in range(len(shapes_in[0])) if i not in params["axes"]]
        loops = tuple(range(len(shapes_in[0])))
        return Rule((loops,), (tuple(kept),), frozenset(params["axes"]))
    if op.name in BATCHED:
        tail = BATCHED[op.name]
        rank = len(shapes_in[0]) - tail
        return Rule(
            tuple(tuple(range(rank)) + (None,) * (len(s) - rank) for s in shapes_in),
            tuple(tuple(range(rank)) + (None,) * (len(s) - rank) for s in shapes_out),
        )
    maker = _RULES.get(op.name)
    if maker is None and op.name.startswith("reduce_window"):
        maker = _window
    rule = maker(params, shapes_in, shapes_out) if maker is not None else None
    return rule if rule is not None else whole(shapes_in, shapes_out)


def whole(shapes_in: list[tuple[int, ...]], shapes_out: list[tuple[int, ...]]) -> Rule:
    return Rule(tuple((None,) * len(s) for s in shapes_in), tuple((None,) * len(s) for s in shapes_out))


def _elementwise(ins: list[tuple[int, ...]], out: tuple[int, ...]) -> Rule:
    def loops(shape: tuple[int, ...]) -> Loops:
        if len(shape) != len(out):  # a scalar beside arrays
            return (None,) * len(shape)
        return tuple(i if n == m else None for i, (n, m) in enumerate(zip(shape, out, strict=True)))

    return Rule(tuple(loops(s) for s in ins), (tuple(range(len(out))),), same=True)


def _pairs(shapes: list[tuple[int, ...]]) -> Rule:
    first, loops = 0, []
    for shape in shapes:
        loops.append(tuple(range(first, first + len(shape))))
        first += len(shape)
    return Rule(tuple(loops), tuple(loops), same=True)


def _dot(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    (left_sum, right_sum), (left_batch, right_batch) = p["dimension_numbers"]
    left: dict[int, int] = dict(zip(left_batch, range(len(left_batch))))
    right = dict(zip(right_batch, range(len(right_batch))))
    count = len(left_batch)
    for dims, loops, skip in ((ins[0], left, left_sum), (ins[1], right, right_sum)):
        for i in range(len(dims)):
            if i not in loops and i not in skip:
                loops[i] = count
                count += 1
    out = tuple(range(count))
    for i, j in zip(left_sum, right_sum, strict=True):
        left[i] = right[j] = count
        count += 1
    sums = frozenset(range(len(out), count))
    return Rule((tuple(left[i] for i in range(len(ins[0]))), tuple(right[i] for i in range(len(ins[1])))), (out,), sums)


def _convolution(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    """Batch, channels out and (summed) channels in; space is not split: XLA would exchange halos."""
    dn = p["dimension_numbers"]
    left: list[int | None] = [None] * len(ins[0])
    right: list[int | None] = [None] * len(ins[1])
    out: list[int | None] = [None] * len(outs[0])
    sums: frozenset[int] = frozenset()
    if p["batch_group_count"] == 1:
        left[dn.lhs_spec[0]] = out[dn.out_spec[0]] = 0
    if p["feature_group_count"] == 1 and p["batch_group_count"] == 1:
        right[dn.rhs_spec[0]] = out[dn.out_spec[1]] = 1
        left[dn.lhs_spec[1]] = right[dn.rhs_spec[1]] = 2
        sums = frozenset((2,))
    return Rule((tuple(left), tuple(right)), (tuple(out),), sums)


def _reshape(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    """Dimensions fall into groups of equal product; the first of each group can be split."""
    before, after = ins[0], outs[0]
    a: list[int | None] = [None] * len(before)
    b: list[int | None] = [None] * len(after)
    i = j = loop = 0
    while i < len(before) and j < len(after):
        if before[i] == 1 and after[j] != 1:
            i += 1
            continue
        if after[j] == 1 and before[i] != 1:
            j += 1
            continue
        a[i] = b[j] = loop
        loop += 1
        n, m = before[i], after[j]
        i, j = i + 1, j + 1
        while n != m:
            if n < m:
                n *= before[i]
                i += 1
            else:
                m *= after[j]
                j += 1
    return Rule((tuple(a), *((None,) * len(s) for s in ins[1:])), (tuple(b),))


def _kept(ins: Any, outs: Any, keep: Callable[[int], bool]) -> Rule:
    """One array in, one of the same rank out; dimension i is a loop where `keep(i)`."""
    loops = tuple(i if keep(i) else None for i in range(len(outs[0])))
    return Rule((loops, *((None,) * len(s) for s in ins[1:])), (loops,))


def _broadcast(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    place = p["broadcast_dimensions"]
    left = tuple(place[i] if n == outs[0][place[i]] else None for i, n in enumerate(ins[0]))
    return Rule((left, *((None,) * len(s) for s in ins[1:])), (tuple(range(len(outs[0]))),))


def _transpose(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    order = tuple(p["permutation"])
    return Rule((tuple(order.index(i) for i in range(len(order))),), (tuple(range(len(order))),))


def _squeeze(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    gone = {d % len(ins[0]) for d in p["dimensions"]}
    kept = [i for i in range(len(ins[0])) if i not in gone]
    return Rule((tuple(i if i in kept else None for i in range(len(ins[0]))),), (tuple(kept),))


def _slice(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    return _kept(ins, outs, lambda i: ins[0][i] == outs[0][i])


def _update(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    loops = tuple(i if ins[0][i] == ins[1][i] else None for i in range(len(outs[0])))
    return Rule((loops, loops, *(() for _ in ins[2:])), (loops,))


def _along(name: str) -> Callable[..., Rule]:
    """All dimensions but the one named by a parameter, for any number of arrays of one rank."""

    def rule(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
        axes = p[name] if isinstance(p[name], (tuple, list)) else (p[name],)
        loops = tuple(None if i in axes else i for i in range(len(outs[0])))
        return Rule(tuple(loops if len(s) == len(loops) else (None,) * len(s) for s in ins), tuple(loops for _ in outs))

    return rule


def _arg(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    loops = tuple(None if i in p["axes"] else i for i in range(len(ins[0])))
    return Rule((loops,), (tuple(i for i in loops if i is not None),))


def _fft(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    free = len(outs[0]) - len(p["fft_lengths"])
    return _kept(ins, outs, lambda i: i < free)


def _pad(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    return _kept(ins, outs, lambda i: tuple(p["padding_config"][i]) == (0, 0, 0))


def _made(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    """Made in place from nothing, or from a key: each device makes its part."""
    return Rule(tuple((None,) * len(s) for s in ins), (tuple(range(len(outs[0]))),))


def _window(p: dict[str, Any], ins: Any, outs: Any) -> Rule | None:
    window = p.get("window_dimensions")
    if window is None or len(outs) != 1:
        return None
    rank = len(outs[0])
    loops = tuple(i if window[i] == 1 and ins[0][i] == outs[0][i] else None for i in range(rank))
    return Rule(tuple(loops if len(s) == rank else (None,) * len(s) for s in ins), (loops,))


def _gather(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    """Dimensions taken whole, and those of the indices; the indexed dimension itself is whole."""
    dn, sizes = p["dimension_numbers"], p["slice_sizes"]
    operand: list[int | None] = [None] * len(ins[0])
    index: list[int | None] = [None] * len(ins[1])
    out = tuple(range(len(outs[0])))
    windows = [i for i in range(len(ins[0])) if i not in (*dn.collapsed_slice_dims, *dn.operand_batching_dims)]
    for i, place in zip(windows, dn.offset_dims, strict=True):
        if sizes[i] == ins[0][i]:
            operand[i] = place
    places = [i for i in out if i not in dn.offset_dims]
    index[: len(places)] = places
    for i, j in zip(dn.operand_batching_dims, dn.start_indices_batching_dims, strict=True):
        operand[i] = index[j]
    shared = {loop for loop in (*operand, *index) if loop is not None}
    return Rule((tuple(operand), tuple(index)), (tuple(i if i in shared else None for i in out),))


def _scatter(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    dn = p["dimension_numbers"]
    loops: list[int | None] = [None] * len(ins[0])
    index: list[int | None] = [None] * len(ins[1])
    update: list[int | None] = [None] * len(ins[2])
    windows = [i for i in range(len(ins[0])) if i not in (*dn.inserted_window_dims, *dn.operand_batching_dims)]
    for i, place in zip(windows, dn.update_window_dims, strict=True):
        if ins[2][place] == ins[0][i]:
            loops[i] = update[place] = i
    places = [i for i in range(len(ins[2])) if i not in dn.update_window_dims]
    for i, j in zip(dn.operand_batching_dims, dn.scatter_indices_batching_dims, strict=True):
        loops[i] = index[j] = update[places[j]] = i
    return Rule((tuple(loops), tuple(index), tuple(update)), (tuple(loops),))


def _scatter_add(p: dict[str, Any], ins: Any, outs: Any) -> Rule:
    """Besides, each device may add its share of the updates: partial sums."""
    rule = _scatter(p, ins, outs)
    places = [i for i in range(len(ins[2])) if i not in p["dimension_numbers"].update_window_dims]
    index, update, sums = list(rule.ins[1]), list(rule.ins[2]), []
    for j, place in enumerate(places):
        if update[place] is None:
            index[j] = update[place] = len(ins[0]) + j
            sums.append(len(ins[0]) + j)
    return Rule((rule.ins[0], tuple(index), tuple(update)), rule.outs, frozenset(sums))


_RULES: dict[str, Callable[..., Rule | None]] = {
    "dot_general": _dot,
    "conv_general_dilated": _convolution,
    "reshape": _reshape,
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "slice": _slice,
    "dynamic_slice": _slice,
    "dynamic_update_slice": _update,
    "concatenate": _along("dimension"),
    "sort": _along("dimension"),
    "split": _along("axis"),
    "rev": _along("dimensions"),
    **{name: _along("axis") for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")},
    "argmax": _arg,
    "argmin": _arg,
    "pad": _pad,
    "fft": _fft,
    "iota": _made,
    "random_bits": _made,
    "select_and_scatter_add": _window,
    "gather": _gather,
    "scatter": _scatter,
    "scatter_mul": _scatter,
    "scatter_min": _scatter,
    "scatter_max": _scatter,
    "scatter-add": _scatter_add,
    "scatter_add": _scatter_add,
}


def shape_bytes(shape: tuple[int, ...], itemsize: int) -> int:
    return math.prod(shape) * itemsize
