"""``kernel`` and ``gamma``, as nearly every learner and feature map has them, turned into a kernel with numbers."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ..state.schema import POSITIVE, Number, Schema
from ._base import Kernel, get

BANDWIDTHS = ("scale", "median")  # parameters that a kernel estimates from rows


def rules_of(kernel: Kernel) -> dict[str, str]:
    """The (nested) parameters of a kernel that still hold a bandwidth rule, and which rule."""
    return {
        name: value for name, value in kernel.get_params().items() if isinstance(value, str) and value in BANDWIDTHS
    }


class KernelParameters:
    """A kernel, by name or as an object, and ``gamma``, the bandwidth of one given by name.

    Without ``gamma`` a kernel given by name takes its bandwidth from the median distance of rows, where it has such a
    rule. Numbers that a kernel takes from rows are *entries*, a dict by the names of its parameters, which belongs in
    a model's state.

    >>> import numpy as np
    >>> given = KernelParameters("gaussian", None)
    >>> given.kernel_object
    Gaussian(gamma='median')
    >>> given.resolved(given.kernel_entries(np.array([[0.0], [1.0], [3.0]])))
    Gaussian(gamma=0.125)
    """

    def __init__(self, kernel: Any, gamma: Any = None):
        self.kernel = kernel
        self.gamma = gamma

    @property
    def kernel_object(self) -> Kernel:
        """The kernel of the parameters, its bandwidth possibly still a rule."""
        kernel = get(self.kernel, self.gamma)
        if self.gamma is None and isinstance(self.kernel, str) and kernel.bandwidth and "median" in kernel.rules:
            kernel = get(self.kernel, "median")
        return kernel

    @property
    def kernel_needs_data(self) -> bool:
        """Whether the kernel has a bandwidth to be estimated from rows."""
        return bool(rules_of(self.kernel_object))

    @property
    def takes_width(self) -> bool:
        """Whether a bandwidth comes from rows that may as well be shifted and scaled beforehand."""
        return self.kernel_needs_data and not self.restricted

    @property
    def restricted(self) -> bool:
        """Whether there are finite rows the kernel cannot take."""
        kernel = self.kernel_object
        return kernel.domain != "real" or type(kernel).check is not Kernel.check  # compositions ask their parts

    def check(self, X: Any) -> None:
        """Raise ValueError when rows leave the domain of the kernel."""
        self.kernel_object.check(X)

    def kernel_entries(self, X: Any) -> dict[str, Any]:
        """The numbers that the kernel takes from rows X (n, d), by the names of its (nested) parameters."""
        kernel = self.kernel_object
        return self.entries_of(kernel.resolve(X)) if rules_of(kernel) else {}

    def entries_of(self, resolved: Kernel) -> dict[str, Any]:
        """The numbers of a resolved kernel that stand in place of rules."""
        values = resolved.get_params()
        return {name: float(values[name]) for name in rules_of(self.kernel_object)}

    def kernel_schema(self) -> Schema:
        """What `kernel_entries` may have returned; ValueError for parameters that no kernel has."""
        return dict.fromkeys(rules_of(self.kernel_object), Number(POSITIVE))

    def resolved(self, entries: dict[str, Any]) -> Kernel:
        """The kernel with the numbers of the entries in place of its rules."""
        kernel = self.kernel_object
        names = rules_of(kernel)
        return clone(kernel).set_params(**{name: entries[name] for name in names}) if names else kernel
