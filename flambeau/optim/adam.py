"""Adam."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from ._options import added, chosen, kept, run_on
from ._scaling import skipped, update_with_steps_unless
from ._update import add_quotient, as_scalar, check_modes, descent, number
from .optimizer import Group, GroupOptimizer, ParamsT, check_betas, check_lr, check_not_negative, scalar, zeros_of

__all__ = ["Adam", "adam"]


class Adam(GroupOptimizer):
    """Steps along the average gradient, divided by the root of the average squared gradient.

    In step `t`, with `grad = grad + weight_decay * param`:
    `average = beta1 * average + (1 - beta1) * grad`, `square = beta2 * square + (1 - beta2) * grad**2` and
    `param = param - lr * average / (1 - beta1**t) / (sqrt(square / (1 - beta2**t)) + eps)`.

    See "Adam: A Method for Stochastic Optimization", https://arxiv.org/abs/1412.6980. `amsgrad` divides by the largest
    average so far. With `decoupled_weight_decay` it is `AdamW`.

    >>> weight = flambeau.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = flambeau.optim.Adam([weight], lr=0.5)
    >>> (weight * weight).sum().backward()
    >>> optimizer.step()
    >>> weight
    tensor([ 0.5000, -1.5000], requires_grad=True)

    Args:
        params (iterable of Tensors or dicts): the parameters to optimise, or dicts of parameter groups with options of
            their own.
        lr (float or Tensor): the learning rate: the factor of every update. Default: `0.001`.
        betas (tuple[float | Tensor, float | Tensor]): how much of the running averages of the gradient and of its
            square is kept at each step. Default: `(0.9, 0.999)`.
        eps (float): a small number that is added to the denominator, so that it is never zero. Default: `1e-08`.
        weight_decay (float): the factor of the L2 penalty: `weight_decay * parameter` is added to the gradient.
            Default: `0`.
        amsgrad (bool): whether to divide by the largest average of squares so far in place of the current one.
            Default: `False`.
        foreach (bool, optional): whether to update all parameters of a group together; both give the same numbers, and
            None chooses.
        maximize (bool): whether to climb: the gradient's sign is turned. Default: `False`.
        capturable (bool): whether the step may be recorded in a CUDA graph; its counter then lies on the device.
            Default: `False`.
        differentiable (bool): whether autograd records the step itself, for learning to optimise. Default: `False`.
        fused (bool, optional): whether one kernel does the whole update; both give the same numbers, and None chooses.
        decoupled_weight_decay (bool): whether weight decay shrinks the parameters directly, as in `AdamW`. Default:
            `False`.

    Raises:
        ValueError: there are no parameters, or an option has no meaning, as a negative learning rate.
    """

    _can_prepare_step = True

    _ADDED_OPTIONS = added("amsgrad maximize foreach capturable differentiable decoupled_weight_decay fused")
    _SPARSE_ADVICE = ", please consider SparseAdam instead"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if foreach and not capturable:
            _refuse_tensors(lr, betas)
        check_lr(lr)
        check_not_negative(eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        if not (all(isinstance(each, float) for each in betas) or all(isinstance(each, Tensor) for each in betas)):
            raise ValueError(
                f"betas must be either both floats or both Tensors, they are {[type(each).__name__ for each in betas]}"
            )
        for index, beta in enumerate(betas):
            if isinstance(beta, Tensor) and beta.numel() != 1:
                raise ValueError(f"Tensor betas[{index}] must be 1-element")
        defaults = chosen(
            locals(),
            "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay",
        )
        super().__init__(params, defaults | {"betas": tuple(map(as_scalar, betas))})
        self._allow_fused(fused, foreach, differentiable)

    def _initial_state(self, param: Tensor, group: Group) -> dict[str, Any]:
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if group["amsgrad"] else 2]
        return {"step": scalar(0.0, param, group), **{name: zeros_of(param) for name in names}}

    def _update(self, group: Group) -> None:
        params, grads, states = self._gather(group)
        if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"] and params:
            raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")
        averages, squares, steps = kept(states, "exp_avg", "exp_avg_sq", "step")
        if group["differentiable"] and any(each.requires_grad for each in steps):
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        run_on(
            adam,
            group,
            params,
            grads,
            averages,
            squares,
            [each["max_exp_avg_sq"] for each in states] if group["amsgrad"] else [],
            steps,
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
        )


def _refuse_tensors(lr: Any, betas: tuple[Any, Any]) -> None:
    for name, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
        if isinstance(value, Tensor):
            raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adam` for each parameter."""
    check_modes(foreach, differentiable, capturable, params)
    skip = skipped(grads, state_steps, fused, grad_scale, found_inf)
    if skip is True:
        return
    lr, beta1, beta2 = as_scalar(lr), as_scalar(beta1), as_scalar(beta2)

    def rule(step: float, param: Any, grad: Any, mean: Any, square: Any, largest: Any = None) -> None:
        if decoupled_weight_decay and weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        grad = descent(grad, param, maximize, 0 if decoupled_weight_decay else weight_decay)
        _average(mean, grad, beta1)
        if isinstance(beta2, Tensor) and beta2.requires_grad:
            square.mul_(beta2).add_(grad * grad * (1 - beta2))
        else:
            square.mul_(number(beta2)).addcmul_(grad, grad, value=number(1 - beta2))
        if largest is not None:
            largest.copy_(largest.maximum(square))
            square = largest
        correction1 = 1 - beta1**step
        correction2 = 1 - beta2**step
        denominator = (square.sqrt() / correction2**0.5).add_(eps)
        add_quotient(param, mean, denominator, -(lr / correction1))

    lists = [params, grads, exp_avgs, exp_avg_sqs, *([max_exp_avg_sqs] if amsgrad else [])]
    update_with_steps_unless(skip, rule, state_steps, *lists)


def _average(mean: Any, value: Any, beta: Any) -> None:
    """Move `mean` towards `value`: `beta` of it stays."""
    if isinstance(beta, Tensor):
        mean.lerp_(value, (1 - beta).to(value.dtype))
    else:
        mean.lerp_(value, 1 - beta)
