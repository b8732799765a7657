"""Base of learners that use a kernel directly, with a bandwidth from the first rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ...kernels import Kernel
from ...kernels.parameters import KernelParameters
from ...rows import Rows
from ...state.nested import State, renew_under, under
from ...state.schema import Schema, check, prefixed
from .learner import Learner
from .shown import shown
from .warm_up import WARM_UP


class WithKernel(Learner):
    """A learner whose kernel may take its bandwidth from the first rows, which is then in the state."""

    prefix = "map_"  # of the state's entries that hold the kernel's numbers, as in model files

    @cached_property
    def given(self) -> KernelParameters:
        """The kernel, and the bandwidth of one given by name."""
        return KernelParameters(self.parameters["kernel"], self.parameters["gamma"])

    def kernel(self, state: State) -> Kernel:
        """The kernel with the bandwidth in use."""
        return self.derived.cached("kernel", lambda: self.given.resolved(under(state, self.prefix)))

    def start(self, state: State, before: State | None) -> None:
        if not self.given.kernel_needs_data:
            self.estimate(state, None)

    def warm_up_rows(self) -> int:
        return WARM_UP if self.given.kernel_needs_data else 0

    def one_width(self) -> bool:
        return self.given.takes_width

    def estimate(self, state: State, X: Rows) -> None:
        renew_under(state, self.prefix, self.given.kernel_entries(X))

    def kernel_schema(self, state: State, trained: bool) -> Schema:
        """Schema of the numbers that the kernel has taken from rows; they are checked here."""
        if not trained and self.given.kernel_needs_data:
            return {}
        schema = self.given.kernel_schema()
        check(under(state, self.prefix), schema)
        return prefixed(self.prefix, schema)

    def domains(self) -> list[Any]:
        return [self.given] if self.given.restricted else []


kernel = shown(WithKernel.kernel)
