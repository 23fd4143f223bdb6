"""A schedule that follows a metric."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

from ..._dispatch.interpreter import runs_outside
from ..optimizer import Optimizer
from ._base import LRScheduler, assign, check_optimizer, current, warn_of_epoch


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by `factor` when a metric has not improved for more than `patience` steps.

    `mode` says whether the metric should fall ("min") or rise ("max"); `threshold` how much counts as better, as a part
    of the best value ("rel") or as such ("abs"). After a reduction, `cooldown` steps do not count as bad.

    Args:
        mode (str): whether the metric is better when it is smaller ("min") or larger ("max"). Default: `"min"`.
        factor (float): the factor of the learning rate. Default: `0.1`.
        patience (int): how many steps without improvement are let pass. Default: `10`.
        threshold (float): by how much a metric must improve to count. Default: `0.0001`.
        threshold_mode (str): whether `threshold` is a part of the best value ("rel") or a difference ("abs"). Default:
            `"rel"`.
        cooldown (int): how many steps after a reduction are not counted. Default: `0`.
        min_lr (list of floats or float): the smallest learning rate, one for all groups or one for each. Default: `0`.
        eps (float): changes of the learning rate that are smaller than this are not made. Default: `1e-08`.

    Raises:
        ValueError: `factor` is not below 1, or `mode` is none of the two.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     scheduler.step(loss)
        ...     print(optimizer.param_groups[0]["lr"])
        1.0
        1.0
        1.0
        0.1
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0. It is {factor}")
        self.factor = factor
        check_optimizer(optimizer)
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        self.default_min_lr: float | None
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = current(optimizer)
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        for word in (mode, threshold_mode):
            if not isinstance(word, str):
                raise TypeError(f"mode and threshold_mode must be str, not {type(word).__name__}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self) -> None:
        """Forget all metrics."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @runs_outside
    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]  # it needs them
        """Note a metric, and reduce the learning rates if it is time."""
        value = float(metrics)
        warn_of_epoch(epoch)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = current(self.optimizer)

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}): put a smallest rate for each group "
                    "into `min_lrs`"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                assign(group, new)

    @property
    def in_cooldown(self) -> bool:
        """Whether bad steps do not count now."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return value < bound if self.mode == "min" else value > bound

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take on what `state_dict` returned."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
