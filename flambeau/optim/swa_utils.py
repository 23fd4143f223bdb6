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
"""Changes a list of averaged tensors in place, given the model's and the number of models so far."""


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided: it must be between 0 and 1")


def _fractional(tensors: Sequence[Any]) -> bool:
    return bool(tensors[0].is_floating_point() or tensors[0].is_complex())


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """The exponential moving average of lists of tensors: of the old average, `decay` stays.

    Args:
        decay (float): how much of the old average stays. Default: `0.999`.

    Returns:
        a function for `AveragedModel(model, multi_avg_fn=...)`.

    Example:
        >>> average = torch.optim.swa_utils.get_ema_multi_avg_fn(decay=0.9)
        >>> values = [torch.tensor(1.0)]
        >>> average(values, [torch.tensor(2.0)], 1)
        >>> values
        [tensor(1.1000)]
    """
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
    """The mean of all models so far, for lists of tensors.

    Returns:
        a function for `AveragedModel(model, multi_avg_fn=...)`.

    Example:
        >>> average = torch.optim.swa_utils.get_swa_multi_avg_fn()
        >>> values = [torch.tensor(1.0)]
        >>> average(values, [torch.tensor(4.0)], 2)
        >>> values
        [tensor(2.)]
    """

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
    """The exponential moving average of a tensor: of the old average, `decay` stays.

    Args:
        decay (float): how much of the old average stays. Default: `0.999`.

    Returns:
        a function for `AveragedModel(model, avg_fn=...)`.

    Example:
        >>> average = torch.optim.swa_utils.get_ema_avg_fn(decay=0.9)
        >>> average(torch.tensor(1.0), torch.tensor(2.0), 1)
        tensor(1.1000)
    """
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """The mean of all models so far, for a tensor.

    Returns:
        a function for `AveragedModel(model, avg_fn=...)`.

    Example:
        >>> average = torch.optim.swa_utils.get_swa_avg_fn()
        >>> average(torch.tensor(1.0), torch.tensor(4.0), 2)    # the third model
        tensor(2.)
    """

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            mean: Tensor = averaged_param + (current_param - averaged_param) / (num_averaged + 1)
            return mean

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages: `update_parameters(model)` adds the model as it is now.

    The average is the mean, or what `avg_fn` or `multi_avg_fn` say. With `use_buffers` the buffers are averaged too,
    otherwise they are copied.

    Args:
        model (Module): the model to average; it is copied.
        device (int or str or Device, optional): where the averages lie; None means where the model lies.
        avg_fn (Average, optional): `avg_fn(average, parameter, count)` gives the new average of one tensor; None takes
            the plain mean.
        multi_avg_fn (MultiAverage, optional): the same in place, for lists of tensors.
        use_buffers (bool): whether buffers are averaged too; otherwise they are copied. Default: `False`.

    Returns:
        what the averaged model returns for these arguments.

    Example:
        >>> model = torch.nn.Linear(1, 1, bias=False)
        >>> averaged = torch.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 3.0):
        ...     _ = torch.nn.init.constant_(model.weight, value)
        ...     averaged.update_parameters(model)
        >>> averaged(torch.ones(1, 1))
        tensor([[2.]], grad_fn=<MmBackward0>)
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
    """Averages and values, split by what the averages are: lists of one kind are what functions of lists take."""
    groups: dict[Any, tuple[list[Any], list[Any]]] = {}
    for average, value in zip(averages, values, strict=False):
        ours, theirs = groups.setdefault(average._kind, ([], []))
        ours.append(average)
        theirs.append(value)
    return list(groups.values())


def update_bn(loader: Iterable[Any], model: Module, device: int | str | Device | None = None) -> None:
    """Compute the running statistics of all batch normalisations anew, in one pass over `loader`.

    Of a batch that is a list or tuple, the first element is the input.

    Args:
        loader (iterable): the batches; of a tuple or list the first item is the input.
        model (Module): the model whose statistics are computed; it runs in training mode for the pass.
        device (int or str or Device, optional): where batches are moved to; None leaves them where they are.

    Example:
        >>> model = torch.nn.BatchNorm1d(1)
        >>> torch.optim.swa_utils.update_bn([torch.tensor([[0.0], [2.0]]), torch.tensor([[2.0], [4.0]])], model)
        >>> model.running_mean
        tensor([2.])
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
    """From the learning rate to the constant one of weight averaging, `swa_lr`, in `anneal_epochs` epochs.

    Args:
        optimizer (Optimizer): the optimizer whose learning rates the schedule sets.
        swa_lr (float or list of floats): the constant learning rate at the end, one for all groups or one for each.
        anneal_epochs (int): how many epochs the change takes. Default: `10`.
        anneal_strategy (str): the shape of the change: "cos" along a cosine, "linear" in a straight line. Default:
            `"cos"`.
        last_epoch (int): the number of the last step done, to resume; -1 begins anew. Default: `-1`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.1, anneal_epochs=2, anneal_strategy="linear")
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 3))
        0.55
        0.1
        0.1
    """

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

    def _next_rates(self) -> list[Rate]:
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
