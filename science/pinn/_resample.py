"""Where to put the residual points of the next round."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from sciax.core.errors import InputError, did_you_mean

Points = Float[np.ndarray, "axes n"]
Draw = Callable[[int], Points]
Size = Callable[[Points], Float[np.ndarray, " n"]]
POOL = 8  # candidates a point
SHARE = 0.2  # of the points that RAR exchanges


def even(draw: Draw, size: Size, now: Points | None, count: int, rng: Any) -> Points:
    """New points, evenly spread."""
    return draw(count)


def fixed(draw: Draw, size: Size, now: Points | None, count: int, rng: Any) -> Points:
    """The points of the first round for ever: the loss falls lower, the error does not."""
    return draw(count) if now is None else now


def rad(draw: Draw, size: Size, now: Points | None, count: int, rng: Any) -> Points:
    """Residual-based adaptive distribution (Wu et al. 2023): probability proportional to |r| / mean |r| + 1."""
    candidates = draw(POOL * count)
    r = size(candidates)
    chance = r / (r.mean() or 1.0) + 1
    return candidates[:, rng.choice(candidates.shape[1], count, replace=False, p=chance / chance.sum())]


def rar(draw: Draw, size: Size, now: Points | None, count: int, rng: Any) -> Points:
    """Residual-based adaptive refinement (Lu et al. 2021) with a constant number of points.

    The candidates with the largest residuals take the places of the points with the smallest.
    """
    if now is None:
        return draw(count)
    swap = max(1, int(SHARE * count))
    candidates = draw(POOL * count)
    worst = np.argsort(-size(candidates))[:swap]
    keep = np.argsort(-size(now))[: count - swap]
    return np.concatenate([now[:, keep], candidates[:, worst]], axis=1)


def r3(draw: Draw, size: Size, now: Points | None, count: int, rng: Any) -> Points:
    """Retain, resample, release (Daw et al. 2023): points above the mean residual stay, the others are drawn anew, evenly."""
    if now is None:
        return draw(count)
    r = size(now)
    stay = now[:, r > r.mean()]
    return np.concatenate([stay, draw(count - stay.shape[1])], axis=1)


RESAMPLING: dict[str, Callable[..., Points]] = {"rad": rad, "rar": rar, "r3": r3, "even": even, "fixed": fixed}


def resampling(name: str) -> Callable[..., Points]:
    """Raises InputError for an unknown name."""
    if name not in RESAMPLING:
        raise InputError(f"unknown way to draw points {name!r}", remedy=did_you_mean(str(name), RESAMPLING))
    return RESAMPLING[name]
