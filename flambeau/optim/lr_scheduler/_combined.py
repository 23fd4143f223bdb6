"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..._dispatch.interpreter import runs_outside
from ..optimizer import Optimizer
from ._base import LRScheduler, assign, current
from ._plateau import ReduceLROnPlateau


class _Combined(LRScheduler):
    """Holds other schedules, in `_schedulers`."""

    _UNSAVED = ("optimizer", "_schedulers")
    _schedulers: Sequence[Any]

    def _check(self, schedulers: Sequence[Any], optimizer: Any) -> None:
        name = type(self).__name__
        for position, each in enumerate(schedulers):
            if not hasattr(each, "optimizer"):
                raise TypeError(f"{name} at index {position} should have `optimizer` as its attribute.")
            if isinstance(each, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau`, whose `step` takes a metric: there is one at index "
                    f"{position}"
                )
            if optimizer != each.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer: that of the {type(each).__name__} "
                    f"at index {position} is another {type(each.optimizer).__name__}"
                )

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; of the schedules, their own state dictionaries."""
        state = super().state_dict()
        state["_schedulers"] = [each.state_dict() for each in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take on what `state_dict` returned."""
        vars(self).update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for each, state in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            each.load_state_dict(state)


class SequentialLR(_Combined):
    """One schedule after the other: the next begins at each of the `milestones`.

    Args:
        schedulers (list): the schedules, in their order.
        milestones (list of ints): the steps at which something changes, in increasing order.

    Raises:
        ValueError: there is not one milestone between each two schedulers.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> warm = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
        >>> decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, decay], milestones=[2])
        >>> for _ in range(4):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [0.1]
        [0.1]
        [1.0]
        [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[Any], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points: there are {len(schedulers)} schedulers and {len(milestones)} milestones"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            assign(group, group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take back the step that the schedules made when they were constructed."""
        scheduler = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for each in scheduler._schedulers:
                self.recursive_undo(each)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    @runs_outside
    def step(self) -> None:  # type: ignore[override]  # as in PyTorch, without the epoch
        """Set the next learning rates."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """Several schedules at once: each step is a step of all, and their factors multiply.

    Args:
        schedulers (sequence): the schedules, all of the same optimizer.
        optimizer (Optimizer, optional): the optimizer; None takes that of the first schedule.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> halve = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> warm = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
        >>> scheduler = torch.optim.lr_scheduler.ChainedScheduler([halve, warm])
        >>> for _ in range(3):
        ...     print(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        0.1
        0.05
        0.25
    """

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or getattr(schedulers[0], "optimizer", None)
        self._check(schedulers, optimizer)
        assert optimizer is not None
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = current(optimizer)

    @runs_outside
    def step(self) -> None:  # type: ignore[override]  # as in PyTorch, without the epoch
        """Set the next learning rates."""
        for each in self._schedulers:
            each.step()
        self._last_lr = current(self.optimizer)
