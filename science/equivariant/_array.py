"""Arrays that know how they rotate; import from and export to e3nn's flat layout."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from sciax.core.errors import InputError, ShapeError
from sciax.core.ops.so3 import Irreps, wigner_d


class IrrepsArray(eqx.Module):
    """One chunk for each block of `irreps`, of shape (2l + 1, *batch, multiplicity): components first, channels last."""

    irreps: Irreps = eqx.field(static=True)
    chunks: tuple[Array, ...]

    def __init__(self, irreps: Irreps | str, chunks):
        self.irreps = Irreps(irreps)
        self.chunks = tuple(chunks)
        if len(self.chunks) != len(self.irreps):
            raise ShapeError("one chunk a block is needed", got=len(self.chunks), expected=len(self.irreps))
        for (mul, ir), c in zip(self.irreps, self.chunks):
            if hasattr(c, "shape") and (c.shape[0], c.shape[-1]) != (ir.dim, mul):
                raise ShapeError(f"a chunk does not hold {mul}x{ir}", got=c.shape, expected=f"({ir.dim}, ..., {mul})")

    @property
    def batch(self) -> tuple[int, ...]:
        return self.chunks[0].shape[1:-1]

    @staticmethod
    def from_stack(irreps: Irreps | str, stack: Float[Array, "components *batch channels"]) -> "IrrepsArray":
        """From components of single irreps stacked along the first axis, all with the same channels."""
        single, out, at = Irreps(irreps), [], 0
        if any(mul != 1 for mul, _ in single) or stack.shape[0] != single.dim:
            raise ShapeError("the stack does not hold these irreps once each", got=stack.shape, expected=str(single))
        for _, ir in single:
            out.append(stack[at : at + ir.dim])
            at += ir.dim
        return IrrepsArray(single * stack.shape[-1], out)

    def stack(self) -> Float[Array, "components *batch channels"]:
        """All components along the first axis; every block must have the same multiplicity.

        Raises:
            InputError: blocks of different multiplicity.
        """
        if len({mul for mul, _ in self.irreps}) > 1:
            raise InputError("blocks of different multiplicity do not stack", got=str(self.irreps))
        return jnp.concatenate(self.chunks)


def to_e3nn(x: IrrepsArray) -> Float[Array, "*batch dim"]:
    """e3nn's flat array: blocks one behind the other along the last axis, (multiplicity, component) inside a block."""
    flat = [jnp.moveaxis(c, 0, -1).reshape(*c.shape[1:-1], -1) for c in x.chunks]
    return jnp.concatenate(flat, -1)


def from_e3nn(irreps: Irreps | str, array: Float[Array, "*batch dim"]) -> IrrepsArray:
    """The inverse of `to_e3nn`; normalisation and order of components are e3nn's already.

    Raises:
        ShapeError: the last axis does not have the dimension of `irreps`.
    """
    irreps = Irreps(irreps)
    if array.shape[-1:] != (irreps.dim,):
        raise ShapeError("the array does not hold these irreps", got=array.shape, expected=f"(..., {irreps.dim})")
    chunks = [
        jnp.moveaxis(array[..., s].reshape(*array.shape[:-1], mul, ir.dim), -1, 0)
        for (mul, ir), s in zip(irreps, irreps.slices())
    ]
    return IrrepsArray(irreps, chunks)


def rotate(x: IrrepsArray, rotation: Float[Array, "3 3"]) -> IrrepsArray:
    """The action of an element of O(3); improper ones include the parity of each block."""
    improper = jnp.linalg.det(rotation) < 0
    out = []
    for (_, ir), c in zip(x.irreps, x.chunks):
        d = wigner_d(rotation, l=ir.l)
        # wigner_d gives an inversion the parity (-1)^l; the block's own may be the other
        sign = jnp.where(improper & (ir.p != (-1) ** ir.l), -1.0, 1.0)
        out.append(jnp.einsum("ij,j...->i...", (d * sign).astype(c.dtype), c, precision="highest"))
    return IrrepsArray(x.irreps, out)
