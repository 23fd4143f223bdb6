"""RAdam."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._options import added, chosen
from ._update import add_scaled, advance, as_scalar, check_modes, descent, update_all
from .optimizer import Group, GroupOptimizer, ParamsT, check_betas, check_lr, check_not_negative

__all__ = ["RAdam", "radam"]


@documented_like(GroupOptimizer)
class RAdam(GroupOptimizer):
    """`Adam` that corrects for the variance of its first steps, and begins with plain momentum until it can.

    See "On the Variance of the Adaptive Learning Rate and Beyond", https://arxiv.org/abs/1908.03265.

    Args:
        decoupled_weight_decay (bool): whether weight decay shrinks the parameters directly, as in `AdamW`. Default:
            `False`.

    Example:
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = torch.optim.RAdam([weight], lr=0.5)
        >>> (weight**2).sum().backward()
        >>> optimizer.step()
        >>> weight
        tensor([0.], requires_grad=True)
    """

    _can_prepare_step = True

    _ADDED_OPTIONS = added("foreach maximize differentiable decoupled_weight_decay capturable")
    _STATE = ("exp_avg", "exp_avg_sq", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        defaults = chosen(
            locals(),
            "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable",
        )
        super().__init__(params, defaults)

    def _update(self, group: Group) -> None:
        self._run(radam, group)


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of `RAdam` for each parameter."""
    check_modes(foreach, differentiable, capturable, params)
    lr = as_scalar(lr)
    limit = 2 / (1 - beta2) - 1

    def rule(step: float, param: Any, grad: Any, mean: Any, square: Any) -> None:
        if decoupled_weight_decay and weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        grad = descent(grad, param, maximize, 0 if decoupled_weight_decay else weight_decay)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction = 1 - beta2**step
        length = limit - 2 * step * beta2**step / correction
        update = mean / (1 - beta1**step)
        if length > 5.0:  # the variance is finite
            rectified = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
            update = update / square.sqrt().add(eps) * (rectified * correction) ** 0.5
        add_scaled(param, update, -lr)

    update_all(rule, advance(state_steps), params, grads, exp_avgs, exp_avg_sqs)
