"""`LRScheduler`: sets the learning rates of an optimizer anew, each time it is told to."""

from __future__ import annotations

import functools
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ..._dispatch.interpreter import RUN_OUTSIDE, runs_outside
from .._update import as_scalar
from ..optimizer import Optimizer

Rate = Any
"""A learning rate: a number or a tensor of one element."""

_DEPRECATED_EPOCH = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated: call `scheduler.step()`. "
    "With an epoch, the closed form of the schedule is used where it has one"
)
_WRAPPED = "_wrapped_by_lr_sched"


def check_optimizer(optimizer: Any) -> None:
    """Refuse what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def copied(value: Rate) -> Rate:
    """A tensor as a copy, which does not follow later changes; a number as it is."""
    return value.clone() if isinstance(value, Tensor) else value


def current(optimizer: Optimizer, key: str = "lr") -> list[Rate]:
    """The values of an option in all groups."""
    return [copied(group[key]) for group in optimizer.param_groups]


def assign(group: dict[str, Any], value: Rate, key: str = "lr") -> None:
    """Set an option of a group; a tensor stays the same tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(as_scalar(value))
    else:
        group[key] = value


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group: those of a list or tuple, or the same for all."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * groups
    elif len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {groups}."
        )
    return [copied(each) for each in value]


def warn_of_epoch(epoch: Any) -> None:
    """Say that `step(epoch)` is old."""
    if epoch is not None:
        warnings.warn(_DEPRECATED_EPOCH, UserWarning, stacklevel=3)


def state_of_function(function: Any) -> dict[str, Any] | None:
    """What of a function can be saved: the attributes of a callable object, nothing of a function proper."""
    return None if isinstance(function, types.FunctionType) else vars(function).copy()


class LRScheduler:
    """The base of all schedules. A subclass computes the rates of all groups in `get_lr`: from `self.last_epoch`, how
    often `step` was called, from `self.base_lrs`, the rates at the beginning, and from the present rates in
    `self.optimizer.param_groups`.

    Args:
        optimizer (Optimizer): the optimizer whose learning rates the schedule sets.
        last_epoch (int): the number of the last step done, to resume; -1 begins anew. Default: `-1`.

    Example:
        >>> class Halved(torch.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [base / 2**self.last_epoch for base in self.base_lrs]
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = Halved(optimizer)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _last_lr: list[Rate]
    _step_count: int
    _UNSAVED: tuple[str, ...] = ("optimizer",)
    """Attributes that are no part of the state dictionary."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith(f"{__package__}."):
            documented_like(LRScheduler)(cls)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", copied(group["lr"]))
        else:
            for number, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with "
                        "last_epoch >= 0. Load the optimizer's state before, or begin with last_epoch=-1"
                    )
        self.base_lrs = current(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the first rates."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer."""
        return {key: value for key, value in vars(self).items() if key not in self._UNSAVED}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take on the attributes that `state_dict` returned."""
        vars(self).update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """The rates of all groups that the last step set."""
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """The rates that `step` is to set."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        return self._next_rates()

    def _next_rates(self) -> list[Rate]:
        raise NotImplementedError

    @runs_outside
    def step(self, epoch: int | None = None) -> None:
        """Set the next learning rates: call it after `optimizer.step()`."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        warn_of_epoch(epoch)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, _WRAPPED):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`.",
                UserWarning,
                stacklevel=3,
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call `optimizer.step()` first: "
                "otherwise the first value of the learning rate schedule is skipped.",
                UserWarning,
                stacklevel=3,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = getattr(self, "_get_closed_form_lr", self.get_lr)()
        self._set(rates)

    def _set(self, rates: Sequence[Rate]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            assign(group, rate)
        self._last_lr = current(self.optimizer)

    def _scaled(self, factor: Rate) -> list[Rate]:
        """The present rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]


RUN_OUTSIDE.append(LRScheduler)


class _LRScheduler(LRScheduler):
    """The former name of `LRScheduler`."""


def _watch_steps(optimizer: Any) -> None:
    """Let the optimizer note that its `step` was called, so that a wrong order of calls is noticed."""
    if hasattr(optimizer.step, _WRAPPED):
        return
    function: Callable[..., Any] = optimizer.step.__func__
    reference = weakref.ref(optimizer)

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        self: Any = reference()
        self._opt_called = True
        return function(self, *args, **kwargs)

    setattr(step, _WRAPPED, True)
    optimizer.step = step


@contextmanager
def _enable_get_lr_call(o: LRScheduler) -> Iterator[None]:
    """Calls of `get_lr` are rightful in this block."""
    o._get_lr_called_within_step = True
    try:
        yield
    finally:
        o._get_lr_called_within_step = False
