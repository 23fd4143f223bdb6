"""Whole optimizer steps under the names of PyTorch's kernels: `_fused_adam_`, `_fused_sgd_` and their relatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._core.tensor import Tensor


def _scaled(
    parameters: Sequence[Tensor], grads: Sequence[Tensor], maximize: bool, grad_scale: Any, found_inf: Any
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Each parameter with its gradient, which is unscaled in place; none of them where an infinity was found."""
    if found_inf is not None and found_inf.item():
        return
    for number, (parameter, grad) in enumerate(zip(parameters, grads, strict=True)):
        if grad_scale is not None:
            grad.div_(grad_scale)
        yield number, parameter, -grad if maximize else grad


def _adam(decoupled: bool) -> Callable[..., None]:
    def update(
        self: Sequence[Tensor], grads: Sequence[Tensor], exp_avgs: Sequence[Tensor], exp_avg_sqs: Sequence[Tensor],
        max_exp_avg_sqs: Sequence[Tensor], state_steps: Sequence[Tensor], *, lr: Any, beta1: float, beta2: float,
        weight_decay: float, eps: float, amsgrad: bool, maximize: bool, grad_scale: Any = None, found_inf: Any = None,
    ) -> None:  # fmt: skip
        """A step of Adam; `state_steps` are counted by the caller."""
        rate = float(lr)
        for number, parameter, grad in _scaled(self, grads, maximize, grad_scale, found_inf):
            step, mean, square = float(state_steps[number]), exp_avgs[number], exp_avg_sqs[number]
            if decoupled:
                parameter.mul_(1 - rate * weight_decay)
            elif weight_decay:
                grad = grad.add(parameter, alpha=weight_decay)
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            if amsgrad:
                highest = max_exp_avg_sqs[number]
                square = highest.copy_(highest.maximum(square))
            deviation = square.sqrt() / (1 - beta2**step) ** 0.5 + eps
            parameter.addcdiv_(mean, deviation, value=-rate / (1 - beta1**step))

    return update


def _fused_sgd_(
    self: Sequence[Tensor], grads: Sequence[Tensor], momentum_buffer_list: Sequence[Tensor], *, weight_decay: float,
    momentum: float, lr: Any, dampening: float, nesterov: bool, maximize: bool, is_first_step: bool,
    grad_scale: Any = None, found_inf: Any = None,
) -> None:  # fmt: skip
    """A step of SGD, its momentum included, in place."""
    for number, parameter, grad in _scaled(self, grads, maximize, grad_scale, found_inf):
        if weight_decay:
            grad = grad.add(parameter, alpha=weight_decay)
        if momentum:
            buffer = momentum_buffer_list[number]
            if is_first_step:
                buffer.copy_(grad)
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        parameter.add_(grad, alpha=-float(lr))


def _fused_adagrad_(
    self: Sequence[Tensor], grads: Sequence[Tensor], state_sums: Sequence[Tensor], state_steps: Sequence[Tensor], *,
    lr: Any, lr_decay: float, weight_decay: float, eps: float, maximize: bool, grad_scale: Any = None,
    found_inf: Any = None,
) -> None:  # fmt: skip
    """A step of Adagrad for all parameters, in place."""
    for number, parameter, grad in _scaled(self, grads, maximize, grad_scale, found_inf):
        if weight_decay:
            grad = grad.add(parameter, alpha=weight_decay)
        rate = float(lr) / (1 + (float(state_steps[number]) - 1) * lr_decay)
        total = state_sums[number].addcmul_(grad, grad)
        parameter.addcdiv_(grad, total.sqrt() + eps, value=-rate)


def _amp_update_scale_(
    self: Tensor, growth_tracker: Tensor, found_inf: Tensor, scale_growth_factor: float, scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:  # fmt: skip
    """The scale of losses after a step: smaller where an infinity was found, larger after many steps without."""
    if found_inf.item():
        growth_tracker.fill_(0)
        return self.mul_(scale_backoff_factor)
    steps = int(growth_tracker) + 1
    growth_tracker.fill_(0 if steps == growth_interval else steps)
    return self.mul_(scale_growth_factor) if steps == growth_interval else self


UPDATES: dict[str, Callable[..., Any]] = {
    "_fused_adam_": _adam(False),
    "_fused_adamw_": _adam(True),
    "_fused_sgd_": _fused_sgd_,
    "_fused_adagrad_": _fused_adagrad_,
    "_amp_update_scale_": _amp_update_scale_,
}
"""By the names of operators."""
