"""FLOPs and bytes moved of a jaxpr, counted by ourselves.

XLA counts the body of a scan once (10x wrong at length 10); this counter multiplies by the number of steps.
Matrix products and convolutions are exact; an elementwise operation is one FLOP an entry, an exp or a tanh one transcendental
(counted apart, as XLA does).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.extend.core import Literal

from sciax.core.inspect._jaxpr import scan_inputs, scan_outputs

TRANSCENDENTAL = frozenset(
    "exp exp2 expm1 log log1p tanh sin cos tan asin acos atan atan2 sinh cosh asinh acosh atanh logistic pow sqrt rsqrt cbrt erf "
    "erfc erf_inv lgamma digamma".split()
)
MOVES = frozenset(
    "reshape broadcast_in_dim transpose slice dynamic_slice dynamic_update_slice concatenate pad rev squeeze expand_dims gather "
    "copy "
    "iota convert_element_type bitcast_convert_type split stop_gradient device_put sharding_constraint copy_p no_reverse "
    "debug_callback random_wrap random_unwrap empty full scatter nonbatchable unvmap_any unvmap_all".split()
)
REDUCTIONS = frozenset(
    "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor argmax argmin reduce reduce_precision".split()
)
CUMULATIVE = frozenset("cumsum cumprod cummax cummin cumlogsumexp".split())
FUSED = TRANSCENDENTAL | frozenset(
    "add sub mul div neg max min abs sign floor ceil round select_n and or not xor eq ne lt le gt ge integer_pow square rem "
    "is_finite clamp nextafter real imag conj complex convert_element_type broadcast_in_dim iota squeeze expand_dims copy "
    "concatenate pad rev transpose dynamic_slice exp "
    "add_any one_minus_square select_if_vmap stop_gradient shift_left shift_right_logical reshape slice".split()
)
"""Operations that XLA fuses into their consumer: their result takes no memory of its own if it has one consumer."""


@dataclass(frozen=True)
class Cost:
    """What a program needs.

    Attributes:
        flops: floating-point (and integer) operations other than transcendentals.
        transcendentals: evaluations of exp, tanh, sqrt, ...
        bytes: read and written, every operation on its own (no fusion).
        exact: False where a loop's number of steps is not known: its body is counted once, or up to its bound.
    """

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes: float = 0.0
    exact: bool = True

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes + other.bytes,
            self.exact and other.exact,
        )

    def times(self, n: float, exact: bool = True) -> "Cost":
        return Cost(self.flops * n, self.transcendentals * n, self.bytes * n, self.exact and exact)


def size(aval: Any) -> int:
    return math.prod(getattr(aval, "shape", ())) if hasattr(aval, "shape") else 0


def nbytes(aval: Any) -> int:
    dtype = getattr(aval, "dtype", None)
    return size(aval) * int(getattr(dtype, "itemsize", 4) or 4) if dtype is not None else 0


def inner_jaxprs(eqn: Any) -> list[Any]:
    """The jaxprs in an equation's parameters, in order."""
    found = []
    for value in eqn.params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(item, "eqns"):
                found.append(item)
            elif hasattr(item, "jaxpr") and hasattr(item.jaxpr, "eqns"):
                found.append(item.jaxpr)
    return found


Known = dict[Any, int]
"""Variables whose integer value is known: loop counters start from them."""


def count(jaxpr: Any, known: Known | None = None) -> Cost:
    """Cost of a jaxpr (open or closed)."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    total = Cost()
    for eqn in jaxpr.eqns:
        total = total + equation_cost(eqn, known)
    return total


def _value(atom: Any, known: Known | None) -> int | None:
    if isinstance(atom, Literal):
        return int(atom.val) if np.ndim(atom.val) == 0 and np.asarray(atom.val).dtype.kind in "iu" else None
    return (known or {}).get(atom)


def _inside_known(body: Any, eqn: Any, known: Known | None) -> Known:
    body = getattr(body, "jaxpr", body)
    values = [_value(v, known) for v in eqn.invars]
    return {v: k for v, k in zip(body.invars, values) if k is not None} if len(values) == len(body.invars) else {}


def equation_cost(eqn: Any, known: Known | None = None) -> Cost:
    """Cost of one equation, loops and calls included."""
    name = eqn.primitive.name
    if name == "scan":
        return count(eqn.params["jaxpr"]).times(eqn.params["length"])
    if name == "while":
        body, test = count(eqn.params["body_jaxpr"]), count(eqn.params["cond_jaxpr"])
        steps, exact = trip_count(eqn, known)
        return (body + test).times(steps, exact)
    if name == "cond":
        costs = [count(b) for b in eqn.params["branches"]]
        return max(costs, key=lambda c: c.flops + c.transcendentals)
    if name in ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"):
        for key in ("call_jaxpr", "fun_jaxpr", "jaxpr"):
            if key in eqn.params:
                return count(eqn.params[key], _inside_known(eqn.params[key], eqn, known))
    inner = inner_jaxprs(eqn)
    if inner and name not in REDUCTIONS and not name.startswith(("reduce", "scatter")):
        total = Cost()
        for j in inner:
            total = total + count(j, _inside_known(j, eqn, known))
        return total
    flops, transcendentals = _primitive(eqn)
    moved = sum(nbytes(v.aval) for v in (*eqn.invars, *eqn.outvars))
    return Cost(flops, transcendentals, moved)


def _primitive(eqn: Any) -> tuple[float, float]:
    name = eqn.primitive.name
    ins, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    n_out = float(sum(size(a) for a in outs))
    if name == "dot_general":
        (lhs_contract, _), _ = eqn.params["dimension_numbers"]
        k = math.prod(ins[0].shape[i] for i in lhs_contract)
        return 2.0 * n_out * k * _complex(outs[0]), 0.0
    if name == "conv_general_dilated":
        return _convolution(eqn), 0.0
    if name in TRANSCENDENTAL:
        return 0.0, n_out
    if name in MOVES:
        return 0.0, 0.0
    if name in REDUCTIONS or name.startswith("reduce_window"):
        window = eqn.params.get("window_dimensions")
        if window is not None:
            return n_out * (math.prod(window) - 1), 0.0
        return float(size(ins[0])) - n_out / max(len(outs), 1), 0.0
    if name in CUMULATIVE:
        return float(size(ins[0])), 0.0
    if name == "sort":
        n = ins[0].shape[eqn.params["dimension"]] if ins[0].shape else 1
        return float(size(ins[0])) * max(1.0, math.log2(max(n, 2))), 0.0
    if name.startswith("scatter"):
        return float(size(ins[2])), 0.0
    if name == "fft":
        n = math.prod(eqn.params["fft_lengths"]) or 1
        return 5.0 * max(size(ins[0]), size(outs[0])) * math.log2(max(n, 2)), 0.0
    if name == "integer_pow":
        return n_out * max(
            1, abs(int(eqn.params["y"])).bit_length() + bin(abs(int(eqn.params["y"]))).count("1") - 2
        ), 0.0
    cubic = {
        "cholesky": 1 / 3,
        "lu": 2 / 3,
        "householder_product": 4 / 3,
        "geqrf": 4 / 3,
        "qr": 4 / 3,
        "eigh": 9.0,
        "svd": 22.0,
        "eig": 25.0,
    }
    if name in cubic:
        shape = ins[0].shape
        batch = math.prod(shape[:-2])
        return cubic[name] * batch * shape[-2] * shape[-1] * min(shape[-2:]), 0.0
    if name == "triangular_solve":
        return float(size(outs[0])) * ins[0].shape[-1], 0.0
    return n_out, 0.0


def _complex(aval: Any) -> float:
    return 4.0 if np.dtype(aval.dtype).kind == "c" else 1.0


def _convolution(eqn: Any) -> float:
    """2 FLOPs for each pair of an output entry and a kernel entry that meets real (not padded) input."""
    p = eqn.params
    lhs, rhs, out = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval
    dn = p["dimension_numbers"]
    pairs = 1.0
    for axis, (li, ri, oi) in enumerate(zip(dn.lhs_spec[2:], dn.rhs_spec[2:], dn.out_spec[2:])):
        n, k, m = lhs.shape[li], rhs.shape[ri], out.shape[oi]
        at = (
            np.arange(m)[:, None] * p["window_strides"][axis]
            + np.arange(k)[None, :] * p["rhs_dilation"][axis]
            - p["padding"][axis][0]
        )
        d = p["lhs_dilation"][axis]
        pairs *= float(np.sum((at >= 0) & (at <= (n - 1) * d) & (at % d == 0)))
    features_in = rhs.shape[dn.rhs_spec[1]]
    features_out, batch = out.shape[dn.out_spec[1]], out.shape[dn.out_spec[0]]
    return 2.0 * pairs * features_in * features_out * batch / p["batch_group_count"] * _complex(out)


_MARKERS = ("convert_element_type", "nonbatchable", "unvmap_any", "unvmap_all", "copy", "reshape")


def trip_count(eqn: Any, known: Known | None = None) -> tuple[int, bool]:
    """Steps of a `while`: (n, True) for a counted loop, (bound, False) for one that may end sooner, (1, False) if unknown."""
    p = eqn.params
    test = getattr(p["cond_jaxpr"], "jaxpr", p["cond_jaxpr"])
    body = getattr(p["body_jaxpr"], "jaxpr", p["body_jaxpr"])
    a, b = p["cond_nconsts"], p["body_nconsts"]
    state = list(test.invars[a:])
    makers = {v: e for e in test.eqns for v in e.outvars}

    def value(atom: Any) -> int | None:
        if not isinstance(atom, Literal) and atom in test.invars[:a]:
            atom = eqn.invars[list(test.invars).index(atom)]
        return _value(atom, known)

    def behind(atom: Any) -> Any:
        """The equation that makes a value, past casts and markers."""
        maker = makers.get(atom) if not isinstance(atom, Literal) else None
        while maker is not None and maker.primitive.name in _MARKERS:
            source = maker.invars[0]
            maker = makers.get(source) if not isinstance(source, Literal) else None
        return maker

    def bound(atom: Any) -> int | None:
        maker = behind(atom)
        if maker is None:
            return None
        if maker.primitive.name == "and":
            found = [x for x in map(bound, maker.invars) if x is not None]
            return min(found) if found else None
        if maker.primitive.name != "lt" or isinstance(maker.invars[0], Literal) or maker.invars[0] not in state:
            return None
        k = state.index(maker.invars[0])
        limit, start = value(maker.invars[1]), _value(eqn.invars[a + b + k], known)
        if limit is None or start is None or not _counts_up(body, b, k):
            return None
        return max(0, limit - start)

    result = test.outvars[0]
    steps = bound(result)
    if steps is None:
        return 1, False
    return steps, behind(result).primitive.name == "lt"


def _counts_up(body: Any, nconsts: int, k: int) -> bool:
    """Whether the body adds one to its k-th variable."""
    out, source = body.outvars[k], body.invars[nconsts + k]
    for e in body.eqns:
        if out in e.outvars and e.primitive.name in ("copy", "convert_element_type"):
            out = e.invars[0]
    for e in body.eqns:
        if out in e.outvars:
            if e.primitive.name != "add":
                return False
            x, y = e.invars
            return (x is source and isinstance(y, Literal) and int(y.val) == 1) or (
                y is source and isinstance(x, Literal) and int(x.val) == 1
            )
    return False


def operation_counts(jaxpr: Any) -> dict[str, int]:
    """Primitive -> how often it stands in the program (bodies once), calls inlined."""
    found: dict[str, int] = {}

    def visit(j: Any) -> None:
        for eqn in getattr(j, "jaxpr", j).eqns:
            name = eqn.primitive.name
            inner = inner_jaxprs(eqn)
            if name not in ("jit", "pjit", "closed_call", "core_call") or not inner:
                found[name] = found.get(name, 0) + 1
            if not name.startswith(("reduce", "scatter")):
                for i in inner:
                    visit(i)

    visit(jaxpr)
    return dict(sorted(found.items(), key=lambda kv: (-kv[1], kv[0])))


__all__ = [
    "Cost",
    "Sequence",
    "count",
    "equation_cost",
    "operation_counts",
    "scan_inputs",
    "scan_outputs",
    "trip_count",
]
