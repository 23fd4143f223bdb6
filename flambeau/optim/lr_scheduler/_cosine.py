"""Schedules along a cosine."""

from __future__ import annotations

import math

from ..._dispatch.interpreter import runs_outside
from ..optimizer import Optimizer
from ._base import LRScheduler, Rate, _enable_get_lr_call, current


class CosineAnnealingLR(LRScheduler):
    """Half a wave of a cosine: from the learning rate to `eta_min` in `T_max` steps, and up again.

    `lr = eta_min + (initial_lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2`.

    See "SGDR: Stochastic Gradient Descent with Warm Restarts", https://arxiv.org/abs/1608.03983.

    Args:
        T_max (int): how many steps half a wave takes.
        eta_min (float): the smallest learning rate. Default: `0.0`.

    Raises:
        TypeError: `optimizer` is no Optimizer.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> for _ in range(5):
        ...     print(round(scheduler.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     scheduler.step()
        1.0
        0.854
        0.5
        0.146
        0.0
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _next_rates(self) -> list[Rate]:
        if self._is_initial:
            return current(self.optimizer)
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        groups = self.optimizer.param_groups
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The rate was the smallest: how it goes on cannot be seen from it.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                group["lr"] + (base - self.eta_min) * rise for base, group in zip(self.base_lrs, groups, strict=True)
            ]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (group["lr"] - self.eta_min) + self.eta_min for group in groups]

    def _get_closed_form_lr(self) -> list[Rate]:
        height = self._height(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Along a cosine from the learning rate to `eta_min`, again and again.

    The first time takes `T_0` epochs, each further one `T_mult` times as many. `step(epoch)` with a fraction sets the
    rate inside of an epoch. See "SGDR: Stochastic Gradient Descent with Warm Restarts", https://arxiv.org/abs/1608.03983.

    Args:
        T_0 (int): how many steps the first cosine takes.
        T_mult (int): how many times longer each cosine is than the one before. Default: `1`.
        eta_min (float): the smallest learning rate. Default: `0.0`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> for _ in range(4):
        ...     print(round(scheduler.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     scheduler.step()
        1.0
        0.5
        1.0
        0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def _next_rates(self) -> list[Rate]:
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    @runs_outside
    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates of the next epoch, or of `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with _enable_get_lr_call(self):
            rates = self.get_lr()
        self._set(rates)

    def _go_to(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts
