"""Is one forecast better than another? Block bootstrap of the difference of scores over cases."""

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth.verify._deterministic import aligned


@dataclass(frozen=True)
class Difference:
    """Result of `block_bootstrap`.

    Attributes:
        value: score of a minus score of b on all cases.
        low, high: confidence interval.
        significant: whether the interval excludes zero.
    """

    value: np.ndarray | xr.DataArray
    low: np.ndarray | xr.DataArray
    high: np.ndarray | xr.DataArray

    @property
    def significant(self) -> np.ndarray | xr.DataArray:
        return (self.low > 0) | (self.high < 0)


def block_bootstrap(
    a: np.ndarray | xr.DataArray,
    b: np.ndarray | xr.DataArray,
    *,
    block: int,
    over: str = "time",
    samples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    root: bool = True,
) -> Difference:
    """Confidence interval of the difference of two mean scores over dependent cases.

    Blocks of `block` consecutive cases are drawn with replacement, circularly, the same ones for a and b, so that both
    the autocorrelation within a block and the pairing are kept.

    Args:
        a, b: (cases, ...) squared errors (or other scores) of two forecasts on the same cases. Cases missing in either are
            left out of both. Labelled arrays are matched by their coordinates and give labelled results.
        block: at least the decorrelation time of the errors, in cases.
        over: the dimension of the cases in labelled arrays, taken in the order of its coordinate.
        root: compare root means (RMSE from squared errors) instead of means.

    Raises:
        InputError: shapes differ, or fewer than two blocks.

    Source: Politis and Romano (1992), circular block bootstrap.
    """
    if isinstance(a, xr.DataArray) and isinstance(b, xr.DataArray):
        if over not in a.dims or over not in b.dims:
            raise InputError("the cases have no dimension of this name", got=(a.dims, b.dims), expected=over)
        a, b = xr.broadcast(*aligned(a, b))
        a, b = (x.sortby(over) if over in x.coords else x for x in (a, b))
        a = a.transpose(over, ...)
        b = b.transpose(*a.dims)
        options = {"block": block, "samples": samples, "level": level, "seed": seed, "root": root}
        plain = block_bootstrap(a.values, b.values, **options)
        like = a.isel({over: 0}, drop=True)
        return replace(plain, **{n: like.copy(data=getattr(plain, n)) for n in ("value", "low", "high")})
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape:
        raise InputError("scores of different cases cannot be paired", got=f"{a.shape} and {b.shape}")
    n = a.shape[0]
    if not 1 <= block <= n // 2:
        raise InputError("block must leave at least two blocks", got=block, expected=f"1 to {n // 2}")
    ok = np.isfinite(a) & np.isfinite(b)
    weight = ok.astype(float)
    a, b = np.where(ok, a, 0), np.where(ok, b, 0)
    # Sums over each circular block once; a resample is then a sum of block sums.
    starts = np.arange(n)
    index = (starts[:, None] + np.arange(block)) % n
    sums = [x[index].sum(axis=1) for x in (a, b, weight)]
    rng = np.random.default_rng(seed)
    count = -(-n // block)
    drawn = rng.integers(0, n, (samples, count))

    def mean(total, weight):
        out = total / np.where(weight > 0, weight, np.nan)
        return np.sqrt(out) if root else out

    totals = [np.stack([s[row].sum(axis=0) for row in drawn]) for s in sums]
    difference = mean(totals[0], totals[2]) - mean(totals[1], totals[2])
    tail = 100 * (1 - level) / 2
    low, high = np.nanpercentile(difference, [tail, 100 - tail], axis=0)
    value = mean(a.sum(0), weight.sum(0)) - mean(b.sum(0), weight.sum(0))
    return Difference(value, low, high)
