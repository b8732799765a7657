"""Base of learners that use a kernel directly: its parameters, and a bandwidth from the first rows."""

from __future__ import annotations

from typing import Any

from ...kernels import Kernel
from ...kernels.parameters import KernelParameters
from ...rows import Rows, host
from ...state.schema import Schema, check, prefixed
from ..feature import MAP, map_entries, renew_map_entries
from .base import WARM_UP, State, StreamEstimator


class KernelEstimator(StreamEstimator):
    """``kernel`` and ``gamma`` as parameters; the estimated bandwidth is in the state."""

    kernel: Any
    gamma: Any

    @property
    def _given(self) -> KernelParameters:
        return self._cached("given", lambda: KernelParameters(self.kernel, self.gamma))

    def _kernel(self, state: State) -> Kernel:
        def resolve() -> Kernel:
            return self._given.resolved(map_entries(state))

        return self._cached("kernel", resolve)

    def _begin(self, state: State) -> None:
        if not self._given.kernel_needs_data:
            self._estimate(state, None)

    def _warm_up_rows(self) -> int:
        return WARM_UP if self._given.kernel_needs_data else 0

    def _estimate(self, state: State, X: Rows) -> None:
        renew_map_entries(state, self._given.kernel_entries(X))

    def _kernel_schema(self, state: State, trained: bool) -> Schema:
        """Schema of the numbers that the kernel has taken from rows; they are checked here."""
        if not trained and self._given.kernel_needs_data:
            return {}
        schema = self._given.kernel_schema()
        check(map_entries(state), schema)
        return prefixed(MAP, schema)

    def _check_rows(self, X: Rows) -> None:
        if self._cached("domain", lambda: self._given.restricted):
            self._given.check(host(X))
