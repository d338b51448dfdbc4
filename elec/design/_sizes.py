"""How small the features of a pattern are, and how black and white it is."""

import numpy as np
from jaxtyping import Bool
from scipy import ndimage

from sciax.core.errors import InputError, ShapeError
from sciax.elec._checks import positive


def binarisation(density) -> float:
    """0 for all grey, 1 for black and white: mean of (2 rho - 1)^2."""
    return float(np.mean((2 * np.asarray(density) - 1) ** 2))


def _disc(diameter: int) -> Bool[np.ndarray, "d d"]:
    c = np.arange(diameter) - (diameter - 1) / 2
    return c[:, None] ** 2 + c[None, :] ** 2 <= (diameter / 2) ** 2


def _opened(pattern: np.ndarray, diameter: int) -> np.ndarray:
    """Opening by a disc. Odd discs by the distance to the nearest hole, even ones on the lattice of the pixel corners."""
    if diameter % 2 == 0 or diameter < 9:
        return np.asarray(ndimage.binary_opening(pattern, _disc(diameter)), bool)
    r2 = (diameter / 2) ** 2
    core = np.asarray(ndimage.distance_transform_edt(pattern)) ** 2 > r2
    if not core.any():
        return np.zeros_like(pattern)
    return np.asarray(ndimage.distance_transform_edt(~core)) ** 2 <= r2


def feature_size(density, pixel: float, threshold: float = 0.5) -> tuple[float, float]:
    """Smallest solid and smallest void feature (m): the largest disc whose opening leaves the pattern as it is.

    The idea of morphological rulers: a disc that fits everywhere loses nothing in an opening (solid) or closing (void) but
    the corners between pixels, so a feature counts when an erosion by 2 x 2 pixels of what is lost survives. Beyond its edge
    the pattern goes on as at the edge. Resolution is one pixel.

    Args:
        density: (nx, ny) or the pattern itself.
        pixel: side of a pixel (m).

    Returns:
        (solid, void); inf where there is only one phase.

    Source: the method of the imageruler tool (W. Chen, I. Williamson et al., 2022).
    """
    density = np.asarray(density)
    if density.ndim != 2:
        raise ShapeError("feature_size takes a 2-D density", got=density.shape)
    positive(pixel, "pixel")
    if not np.all(np.isfinite(density)):
        raise InputError("the density is not finite")
    solid = density > threshold
    longest = max(solid.shape)

    def smallest(pattern: np.ndarray) -> float:
        if not pattern.any() or pattern.all():
            return float("inf")
        for diameter in range(2, longest):
            around = diameter + 1
            padded = np.pad(pattern, around, mode="edge")
            lost = padded & ~_opened(padded, diameter)
            # corners of a pixel pattern are lost to every disc; a feature is lost as a whole
            inner = ndimage.binary_erosion(lost, np.ones((2, 2)))[around:-around, around:-around]
            if inner.any():
                return (diameter - 1) * pixel
        return longest * pixel

    return smallest(solid), smallest(~solid)
