"""When the models of several processes are averaged."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

from ..._world import ProcessGroup, group_of
from .utils import Parameters, average_parameters_or_parameter_groups

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages parameters now and then; `step` counts how often it was asked."""

    def __init__(self, process_group: ProcessGroup | None = None) -> None:
        self.process_group = group_of(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Any) -> None:
        """Called after each step of an optimizer."""
        raise NotImplementedError


class PeriodicModelAverager(ModelAverager):
    """Averages parameters every `period` steps, from step `warmup_steps` on."""

    def __init__(self, period: int, warmup_steps: int = 0, process_group: ProcessGroup | None = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "When period is 1, no need to use model averaging: the models are the same after every step, as with "
                "DistributedDataParallel alone, which is quicker.",
                stacklevel=2,
            )
        self.warmup_steps = warmup_steps
        self.period = period

    def average_parameters(self, params: Parameters) -> None:
        """Count a step, and average the parameters that have gradients if it is time."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
