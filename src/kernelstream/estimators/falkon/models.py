r"""Nearly exact kernel ridge, logistic regression and support vector machines on all rows, through Nyström centres."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ... import losses
from ...checks import positive, whole
from ...losses import Loss
from ...progress import SolverBar
from ...random import SeedStream, generator
from ...registry.caller import warn_unsolved
from ...rows import Rows, divided, drop, merged, pack, unpack
from ...solvers import ConjugateGradient, NewtonCG, Solver, best_constant
from ...solvers.falkon import CenterMatrix, falkon, kernel_blocks
from ...solvers.kernel_ridge import kernel_ridge
from ...solvers.search import Sample
from ...state.nested import State, renew_under
from ...state.schema import POSITIVE, Array, Count, Number, Schema, check, length
from .._contract.batch import dual_coef, history, intercept, lam, n_iter
from .._contract.classifier import StreamClassifier
from .._contract.context import one_against_rest
from .._contract.kept import packed
from .._contract.kernel import WithKernel, kernel
from .._contract.regressor import StreamRegressor
from .._contract.shown import shown
from .._described import described
from .choice import FalkonSearch

USUAL_CENTERS = 2000
FEW_ROWS = 1 << 12  # for the squared loss, number of rows up to which all are centres on the processor,
MANY_ROWS = 1 << 16  # and on a GPU with the memory for them;
DEVICE_CENTERS = 1 << 14  # number of centres on a GPU if there are more rows
DEVICE_CELLS = 1 << 24  # kernel values of rows and centres from which short trials run on the device as well


class Falkon(WithKernel):
    """Coefficients of kernel functions at centres."""

    keeps_rows = True
    n_centers: int | str
    lam: float | None
    tol: float
    max_iter: int

    def one_width(self) -> bool:
        return not self.free and super().one_width()

    @property
    def free(self) -> bool:
        """Whether the bandwidth is left to us, and with it the widths of the columns."""
        given = self.given
        return isinstance(given.kernel, str) and given.gamma is None and given.kernel_object.is_fourier

    def check_parameters(self) -> None:
        if self.n_centers != "auto":
            whole("n_centers", self.n_centers)
        if self.lam is not None:
            positive("lam", self.lam)
        loss = self.context.loss_for(2)
        solver: Solver = (ConjugateGradient if loss.name == "squared" else NewtonCG)(self.tol, self.max_iter)
        solver.check()
        if loss.smoothness is None:
            smooth = [name for name in losses.names() if losses.get(name).smoothness is not None]
            raise ValueError(
                f"loss must be smooth: one of {', '.join(smooth)}, without a dead zone, got {self.parameters['loss']!r}"
            )
        self.given.kernel_object.validate(resolved=False)

    def choose(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None, m: int) -> tuple[Rows, float]:
        """Enter what is left to the model; returns the rows in the widths of the kernel, and the penalty.

        What was chosen before stays as it is.
        """
        if "lam" in state:
            return divided(X, state["width"]) if "width" in state else X, state["lam"]
        loss, lam, ops, n = self.context.loss_for(2), self.lam, self.ops, X.shape[0]
        if n * min(m, n) < DEVICE_CELLS:  # a device would wait more than it works
            ops = getattr(ops, "host", ops)
        common = (loss, state["seed"], ops, m)
        if self.free:
            search = FalkonSearch(Sample(X, Y, weight), *common)
            width, kernel, penalty = search.widths_and_kernel(
                lambda X: self.given.resolved(self.given.kernel_entries(X))
            )
            lam = penalty if lam is None and loss.name == "squared" else lam
            state["width"] = width
            renew_under(state, self.prefix, self.given.entries_of(kernel))
            X = divided(X, width)
        else:
            self.estimate(state, X)
        if lam is None:
            lam = FalkonSearch(Sample(X, Y, weight), *common).penalty(self.kernel(state))
        return X, float(lam)

    def solve(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None) -> None:
        loss, seed, m = self.context.loss_for(2), state["seed"], self._center_count(X)
        X, lam = self.choose(state, X, Y, weight, m)
        kernel = self.kernel(state)
        if X.shape[0] <= m:  # all are centres: equal rows are one, with the sum of their weights
            first, Y, weight, _ = merged(X, Y, weight, also=Y)
            X = X[first]
        centers = np.arange(X.shape[0])
        if X.shape[0] > m:
            centers = np.sort(generator(seed, SeedStream.MAP).choice(X.shape[0], m, replace=False))
        offset = best_constant(Y, weight, loss)
        with SolverBar(f"{self.context.name}, {len(centers):,} centres") as report:
            options: dict[str, Any] = {"weight": weight, "tol": self.tol, "max_iter": self.max_iter, "report": report}
            if X.shape[0] <= m and loss.name == "squared":
                found = kernel_ridge(kernel, X, Y - offset, lam, self.ops, **options)
                alpha = found.W
            else:
                Z = CenterMatrix(kernel, X, centers, self.ops, seed)
                found = falkon(Z, Y, loss, lam, self.ops, offset=offset, **options)
                alpha = Z.coefficients(found.W)
        if not found.converged:
            warn_unsolved(f"tol={self.tol:g} was not reached in {self.max_iter} iterations; raise max_iter, tol or lam")
        drop("centers", state)
        state |= pack("centers", X[centers]) | {
            "alpha": np.ascontiguousarray(alpha),
            "offset": offset,
            "lam": lam,
            "n_iter": found.n_iter,
            "history": np.array(found.history),
        }

    def _center_count(self, X: Rows) -> int:
        """How many centres there are if there are rows enough."""
        if self.n_centers != "auto":
            return int(self.n_centers)
        ops, n = self.ops, X.shape[0]
        if self.context.loss_for(2).name != "squared":
            return USUAL_CENTERS
        if not getattr(ops, "cuda", False):
            return usual_centers(n)
        room = ops.room_for_rows(X.dtype.itemsize)
        return n if n <= min(MANY_ROWS, room) else max(USUAL_CENTERS, min(DEVICE_CENTERS, room // 4))

    def found(self, state: State, share: float) -> tuple[dict[str, Any], np.ndarray | None]:
        found = {"kernel": self.kernel(state), "gamma": None, "lam": state["lam"] * share}
        return found, state.get("width")

    def score(self, state: State, X: Rows) -> np.ndarray:
        if "width" in state:
            X = divided(X, state["width"])
        blocks = kernel_blocks(self.kernel(state), X, unpack("centers", state), self.ops)
        return blocks.dot(state["alpha"]) + state["offset"]

    def schema(self, state: State, trained: bool) -> Schema:
        m, outputs = length(state, "alpha"), state["n_outputs"]
        own: Schema = {
            "alpha": Array((m, outputs)),
            "offset": Array((outputs,)),
            "lam": Number(POSITIVE),
            "n_iter": Count(),
            "history": Array((length(state, "history"),), free=True),
        }
        if self.free:
            own["width"] = Array((state["n_features"],), low=POSITIVE)
        check({name: state[name] for name in own if name in state}, own)
        return self.kernel_schema(state, True) | packed("centers", state, m) | own


# -------------------------------------------------------------------- what the estimators say of the solution
@shown
def width(learner: Falkon, state: State) -> np.ndarray:
    """What the columns are divided by, (d,)."""
    return state.get("width", np.ones(state["n_features"]))


@shown
def centers(learner: Falkon, state: State) -> Rows:
    """The centres, (m, d), as they are after the division by ``width_``."""
    return unpack("centers", state)


def usual_centers(n: int) -> int:
    """How many centres a processor takes of n rows: all of few."""
    return n if n <= FEW_ROWS else USUAL_CENTERS


@described()
@dataclass(eq=False, repr=False)
class FalkonClassifier(StreamClassifier):
    r"""Kernel classifier on all rows at once, nearly exact, in time and memory that grow like the rows.

    .. math:: \min_\alpha \sum_i a_i\, l\Bigl(y_i, b + \sum_{j \le m} \alpha_j k(x_i, s_j)\Bigr)
              + \frac{\lambda}{2} \alpha' K_{SS}\, \alpha

    The centres s are a random part of the rows; they and some rows for each precondition conjugate gradients [1]_
    (Newton steps for losses other than the squared one [2]_). Blocks of the kernel matrix are made when they are
    needed: n × m numbers never exist at once. With all rows as centres this is kernel ridge regression on -1 and +1,
    kernel logistic regression or a support vector machine with squared hinge. Several classes are learned one against
    the rest; b is the constant score of least loss.

    Parameters
    ----------
    gamma : float, "scale", "median" or None, default=None
        Bandwidth of a kernel given by name. None chooses it by short trials on held-out rows, with columns divided by
        their range, their standard deviation or one number for all, whichever is best there, and then by widths that
        follow from how much the learned function depends on each column. For a kernel that is not shift invariant, None
        means "median".
    n_centers : int or "auto", default="auto"
        Number m of centres. More are better and cost time in proportion; if there are no more rows than that, all are
        centres and the solution is exact. "auto" means 2,000. For the squared loss it means all rows if there are at
        most 4,096; on a GPU all of at most 65,536 rows, as its memory allows, and 16,384 of more.
    lam : float or None, default=None
        Penalty next to the *sum* of the losses (scikit-learn's ``alpha`` of kernel ridge, 1/C of an SVM); None chooses
        it on held-out rows.
    loss : {"squared", "logistic", "squared_hinge"}, default="squared"
        "logistic" provides probabilities itself.
    tol : float, default=0.001
        Relative residual at which to stop.
    max_iter : int, default=100
        Passes over the rows, or Newton steps.
    random_state : int, Generator, RandomState or None, default=None
        Choice of the centres and of held-out rows.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    kernel_ : Kernel
        The kernel in use, with a numeric bandwidth: that of columns divided by ``width_``.
    width_ : (d,) array
        What the columns are divided by.
    lam_ : float
        The penalty in use.
    centers_ : (m, d) array
        The centres s.
    dual_coef_ : (n_outputs, n_support) array
        Coefficients of the support vectors.
    intercept_ : array
        The constant score b of each output.
    n_iter_ : int
        Passes or iterations of the solver.
    history_ : array
        Course of the solver, one number per iteration.

    See Also
    --------
    FalkonRegressor : The same for numbers.
    BinningClassifier : The Laplacian kernel on all rows, by sparse features.

    Notes
    -----
    Every iteration takes time proportional to n m, the factors of the centres take time proportional to m³ once; memory
    is proportional to m², plus a block of rows.

    References
    ----------
    .. [1] Rudi, Carratino, Rosasco: FALKON, an optimal large scale kernel method, NeurIPS 2017.
    .. [2] Marteau-Ferey, Bach, Rudi: Globally convergent Newton methods for ill-conditioned generalized self-concordant
       losses, NeurIPS 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import FalkonClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> FalkonClassifier(n_centers=200, random_state=0).fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.99
    True
    """

    on_device = True
    kernel_, width_, centers_, n_iter_, history_ = kernel, width, centers, n_iter, history
    lam_, dual_coef_, intercept_ = lam, dual_coef, intercept

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    n_centers: int | str = "auto"
    lam: float | None = None
    loss: Loss | str = "squared"
    _: KW_ONLY
    tol: float = 1e-3
    max_iter: int = 100

    _learns = Falkon

    @staticmethod
    def _loss_rule(parameters: dict[str, Any], n_classes: int) -> Loss:
        return one_against_rest(losses.get(parameters["loss"]), n_classes)


@described(like=FalkonClassifier)
@dataclass(eq=False, repr=False)
class FalkonRegressor(StreamRegressor):
    r"""Kernel ridge regression on all rows at once, nearly exact, in time and memory that grow like the rows.

    .. math:: \min_\alpha \tfrac12 \sum_i a_i \Bigl(y_i - \bar y - \sum_{j \le m} \alpha_j k(x_i, s_j)\Bigr)^2
              + \frac{\lambda}{2} \alpha' K_{SS}\, \alpha

    The centres s are a random part of the rows; they and some rows for each precondition conjugate gradients [1]_.
    Blocks of the kernel matrix are made when they are needed.

    See Also
    --------
    FalkonClassifier : The same for labels.
    OnlineRidge : Ridge regression row by row, on features.

    References
    ----------
    .. [1] Rudi, Carratino, Rosasco: FALKON, an optimal large scale kernel method, NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import FalkonRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (600, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> FalkonRegressor(random_state=0).fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.999
    True
    """

    on_device = True
    kernel_, width_, centers_, n_iter_, history_ = kernel, width, centers, n_iter, history
    lam_, dual_coef_, intercept_ = lam, dual_coef, intercept
    loss = "squared"

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    n_centers: int | str = "auto"
    lam: float | None = None
    _: KW_ONLY
    tol: float = 1e-3
    max_iter: int = 100

    _learns = Falkon
