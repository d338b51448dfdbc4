"""The one table of tolerances of the grid, by cell and dtype.

A difference passes where |a - b| <= tol * (|b| + max |b|), per output array. A sample may loosen it by a factor, with a reason.
"""

_TABLE = {
    # against the float64 oracle, which sees the same rounded inputs: about 100 rounding errors
    ("eager", "float32"): 1e-5,
    ("eager", "float64"): 1e-11,
    ("float32", "float32"): 1e-5,
    ("float64", "float64"): 1e-11,
    ("complex", "float64"): 1e-11,
    # the same program under another compiler schedule: fusion reorders sums
    ("jit", "float32"): 1e-5,
    ("jit", "float64"): 1e-11,
    ("vmap", "float64"): 1e-11,
    ("sharded", "float64"): 1e-11,
    # fourth-order central differences with a relative step of 3e-5: rounding 1e-16 / 3e-5 times the condition
    ("jvp", "float64"): 1e-7,
    ("vjp", "float64"): 1e-7,
    ("second_order", "float64"): 1e-6,
    # <w, J v> = <J^T w, v> and <u, H v> = <v, H u>: exact but for rounding
    ("dot", "float64"): 1e-11,
    ("symmetry", "float64"): 1e-9,
}


def tolerance(cell: str, dtype: str, factor: float = 1.0) -> float:
    """The tolerance of `cell` in real dtype `dtype`, times the sample's `factor`."""
    return _TABLE[cell, dtype] * factor
