r"""Learned spectra: frequencies that are functions of parameters, so that a kernel can be learned by gradients.

The random part of a frequency is drawn once, ``e_j ~ N(0, I)``, and kept; what is learned is the map that turns it into
``w_j(theta)`` (the reparameterisation of Nguyen, Le, Bui, Phung: Large-scale online kernel learning with random feature
reparameterization, IJCAI 2017). Everything here is in units of a starting width: rows come multiplied by ``1/length``,
so every spectrum starts, on average, as that of the Gaussian kernel ``exp(-|x - x'|^2 / (2 length^2))``.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from kernelstream.checks import whole
from kernelstream.features.sampling import frequencies
from kernelstream.kernels import Gaussian
from kernelstream.random import SeedStream, generator

from ..registry.names import Catalogue
from ..registry.parameters import WithParameters

#: No parameter moves further than this from its start. For a log-width that is a factor of 20 either way: enough to
#: switch an input off or to make it decisive, too little for one bad row to make features that are noise.
GUARD = 3.0


class Spectrum(WithParameters):
    """Base of all learned spectra: immutable parameters, pure functions of ``theta``."""

    name: ClassVar[str] = ""

    def check(self, n_components: int) -> None:
        """Raise ValueError for parameters out of range."""

    def height(self, d: int) -> int:
        """Number of coordinates of the random part e."""
        return d

    def draw(self, seed: int, d: int, D: int, dtype: Any) -> np.ndarray:
        """The fixed random part, E (height, D): orthogonal directions in blocks, each entry N(0, 1)."""
        return frequencies(Gaussian(gamma=0.5), seed, self.height(d), D, "orthogonal", dtype)

    def shape(self, d: int) -> tuple[int, ...]:
        """Shape of theta for rows of width d."""
        raise NotImplementedError

    def start(self, seed: int, d: int) -> np.ndarray:
        """Parameters before any row."""
        raise NotImplementedError

    def frequencies(self, theta: Any, E: Any, xp: Any = np) -> Any:
        """W (d, D), one column per frequency; of arrays, or of tensors where ``xp`` is torch."""
        raise NotImplementedError

    def pull_back(self, theta: np.ndarray, E: np.ndarray, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Derivative of ``sum_j q_j w_j'x`` by theta, in the shape of theta; x (d,), q (D,)."""
        raise NotImplementedError

    def relevance(self, theta: np.ndarray) -> np.ndarray:
        """Root mean square of the frequencies along each input, (d,)."""
        raise NotImplementedError

    def native(self) -> tuple[str, int] | None:
        """Name and size of the compiled twin; None where there is none."""
        return None


class Diagonal(Spectrum):
    r"""A width per input, ``w_j = sigma * e_j``, ``sigma = exp(theta)``: ``k(x, x') = exp(-|sigma * (x - x')|^2 / 2)``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features.spectra import Diagonal
    >>> Diagonal().frequencies(np.log([1.0, 2.0]), np.ones((2, 1))).ravel().tolist()
    [1.0, 2.0]
    """

    name = "diagonal"

    def shape(self, d: int) -> tuple[int, ...]:
        return (d,)

    def start(self, seed: int, d: int) -> np.ndarray:
        return np.zeros(self.shape(d))

    def frequencies(self, theta: Any, E: Any, xp: Any = np) -> Any:
        return xp.exp(theta)[:, None] * E

    def pull_back(self, theta: np.ndarray, E: np.ndarray, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        return x * np.exp(theta) * (E @ q)

    def relevance(self, theta: np.ndarray) -> np.ndarray:
        return np.exp(theta)

    def native(self) -> tuple[str, int]:
        return "diagonal", 1


class Mixture(Spectrum):
    r"""Spectral mixture: the D frequencies are shared out among Q components, ``w_j = mu_q + sigma_q * e_j``.

    ``k(x, x') = 1/Q sum_q exp(-|sigma_q * (x - x')|^2 / 2) cos(mu_q'(x - x'))``; all widths and centres are learned.
    The first component starts as the plain Gaussian kernel, the others with centres drawn from N(0, I/2).

    Parameters
    ----------
    n_centres : int, default=4
        Number Q of components.
    """

    name = "mixture"

    def __init__(self, n_centres: int = 4):
        self.n_centres = n_centres

    def check(self, n_components: int) -> None:
        if whole("n_centres", self.n_centres) > n_components:
            raise ValueError(f"n_centres={self.n_centres} exceeds n_components={n_components}")

    def shape(self, d: int) -> tuple[int, ...]:
        return 2, self.n_centres, d

    def start(self, seed: int, d: int) -> np.ndarray:
        # theta[0] holds the log-widths, theta[1] the centres; half the variance in each keeps the spectrum's size.
        theta = np.empty(self.shape(d))
        theta[0] = -0.5 * math.log(2.0)
        theta[1] = generator(seed, SeedStream.SPECTRUM_START).standard_normal((self.n_centres, d)) / math.sqrt(2.0)
        theta[:, 0] = 0.0
        return theta

    def slices(self, D: int) -> list[slice]:
        """Frequencies of each component."""
        Q = self.n_centres
        return [slice(q * D // Q, (q + 1) * D // Q) for q in range(Q)]

    def frequencies(self, theta: Any, E: Any, xp: Any = np) -> Any:
        W = xp.empty_like(E)
        for q, mine in enumerate(self.slices(E.shape[1])):
            W[:, mine] = xp.exp(theta[0, q])[:, None] * E[:, mine] + theta[1, q][:, None]
        return W

    def pull_back(self, theta: np.ndarray, E: np.ndarray, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        gradient = np.empty_like(theta)
        for c, mine in enumerate(self.slices(E.shape[1])):
            gradient[0, c] = x * np.exp(theta[0, c]) * (E[:, mine] @ q[mine])
            gradient[1, c] = x * q[mine].sum()
        return gradient

    def relevance(self, theta: np.ndarray) -> np.ndarray:
        return np.sqrt(np.mean(np.exp(2 * theta[0]) + theta[1] ** 2, axis=0))

    def native(self) -> tuple[str, int]:
        return "mixture", self.n_centres


class LowRank(Spectrum):
    r"""A linear map of the input to few dimensions, ``w_j = theta e_j``: ``k(x, x') = exp(-|theta'(x - x')|^2 / 2)``.

    The metric ``theta theta'`` (d, d) has rank r, so the model depends on r linear combinations of the inputs, which
    are learned: for targets that are not aligned with the columns.

    Parameters
    ----------
    rank : int, default=8
        Number r of combinations; at least the number of columns means a full metric. Directions are found more easily
        with some to spare: give a few more than the target needs.
    """

    name = "low_rank"

    def __init__(self, rank: int = 8):
        self.rank = rank

    def check(self, n_components: int) -> None:
        whole("rank", self.rank)

    def height(self, d: int) -> int:
        return min(self.rank, d)

    def shape(self, d: int) -> tuple[int, ...]:
        return d, self.height(d)

    def start(self, seed: int, d: int) -> np.ndarray:
        # Random orthonormal combinations, scaled to keep the mean distance; a full metric starts at the identity.
        r = self.height(d)
        if r == d:
            return np.eye(d)
        Q, R = np.linalg.qr(generator(seed, SeedStream.SPECTRUM_START).standard_normal((d, r)))
        return Q * np.sign(np.diag(R)) * math.sqrt(d / r)

    def frequencies(self, theta: Any, E: Any, xp: Any = np) -> Any:
        return theta @ E

    def pull_back(self, theta: np.ndarray, E: np.ndarray, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        return np.outer(x, E @ q)

    def relevance(self, theta: np.ndarray) -> np.ndarray:
        return np.linalg.norm(theta, axis=1)

    def native(self) -> tuple[str, int]:
        return "low_rank", self.rank


CATALOGUE = Catalogue("spectrum", Spectrum, Diagonal, Mixture, LowRank)
names, get = CATALOGUE.names, CATALOGUE.get
