"""Adadelta."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._options import added, chosen
from ._update import add_scaled, advance, as_scalar, check_modes, descent, update_all
from .optimizer import Group, GroupOptimizer, ParamsT, check_lr, check_not_negative

__all__ = ["Adadelta", "adadelta"]


@documented_like(GroupOptimizer)
class Adadelta(GroupOptimizer):
    """Scales gradients by the ratio of the recent size of the updates to that of the gradients.

    `grad = grad + weight_decay * param`, `square = rho * square + (1 - rho) * grad**2`,
    `update = sqrt(moved + eps) / sqrt(square + eps) * grad`, `moved = rho * moved + (1 - rho) * update**2` and
    `param = param - lr * update`.

    See "ADADELTA: An Adaptive Learning Rate Method", https://arxiv.org/abs/1212.5701.

    Args:
        lr (float or Tensor): the learning rate: the factor of every update. Default: `1.0`.
        rho (float): how much of the running averages of squares is kept at each step. Default: `0.9`.
        eps (float): a small number that is added to the denominator, so that it is never zero. Default: `1e-06`.

    Example:
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = torch.optim.Adadelta([weight], lr=1.0)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (weight**2).sum().backward()
        ...     optimizer.step()
        >>> weight
        tensor([3.9903], requires_grad=True)
    """

    _can_prepare_step = True

    _ADDED_OPTIONS = added("foreach maximize differentiable capturable")
    _STATE = ("square_avg", "acc_delta", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(eps=eps, weight_decay=weight_decay)
        defaults = chosen(locals(), "lr rho eps weight_decay maximize capturable foreach differentiable")
        super().__init__(params, defaults)

    def _update(self, group: Group) -> None:
        self._run(adadelta, group)


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of `Adadelta` for each parameter."""
    check_modes(foreach, differentiable, capturable, params)
    lr = as_scalar(lr)

    def rule(_: Any, param: Any, grad: Any, square: Any, size: Any) -> None:
        grad = descent(grad, param, maximize, weight_decay)
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = (size + eps).sqrt() / (square + eps).sqrt() * grad
        size.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        add_scaled(param, delta, -lr)

    advance(state_steps)
    update_all(rule, None, params, grads, square_avgs, acc_deltas)
