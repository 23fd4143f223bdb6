"""Stochastic gradient descent."""

from __future__ import annotations

from itertools import compress
from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._options import added, chosen, run_on
from ._scaling import skipped, update_unless
from ._update import add_scaled, as_scalar, descent, update_all
from .adam import Adam
from .optimizer import Group, GroupOptimizer, ParamsT, check_fused

__all__ = ["SGD", "sgd"]


@documented_like(Adam)
class SGD(GroupOptimizer):
    """Gradient descent, with momentum on request: the first momentum is the first gradient.

    `grad = grad + weight_decay * param`, `velocity = momentum * velocity + (1 - dampening) * grad` and
    `param = param - lr * velocity`; with `nesterov` the last is `param - lr * (grad + momentum * velocity)`. In the
    first step the velocity is the gradient.

    >>> weight = flambeau.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flambeau.optim.SGD([weight], lr=0.5)
    >>> (weight * weight).sum().backward()
    >>> optimizer.step()
    >>> weight
    tensor([0., 0.], requires_grad=True)

    Args:
        momentum (float): how much of the previous update is kept. Default: `0`.
        dampening (float): what part of the gradient does not enter the momentum. Default: `0`.
        weight_decay (float or Tensor): the factor of the L2 penalty: `weight_decay * parameter` is added to the
            gradient. Default: `0`.
        nesterov (bool): whether to look ahead: the update is the gradient plus the momentum that follows from it.
            Default: `False`.
    """

    _can_prepare_step = True

    _ADDED_OPTIONS = added("nesterov maximize foreach differentiable", fused=False)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError(f"Tensor lr must be 1-element, it has shape {list(lr.shape)}")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "Nesterov momentum requires a momentum and zero dampening: "
                f"momentum is {momentum}, dampening is {dampening}"
            )
        defaults = chosen(
            locals(),
            "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
        )
        super().__init__(params, defaults)
        self._allow_fused(fused, foreach, differentiable)

    def _update(self, group: Group) -> None:
        params: list[Tensor] = []
        grads: list[Tensor] = []
        for each in group["params"]:
            grad = each.grad
            if grad is not None:
                params.append(each)
                grads.append(grad)
        momentum = group["momentum"]
        if group["fused"]:
            for each in params:
                check_fused(each)
        buffers: list[Tensor | None] = []
        if momentum != 0:
            buffers = [self.state[each].get("momentum_buffer") for each in params]
        run_on(
            sgd,
            group,
            params,
            grads,
            buffers,
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
        )
        for each, buffer in zip(params, buffers, strict=False):
            self.state[each]["momentum_buffer"] = buffer


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of `SGD` for each parameter; missing buffers are made and put in `momentum_buffer_list`."""
    skip = skipped(d_p_list, (), fused, grad_scale, found_inf)
    if skip is True:
        return
    lr = as_scalar(lr)
    if fused and any(each.is_sparse for each in d_p_list):
        raise RuntimeError("`_fused_sgd` does not support sparse gradients: use fused=False")

    def rule(first: Any, param: Any, grad: Any, buffer: Any = None) -> None:
        grad = descent(grad, param, maximize, weight_decay)
        if buffer is not None:
            if first:
                buffer.copy_(grad.detach())
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        add_scaled(param, grad, -lr)

    if momentum == 0:
        update_unless(skip, rule, None, params, d_p_list)
        return
    first = [each is None for each in momentum_buffer_list]
    for position, grad in enumerate(d_p_list):
        if first[position]:  # of a step that a device may skip, zeros are left
            kept = grad.detach()
            momentum_buffer_list[position] = kept.new_zeros(kept.shape) if skip is not False else kept.clone()
    lists: list[list[Any]] = [params, d_p_list, momentum_buffer_list]
    if skip is False:
        update_all(rule, first, *lists)
        return
    for number in set(first):
        update_unless(skip, rule, number, *[list(compress(each, [one is number for one in first])) for each in lists])
