"""Schedules that raise and lower the learning rate, and move the momentum the other way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from ._base import LRScheduler, Rate, assign, check_optimizer, for_each_group, state_of_function


class _WithMomentum(LRScheduler):
    """Sets the momentum too: that of the option "momentum", or the first of "betas"."""

    cycle_momentum: bool
    use_beta1: bool

    def _find_momentum(self) -> None:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _begin_momentum(self, highest: list[Any], lowest: list[Any]) -> None:
        for high, low, group in zip(highest, lowest, self.optimizer.param_groups, strict=True):
            self._set_momentum(group, high)
            group["max_momentum"] = high
            group["base_momentum"] = low


class CyclicLR(_WithMomentum):
    """Up and down between `base_lr` and `max_lr`, in straight lines.

    `mode` "triangular2" halves the height at each cycle, "exp_range" multiplies it by `gamma` at each step; `scale_fn`,
    a function of the cycle or of the iteration (`scale_mode`), is in place of both. See "Cyclical Learning Rates for
    Training Neural Networks", https://arxiv.org/abs/1506.01186.

    Args:
        base_lr (float or list of floats): the smallest learning rate, one for all groups or one for each.
        max_lr (float or list of floats): the largest learning rate, one for all groups or one for each.
        step_size_up (int): how many steps the way up takes. Default: `2000`.
        step_size_down (int, optional): how many steps the way down takes; None means as many as up.
        mode (str): how cycles change: "triangular" not at all, "triangular2" halves each one, "exp_range" scales by
            `gamma ** step`. Default: `"triangular"`.
        gamma (float): the factor of "exp_range". Default: `1.0`.
        scale_fn (Callable, optional): a function that scales cycles, in place of `mode`.
        scale_mode (str): what `scale_fn` is given: the number of the "cycle" or of the step ("iterations"). Default:
            `"cycle"`.
        cycle_momentum (bool): whether the momentum goes down while the learning rate goes up, and up while it goes
            down. Default: `True`.
        base_momentum (float): the smallest momentum, one for all groups or one for each. Default: `0.8`.
        max_momentum (float): the largest momentum, one for all groups or one for each. Default: `0.9`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0, momentum=0.9)
        >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5, step_size_up=2)
        >>> for _ in range(5):
        ...     print(round(scheduler.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     scheduler.step()
        0.1
        0.3
        0.5
        0.3
        0.1
    """

    _UNSAVED = ("optimizer", "_scale_fn_custom")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                assign(group, rate)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None: mode is {mode!r}")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum()
            self.base_momentums = for_each_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_each_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                self._begin_momentum(self.max_momentums, self.base_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of cycle or iteration `x`, as a part of the first one's."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return float(self.gamma**x) if self.mode == "exp_range" else 1 / (2.0 ** (x - 1))

    def _next_rates(self) -> list[Rate]:
        """The rates that `step` is to set; it sets the momenta itself."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        height = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            momenta = zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True)
            for low, high, group in momenta:
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; of `scale_fn`, what a callable object holds."""
        state = super().state_dict()
        custom = self._scale_fn_custom
        state["_scale_fn_custom"] = None if custom is None else state_of_function(custom)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take on what `state_dict` returned; `scale_fn` stays the one given at construction."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        attributes = state_dict["_scale_fn_custom"]
        if attributes is not None:
            vars(self._scale_fn_custom).update(attributes)


Phase = tuple[float, str, str, str, str]


class OneCycleLR(_WithMomentum):
    """From a small learning rate up to `max_lr` and down to a far smaller one, in a fixed number of steps.

    The number is `total_steps`, or `epochs * steps_per_epoch`; `pct_start` is the part in which the rate rises. It
    begins at `max_lr / div_factor` and ends at a `final_div_factor`-th of that. See "Super-Convergence: Very Fast
    Training of Neural Networks Using Large Learning Rates", https://arxiv.org/abs/1708.07120.

    Args:
        max_lr (float or list of floats): the largest learning rate, one for all groups or one for each.
        total_steps (int, optional): how many steps the cycle has; None means `epochs * steps_per_epoch`.
        epochs (int, optional): how many epochs the training has.
        steps_per_epoch (int, optional): how many steps an epoch has.
        pct_start (float): what part of the cycle the way up takes. Default: `0.3`.
        anneal_strategy (str): the shape of the change: "cos" along a cosine, "linear" in a straight line. Default:
            `"cos"`.
        cycle_momentum (bool): whether the momentum goes down while the learning rate goes up, and up while it goes
            down. Default: `True`.
        base_momentum (float or list of floats): the smallest momentum, one for all groups or one for each. Default:
            `0.85`.
        max_momentum (float or list of floats): the largest momentum, one for all groups or one for each. Default:
            `0.95`.
        div_factor (float): the first learning rate is `max_lr / div_factor`. Default: `25.0`.
        final_div_factor (float): the last learning rate is the first one divided by this. Default: `10000.0`.
        three_phase (bool): whether the way down first ends at the first learning rate and then goes further. Default:
            `False`.

    Raises:
        ValueError: neither `total_steps` nor both `epochs` and `steps_per_epoch` are given, or a number is not
            positive.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0, momentum=0.9)
        >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=5)
        >>> for _ in range(4):
        ...     print(round(scheduler.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     scheduler.step()
        0.04
        0.95
        0.611
        0.188
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _number_of_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        highest = for_each_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(highest, optimizer.param_groups, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum()
            momenta = for_each_group("max_momentum", optimizer, max_momentum)
            low_momenta = for_each_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                self._begin_momentum(momenta, low_momenta)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def _next_rates(self) -> list[Rate]:
        """The rates that `step` is to set; it sets the momenta itself."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        phase = self._schedule_phases[0]
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            begin = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        part = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                momentum = self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                self._set_momentum(group, momentum)
        return rates


def _number_of_steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total_steps is not None:
        given = {"total_steps": total_steps}
    elif epochs is not None and steps_per_epoch is not None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    else:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in given.items():
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(steps: int, rising: float, three: bool) -> list[dict[str, Any]]:
    """The pieces of the cycle: when each ends, and between which options of a group it leads."""
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    top = float(rising * steps) - 1
    rows: list[Phase] = [(top, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
    if three:
        rows.append((float(2 * rising * steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
        rows.append((steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
    else:
        rows.append((steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
    return [dict(zip(names, row, strict=True)) for row in rows]
