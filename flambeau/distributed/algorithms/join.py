"""Processes with different numbers of inputs: those that are done take part in what the others still do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from ..._core.device import CPU
from ..._core.process.caller import warn_user
from ..._core.tensor import wrap
from .. import _calls
from .._world import ProcessGroup, group_of

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process that is done does while others are not, and when all are."""

    def main_hook(self) -> None:
        """Take part in one iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """After the last process is done."""


class _Config(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool


class Joinable(ABC):
    """What has collectives in its iterations, such as a data-parallel model."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _Config(False, False, False)

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What to do while others have inputs and this process has not."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the tensors that are exchanged."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The process group whose members wait for each other."""


class Join:
    """A region in which the processes may have different numbers of inputs."""

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._hooks = [each.join_hook(**kwargs) for each in joinables]
        self._enable = enable
        self._throw = throw_on_early_termination
        self._group: ProcessGroup = group_of(joinables[0].join_process_group)
        for number, each in enumerate(joinables):
            each._join_config = _Config(enable, throw_on_early_termination, number == 0)

    def __enter__(self) -> Join:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for each in self._joinables:
            each._join_config = _Config(False, False, False)
        if not self._enable or kind is not None:
            return
        everyone_is_done, is_last = False, True
        while not everyone_is_done:
            still_busy = _sum(0, self._group)
            if still_busy == 0:
                everyone_is_done = True
                continue
            if self._throw:
                _sum(1, self._group)
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
            is_last = False
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(is_last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Tell, at the beginning of an iteration, that this process has an input."""
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group = group_of(joinable.join_process_group)
        work = _calls.all_reduce(wrap(np.ones(1, np.float32), CPU), group=group, async_op=True)
        if config.throw_on_early_termination and _sum(0, group) > 0:
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


def _sum(own: int, group: ProcessGroup) -> int:
    tensor = wrap(np.full(1, own, np.float32), CPU)
    _calls.all_reduce(tensor, group=group)
    return int(tensor._array[0])


def warn_of_many_iterations(count: int) -> None:
    """Say that a process waits for others for long."""
    warn_user(
        f"Detected uneven input skew of greater than {count}. This means that rank has at least {count} fewer inputs "
        "than other currently-active ranks. This level of skew could lead to performance degradation during training."
    )
