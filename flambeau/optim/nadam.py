"""NAdam."""

from __future__ import annotations

from typing import Any

from .._core.process.reproducibility import power
from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from .._dispatch.changes.history import end_change
from ._options import added, chosen
from ._update import add_quotient, advance, as_scalar, check_modes, descent, update_all
from .optimizer import Group, GroupOptimizer, ParamsT, check_betas, check_lr, check_not_negative, scalar, zeros_of

__all__ = ["NAdam", "nadam"]


@documented_like(GroupOptimizer)
class NAdam(GroupOptimizer):
    """`Adam` with Nesterov's momentum, whose weight grows with the steps.

    See "Incorporating Nesterov Momentum into Adam", https://openreview.net/forum?id=OM0jvwB8jIp57ZJjtNEZ.

    Args:
        lr (float or Tensor): the learning rate: the factor of every update. Default: `0.002`.
        momentum_decay (float): how fast the momentum's weight grows with the steps. Default: `0.004`.
        decoupled_weight_decay (bool): whether weight decay shrinks the parameters directly, as in `AdamW`. Default:
            `False`.

    Example:
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = torch.optim.NAdam([weight], lr=0.5)
        >>> (weight**2).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 4)
        True
    """

    _ADDED_OPTIONS = added("maximize foreach capturable differentiable decoupled_weight_decay")
    _STATE = ("exp_avg", "exp_avg_sq", "mu_product", "step")
    _NUMBERS = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = chosen(
            locals(),
            "lr betas eps weight_decay momentum_decay decoupled_weight_decay "
            "maximize foreach capturable differentiable",
        )
        super().__init__(params, defaults)

    def _initial_state(self, param: Tensor, group: Group) -> dict[str, Any]:
        return {
            "step": scalar(0.0, param, group),
            "mu_product": scalar(1.0, param, group),
            "exp_avg": zeros_of(param),
            "exp_avg_sq": zeros_of(param),
        }

    def _update(self, group: Group) -> None:
        self._run(nadam, group)


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of `NAdam` for each parameter."""
    check_modes(foreach, differentiable, capturable, params)
    lr = as_scalar(lr)

    def momentum(step: float) -> float:
        return beta1 * (1.0 - 0.5 * float(power(0.96, step * momentum_decay)))

    def rule(numbers: tuple[float, float], param: Any, grad: Any, mean: Any, square: Any) -> None:
        step, product = numbers
        if decoupled_weight_decay and weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        grad = descent(grad, param, maximize, 0 if decoupled_weight_decay else weight_decay)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = (square / (1 - beta2**step)).sqrt().add(eps)
        now, following = momentum(step), momentum(step + 1)
        add_quotient(param, grad, denominator, -lr * (1.0 - now) / (1.0 - product))
        add_quotient(param, mean, denominator, -lr * following / (1.0 - product * following))

    steps = advance(state_steps)
    products = [multiplied(each, momentum(step)) for each, step in zip(mu_products, steps, strict=True)]
    update_all(rule, list(zip(steps, products, strict=True)), params, grads, exp_avgs, exp_avg_sqs)


def multiplied(product: Tensor, factor: float) -> float:
    """Multiply a 0-dimensional tensor in place; returns its new value."""
    array = product._array
    array *= factor
    end_change(product)
    return float(array)
