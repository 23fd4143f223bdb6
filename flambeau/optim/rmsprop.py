"""RMSprop."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._options import added, chosen, kept, run_on
from ._update import add_quotient, add_scaled, advance, as_scalar, check_modes, descent, update_all
from .adam import Adam
from .optimizer import Group, GroupOptimizer, ParamsT, check_lr, check_not_negative, scalar, zeros_of

__all__ = ["RMSprop", "rmsprop"]


@documented_like(Adam)
class RMSprop(GroupOptimizer):
    """Divides gradients by the root of the average of their squares; `centered` by their standard deviation.

    `grad = grad + weight_decay * param`, `square = alpha * square + (1 - alpha) * grad**2` and
    `param = param - lr * grad / (sqrt(square) + eps)`; momentum and `centered` come on top.

    See Hinton's lecture notes, https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf.

    Args:
        lr (float or Tensor): the learning rate: the factor of every update. Default: `0.01`.
        alpha (float): how much of the running average of squares is kept at each step. Default: `0.99`.
        momentum (float): how much of the previous update is kept. Default: `0`.
        centered (bool): whether to divide by the standard deviation in place of the root mean square. Default:
            `False`.

    Example:
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = torch.optim.RMSprop([weight], lr=0.1)
        >>> (weight**2).sum().backward()
        >>> optimizer.step()
        >>> weight
        tensor([3.], requires_grad=True)
    """

    _can_prepare_step = True

    _ADDED_OPTIONS = added("centered foreach maximize differentiable capturable", momentum=0)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = chosen(
            locals(),
            "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable",
        )
        super().__init__(params, defaults)

    def _initial_state(self, param: Tensor, group: Group) -> dict[str, Any]:
        state = {"step": scalar(0.0, param, group), "square_avg": zeros_of(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_of(param)
        if group["centered"]:
            state["grad_avg"] = zeros_of(param)
        return state

    def _update(self, group: Group) -> None:
        params, grads, states = self._gather(group)
        run_on(
            rmsprop,
            group,
            params,
            grads,
            *kept(states, "square_avg"),
            [each["grad_avg"] for each in states] if group["centered"] else [],
            [each["momentum_buffer"] for each in states] if group["momentum"] > 0 else [],
            *kept(states, "step"),
        )


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of `RMSprop` for each parameter."""
    check_modes(foreach, differentiable, capturable, params)
    lr = as_scalar(lr)

    def rule(_: Any, param: Any, grad: Any, square: Any, *more: Any) -> None:
        grad = descent(grad, param, maximize, weight_decay)
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if centered:
            mean = more[0].lerp_(grad, 1 - alpha)
            variance = square.addcmul(mean, mean, value=-1)
        else:
            variance = square
        deviation = variance.sqrt().add(eps)
        if momentum > 0:
            buffer = more[-1].mul_(momentum).addcdiv_(grad, deviation)
            add_scaled(param, buffer, -lr)
        else:
            add_quotient(param, grad, deviation, -lr)

    more = [each for each in (grad_avgs if centered else [], momentum_buffer_list if momentum > 0 else []) if each]
    advance(state_steps)
    update_all(rule, None, params, grads, square_avgs, *more)
