"""Adamax."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._options import added, chosen
from ._update import add_quotient, advance, as_scalar, check_modes, descent, update_all
from .optimizer import Group, GroupOptimizer, ParamsT, check_betas, check_lr, check_not_negative

__all__ = ["Adamax", "adamax"]


@documented_like(GroupOptimizer)
class Adamax(GroupOptimizer):
    """`Adam` that divides by a decaying maximum of the gradients' sizes in place of an average.

    In step `t`, with `grad = grad + weight_decay * param`:
    `average = beta1 * average + (1 - beta1) * grad`, `largest = maximum(beta2 * largest, abs(grad) + eps)` and
    `param = param - lr * average / (1 - beta1**t) / largest`.

    See "Adam: A Method for Stochastic Optimization", https://arxiv.org/abs/1412.6980.

    Args:
        lr (float or Tensor): the learning rate: the factor of every update. Default: `0.002`.

    Example:
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = torch.optim.Adamax([weight], lr=0.5)
        >>> (weight**2).sum().backward()
        >>> optimizer.step()
        >>> weight
        tensor([3.5000], requires_grad=True)
    """

    _can_prepare_step = True

    _ADDED_OPTIONS = added("foreach maximize differentiable capturable")
    _STATE = ("exp_avg", "exp_inf", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        defaults = chosen(locals(), "lr betas eps weight_decay foreach maximize differentiable capturable")
        super().__init__(params, defaults)

    def _update(self, group: Group) -> None:
        self._run(adamax, group)


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """One step of `Adamax` for each parameter."""
    check_modes(foreach, differentiable, capturable, params)
    lr = as_scalar(lr)

    def rule(step: float, param: Any, grad: Any, mean: Any, largest: Any) -> None:
        grad = descent(grad, param, maximize, weight_decay)
        mean.lerp_(grad, 1 - beta1)
        largest.copy_((largest * beta2).maximum(grad.abs().add_(eps)))
        add_quotient(param, mean, largest.clone() if differentiable else largest, -(lr / (1 - beta1**step)))

    update_all(rule, advance(state_steps), params, grads, exp_avgs, exp_infs)
