"""Averages of models over small groups often, and over large ones seldom."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..._world import ProcessGroup, new_subgroups
from .averagers import ModelAverager
from .utils import Parameters, average_parameters_or_parameter_groups

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(ModelAverager):
    """`period_group_size_dict` says how often groups of which size average: {4: 8, 16: 64} stands for groups of 8 every
    4 steps, and for all 64 processes every 16. Of several that are due, the largest does it.
    """

    def __init__(
        self,
        period_group_size_dict: dict[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__(process_group)
        sizes = period_group_size_dict
        if not sizes:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(sizes)
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if list(sizes.values())[-1] != self.process_group.size():
            raise ValueError(
                f"The last value in arg ``period_process_group_dict`` {list(sizes.values())[-1]} must be equal to the "
                f"size of arg ``process_group`` {self.process_group.size()}."
            )
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps
        self.period_process_group_dict: OrderedDict[int, ProcessGroup] = OrderedDict()
        for period, size in sizes.items():
            whole = size == self.process_group.size()
            self.period_process_group_dict[period] = self.process_group if whole else _own_group(size)

    def _find_process_group(self) -> ProcessGroup | None:
        """The largest group whose turn it is."""
        due = [period for period in self._periods if self.step % period == 0]
        return self.period_process_group_dict[due[-1]] if due else None

    def average_parameters(self, params: Parameters) -> None:
        """Count a step, and average the parameters that have gradients over the group whose turn it is."""
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                average_parameters_or_parameter_groups(params, group)
        self.step += 1


def _own_group(size: int) -> Any:
    return new_subgroups(size)[0]
