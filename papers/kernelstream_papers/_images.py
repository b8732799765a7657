"""Square images as rows, (n, side²)."""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

REACH, WIDTH = 34.0, 4.0  # of the displacements before they are smoothed, and of the Gaussian, in pixels


def squares(X: np.ndarray) -> np.ndarray:
    """Rows as images, (n, side, side)."""
    side = math.isqrt(X.shape[1])
    if side * side != X.shape[1]:
        raise ValueError(f"this is for square images, and {X.shape[1]} columns make none")
    return X.reshape(-1, side, side)


def blurred(X: np.ndarray, pixels: float) -> np.ndarray:
    """Images in [0, 1], each pixel the mean of those around it, in [-1, 1].

    Pixels have weights ``exp(-r² / 2 pixels²)``; outside of the image all is 0.
    """
    images = gaussian_filter(squares(X), (0, pixels, pixels), mode="constant", truncate=6.0)
    return 2.0 * images.reshape(X.shape) - 1.0


def bent(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Elastic deformations: a pixel shows what was at its place plus ``REACH`` times a smoothed random displacement.

    Simard, Steinkraus, Platt: Best practices for convolutional neural networks, 2003; values between pixels by linear
    interpolation, 0 outside of the image.
    """
    images = squares(X)
    n = len(images)
    moved = np.empty_like(images)
    for at in range(0, n, 1024):  # fields of so many images in memory
        part = images[at : at + 1024]
        field = rng.uniform(-1.0, 1.0, (2, *part.shape))
        field = REACH * gaussian_filter(field, (0, 0, WIDTH, WIDTH), mode="constant")
        which, down, across = np.indices(part.shape)
        places = [which, down + field[0], across + field[1]]
        moved[at : at + 1024] = map_coordinates(part, places, order=1, mode="constant")
    return moved.reshape(X.shape)
