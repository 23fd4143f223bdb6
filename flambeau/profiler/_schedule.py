"""When a profiler records, and marks in a program for it."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from typing import Any

from ..utils._contextlib import context_decorator


class ProfilerAction(enum.Enum):
    """What a profiler does in a step.

    Example:
        >>> schedule = torch.profiler.schedule(wait=1, warmup=1, active=1)
        >>> [schedule(step).name for step in range(3)]
        ['NONE', 'WARMUP', 'RECORD_AND_SAVE']
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(enum.Enum):
    """What a profiler watches.

    Example:
        >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
        True
    """

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """What a profiler could watch here.

    Returns:
        the activities.

    Example:
        >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
        True
    """
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """What a profiler does in each step: first wait, then warm up, then record; `repeat` cycles, 0 for no end.

    >>> plan = flambeau.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']

    Args:
        wait (int): how many steps of a cycle nothing is recorded.
        warmup (int): how many steps are recorded and thrown away.
        active (int): how many steps are recorded and kept.
        repeat (int): how many cycles; 0 goes on to the end. Default: `0`.
        skip_first (int): how many steps before the first cycle are left out. Default: `0`.
        skip_first_wait (int): whether the first cycle has no `wait`: 1 leaves it out. Default: `0`.

    Returns:
        a function from the number of a step to what is done in it.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step / length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class record_function:
    """A name for a part of a program, by which profiles list it.

    Args:
        name (str): the name.
        args (str, optional): a text that is shown with it.

    Example:
        >>> with torch.profiler.profile() as profile:
        ...     with torch.profiler.record_function("my part"):
        ...         _ = torch.ones(3) + 1
        >>> "my part" in [event.key for event in profile.key_averages()]
        True
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._start = 0

    def __enter__(self) -> record_function:
        self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *exception: object) -> None:
        from ._recorder import recorders

        end = time.perf_counter_ns()
        for recorder in recorders():
            recorder.mark(self.name, max(self._start, recorder.started), end)

    def __call__(self, func: Callable[..., Any]) -> Any:
        return context_decorator(lambda: record_function(self.name, self.args), func)
