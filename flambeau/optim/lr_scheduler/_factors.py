"""Schedules that multiply the learning rate by a factor at each step."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..._core.process.reproducibility import power
from ..optimizer import Optimizer
from ._base import LRScheduler, Rate, current, state_of_function

Factor = Callable[[int], float]


class _FunctionLR(LRScheduler):
    """A schedule that users give as functions of the epoch, one for all groups or one for each."""

    _UNSAVED = ("optimizer", "lr_lambdas")
    lr_lambdas: list[Factor]

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * groups
        elif len(lr_lambda) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; of the functions, what callable objects hold."""
        state = super().state_dict()
        state["lr_lambdas"] = [state_of_function(each) for each in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take on what `state_dict` returned; the functions stay those given at construction."""
        vars(self).update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if attributes is not None:
                vars(function).update(attributes)


class LambdaLR(_FunctionLR):
    """The first learning rate times a function of the epoch.

    `lr = initial_lr * lr_lambda(epoch)`.

    Args:
        lr_lambda (Factor or list of Factors): a function from the epoch to a factor, or one for each parameter group.

    Raises:
        ValueError: there is not one function for each parameter group.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
        >>> for _ in range(3):
        ...     print(round(scheduler.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     scheduler.step()
        1.0
        0.5
        0.333
    """

    def _next_rates(self) -> list[Rate]:
        return [base * factor(self.last_epoch) for factor, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_FunctionLR):
    """At each step the learning rate is multiplied by a function of the epoch.

    Args:
        lr_lambda (Factor or list of Factors): a function from the epoch to a factor, or one for each parameter group.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1) -> None:
        for function in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def _next_rates(self) -> list[Rate]:
        if self._is_initial:
            return current(self.optimizer)
        groups = self.optimizer.param_groups
        return [group["lr"] * factor(self.last_epoch) for factor, group in zip(self.lr_lambdas, groups, strict=True)]


class StepLR(LRScheduler):
    """Multiplied by `gamma` every `step_size` epochs.

    `lr = initial_lr * gamma ** (epoch // step_size)`.

    Args:
        step_size (int): after how many epochs the learning rate changes.
        gamma (float): the factor of the learning rate. Default: `0.1`.

    Raises:
        TypeError: `optimizer` is no Optimizer.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> for _ in range(4):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [1.0]
        [1.0]
        [0.5]
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Rate]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return current(self.optimizer)
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base * power(self.gamma, self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplied by `gamma` at each of the `milestones`.

    `lr = initial_lr * gamma ** sum(each <= epoch for each in milestones)`.

    Args:
        milestones (iterable of ints): the steps at which something changes, in increasing order.
        gamma (float): the factor of the learning rate. Default: `0.1`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
        >>> for _ in range(4):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [1.0]
        [0.5]
        [0.5]
        [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Rate]:
        if self.last_epoch not in self.milestones:
            return current(self.optimizer)
        return self._scaled(power(self.gamma, self.milestones[self.last_epoch]))

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * power(self.gamma, passed) for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """`factor` times the learning rate for the first `total_iters` steps.

    `lr = initial_lr * (factor if epoch < total_iters else 1)`.

    Args:
        factor (float): the factor of the first steps. Default: `0.3333333333333333`.
        total_iters (int): after how many steps the schedule has reached its end. Default: `5`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> for _ in range(4):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [0.5]
        [0.5]
        [1.0]
        [1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError(f"Constant multiplicative factor expected to be between 0 and 1. It is {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Rate]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1.0 / self.factor) if self.last_epoch == self.total_iters else current(self.optimizer)

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """A factor that goes linearly from `start_factor` to `end_factor` in `total_iters` steps.

    `lr = initial_lr * (start_factor + (end_factor - start_factor) * min(epoch / total_iters, 1))`.

    Args:
        start_factor (float): the factor of the first step. Default: `0.3333333333333333`.
        end_factor (float): the factor at the end. Default: `1.0`.
        total_iters (int): after how many steps the schedule has reached its end. Default: `5`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> for _ in range(4):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [0.5]
        [0.75]
        [1.0]
        [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1. "
                f"It is {start_factor}"
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError(f"Ending multiplicative factor expected to be between 0 and 1. It is {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Rate]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return current(self.optimizer)
        change = self.end_factor - self.start_factor
        return self._scaled(1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change))

    def _get_closed_form_lr(self) -> list[Rate]:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * part) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplied by `gamma` at every step.

    `lr = initial_lr * gamma**epoch`.

    Args:
        gamma (float): the factor of the learning rate.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [1.0]
        [0.5]
        [0.25]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Rate]:
        return current(self.optimizer) if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base * power(self.gamma, self.last_epoch) for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Down to zero in `total_iters` steps, along a polynomial of degree `power`.

    `lr = initial_lr * (1 - min(epoch / total_iters, 1)) ** power`.

    Args:
        total_iters (int): after how many steps the schedule has reached its end. Default: `5`.
        power (float): the degree of the polynomial. Default: `1.0`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [1.0]
        [0.75]
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Rate]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return current(self.optimizer)
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled(power(now / before, self.power))

    def _get_closed_form_lr(self) -> list[Rate]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * power(left, self.power) for base in self.base_lrs]
