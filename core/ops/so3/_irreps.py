"""Irreducible representations of O(3) and direct sums of them: parsing, sorting, filtering, dimensions."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import total_ordering

from sciax.core.errors import InputError


@total_ordering
@dataclass(frozen=True)
class Irrep:
    """Degree l and parity p = ±1. "1o" is a vector, "1e" an axial vector. Ordered 0e < 0o < 1o < 1e < 2e < 2o as e3nn orders."""

    l: int
    p: int

    def __post_init__(self) -> None:
        if self.l < 0 or self.p not in (1, -1):
            raise InputError("no such irrep", got=(self.l, self.p), expected="l >= 0 and parity 1 or -1")

    @staticmethod
    def parse(text: "str | Irrep") -> "Irrep":
        """From "2e", "1o", or "3y" (the parity of spherical harmonics, (-1)^l).

        Raises:
            InputError: anything else.
        """
        if isinstance(text, Irrep):
            return text
        match = re.fullmatch(r"\s*(\d+)([eoy])\s*", text)
        if not match:
            raise InputError(f"{text!r} is not an irrep", expected="a degree and e, o or y: '0e', '1o', '2y'")
        l = int(match[1])
        return Irrep(l, {"e": 1, "o": -1, "y": (-1) ** l}[match[2]])

    @property
    def dim(self) -> int:
        return 2 * self.l + 1

    def __mul__(self, other: "Irrep") -> "list[Irrep]":
        """Irreps of the tensor product, |l₁ - l₂| .. l₁ + l₂."""
        return [Irrep(l, self.p * other.p) for l in range(abs(self.l - other.l), self.l + other.l + 1)]

    def __lt__(self, other: "Irrep") -> bool:
        return (self.l, -self.p * (-1) ** self.l) < (other.l, -other.p * (-1) ** other.l)

    def __str__(self) -> str:
        return f"{self.l}{'e' if self.p == 1 else 'o'}"

    __repr__ = __str__


class Irreps(tuple[tuple[int, Irrep], ...]):
    """A direct sum: ordered pairs (multiplicity, irrep). `Irreps("32x0e + 16x1o")`."""

    def __new__(cls, items: "str | Irrep | Iterable" = ()) -> "Irreps":
        if isinstance(items, Irreps):
            return items
        if isinstance(items, Irrep):
            items = [(1, items)]
        if isinstance(items, str):
            text, items = items, []
            for part in text.split("+") if text.strip() else []:
                mul, x, irrep = part.rpartition("x")
                try:
                    items.append((int(mul) if x else 1, Irrep.parse(irrep)))
                except ValueError:
                    raise InputError(
                        f"{text!r} is not a sum of irreps", got=part.strip(), expected="like '32x0e + 16x1o + 2e'"
                    ) from None
        pairs = []
        for item in items:
            mul, irrep = item if isinstance(item, tuple) and not isinstance(item, Irrep) else (1, item)
            if not isinstance(mul, int) or mul < 0:
                raise InputError("a multiplicity is not a count", got=mul, expected=">= 0")
            pairs.append((mul, Irrep.parse(irrep)))
        return super().__new__(cls, pairs)

    @staticmethod
    def harmonics(lmax: int) -> "Irreps":
        """0e + 1o + 2e + ... up to lmax: what spherical harmonics carry."""
        return Irreps([(1, Irrep(l, (-1) ** l)) for l in range(lmax + 1)])

    @property
    def dim(self) -> int:
        return sum(mul * ir.dim for mul, ir in self)

    @property
    def multiplicity(self) -> int:
        """Number of irreps, counted with multiplicity."""
        return sum(mul for mul, _ in self)

    @property
    def lmax(self) -> int:
        if not self:
            raise InputError("an empty sum has no largest degree")
        return max(ir.l for _, ir in self)

    def count(self, irrep: str | Irrep) -> int:  # type: ignore[override]
        wanted = Irrep.parse(irrep)
        return sum(mul for mul, ir in self if ir == wanted)

    def sort(self) -> "Irreps":
        """Sorted by irrep, blocks kept apart."""
        return Irreps(sorted(self, key=lambda item: item[1]))

    def simplify(self) -> "Irreps":
        """Adjacent equal irreps merged, empty ones dropped."""
        out: list[tuple[int, Irrep]] = []
        for mul, ir in self:
            if out and out[-1][1] == ir:
                out[-1] = (out[-1][0] + mul, ir)
            elif mul:
                out.append((mul, ir))
        return Irreps(out)

    def regroup(self) -> "Irreps":
        """Sorted, then simplified."""
        return self.sort().simplify()

    def filter(
        self, keep: "str | Irreps | Callable[[int, Irrep], bool] | None" = None, *, lmax: int | None = None
    ) -> "Irreps":
        """The blocks whose irrep is in `keep` (or for which keep(mul, irrep) is true) and whose degree is at most lmax."""
        if keep is not None and not callable(keep):
            known = {ir for _, ir in Irreps(keep)}
            chosen: Callable[[int, Irrep], bool] = lambda mul, ir: ir in known  # noqa: E731
        else:
            chosen = keep or (lambda mul, ir: True)
        return Irreps([(m, ir) for m, ir in self if chosen(m, ir) and (lmax is None or ir.l <= lmax)])

    def slices(self) -> list[slice]:
        """Where each block lies in a flat vector."""
        out, at = [], 0
        for mul, ir in self:
            out.append(slice(at, at + mul * ir.dim))
            at += mul * ir.dim
        return out

    def __add__(self, other) -> "Irreps":  # type: ignore[override]
        return Irreps([*self, *Irreps(other)])

    def __mul__(self, times: int) -> "Irreps":  # type: ignore[override]
        """Every multiplicity times `times`."""
        return Irreps([(mul * times, ir) for mul, ir in self])

    __rmul__ = __mul__  # pyright: ignore

    def __iter__(self) -> Iterator[tuple[int, Irrep]]:
        return super().__iter__()

    def __str__(self) -> str:
        return "+".join(f"{mul}x{ir}" for mul, ir in self)

    __repr__ = __str__
