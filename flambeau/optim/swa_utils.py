"""Averages of a model's weights: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

from .._core.device import device as Device
from .._core.tensor import Tensor
from .._dispatch.public.registry import function_named
from .._ops.create.constants import tensor
from ..autograd.grad_mode import no_grad
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from .lr_scheduler._base import LRScheduler, Rate, for_each_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Any, Any, Any], Tensor]
"""From an averaged tensor, the model's and the number of models so far to the new average."""

MultiAverage = Callable[[Any, Any, Any], None]
"""The same for lists, in place."""


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided: it must be between 0 and 1")


def _fractional(tensors: Sequence[Any]) -> bool:
    return bool(tensors[0].is_floating_point() or tensors[0].is_complex())


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """The exponential moving average of lists of tensors: of the old average, `decay` stays."""
    _check_decay(decay)

    def ema_update(ema_param_list: Sequence[Any], current_param_list: Sequence[Any], _: Any) -> None:
        with no_grad():
            if _fractional(ema_param_list):
                function_named("", "_foreach_lerp_")(ema_param_list, current_param_list, 1 - decay)
            else:
                for average, value in zip(ema_param_list, current_param_list, strict=True):
                    average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> MultiAverage:
    """The mean of all models so far, for lists of tensors."""

    def swa_update(averaged_param_list: Sequence[Any], current_param_list: Sequence[Any], num_averaged: Any) -> None:
        count = num_averaged.item() if isinstance(num_averaged, Tensor) else num_averaged
        with no_grad():
            if _fractional(averaged_param_list):
                function_named("", "_foreach_lerp_")(averaged_param_list, current_param_list, 1 / (count + 1))
            else:
                for average, value in zip(averaged_param_list, current_param_list, strict=True):
                    average.addcdiv_(value - average, num_averaged + 1)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The exponential moving average of a tensor: of the old average, `decay` stays."""
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """The mean of all models so far, for a tensor."""

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            mean: Tensor = averaged_param + (current_param - averaged_param) / (num_averaged + 1)
            return mean

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages: `update_parameters(model)` adds the model as it is now.

    The average is the mean, or what `avg_fn` or `multi_avg_fn` say. With `use_buffers` the buffers are averaged too,
    otherwise they are copied.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: int | str | Device | None = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Any) -> Iterable[Any]:
        return chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def update_parameters(self, model: Module) -> None:
        """Add the parameters of `model` to the averages."""
        averages = [each.detach() for each in self._averaged(self.module)]
        values = [
            value.detach().to(average.device) for value, average in zip(self._averaged(model), averages, strict=False)
        ]
        count = self.n_averaged
        if count.item() == 0:
            for average, value in zip(averages, values, strict=False):
                average.copy_(value)
        elif self.multi_avg_fn is not None:
            for alike_averages, alike in _grouped(averages, values):
                self.multi_avg_fn(alike_averages, alike, count.to(alike_averages[0].device))
        else:
            average_of = self.avg_fn or get_swa_avg_fn()
            for average, value in zip(averages, values, strict=False):
                average.copy_(average_of(average, value, count.to(average.device)))
        if not self.use_buffers:
            buffers = zip(self.module.buffers(), model.buffers(), strict=True)
            for own, theirs in buffers:
                own.detach().copy_(theirs.detach().to(own.device))
        count += 1


def _grouped(averages: Sequence[Any], values: Sequence[Any]) -> list[tuple[list[Any], list[Any]]]:
    """Both lists, split by what the averages are: lists of one kind are what functions of lists take."""
    groups: dict[Any, tuple[list[Any], list[Any]]] = {}
    for average, value in zip(averages, values, strict=False):
        ours, theirs = groups.setdefault(average._kind, ([], []))
        ours.append(average)
        theirs.append(value)
    return list(groups.values())


def update_bn(loader: Iterable[Any], model: Module, device: int | str | Device | None = None) -> None:
    """Compute the running statistics of all batch normalisations anew, in one pass over `loader`.

    Of a batch that is a list or tuple, the first element is the input.
    """
    layers: list[Any] = [each for each in model.modules() if isinstance(each, _BatchNorm)]
    if not layers:
        return
    momenta = [each.momentum for each in layers]
    was_training = model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the plain mean of all batches
    with no_grad():
        for batch in loader:
            value = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(value if device is None else value.to(device))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the learning rate to the constant one of weight averaging, `swa_lr`, in `anneal_epochs` epochs."""

    _UNSAVED = ("optimizer", "anneal_func")

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(for_each_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How much of the way is done when the part `t` of the epochs is over."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def _done(self, step: int) -> float:
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    def get_lr(self) -> list[Rate]:
        """The rates that `step` is to set."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._done(step - 1), self._done(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
