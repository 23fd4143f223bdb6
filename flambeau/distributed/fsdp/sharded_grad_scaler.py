"""`ShardedGradScaler`: a step is skipped by all processes if the gradients of one of them overflowed."""

from __future__ import annotations

from typing import Any

from ...amp.grad_scaler import GradScaler
from .. import _calls
from .._world import ProcessGroup, group_of
from ..reductions import ReduceOp

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A `GradScaler` for parameters of which each process has a part."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        if enabled:
            self.process_group = group_of(process_group)

    def unscale_(self, optimizer: Any) -> None:
        """Unscale the gradients, and find out whether they overflowed on any process."""
        super().unscale_(optimizer)
        if not self._enabled:
            return
        for found in self._found_inf_per_device(optimizer).values():
            _calls.all_reduce(found, ReduceOp.MAX, self.process_group)
