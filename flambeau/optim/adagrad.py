"""Adagrad."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._options import added, chosen, kept, run_on
from ._scaling import skipped, update_with_steps_unless
from ._update import add_quotient, as_scalar, check_foreach, number, with_decay
from .optimizer import Group, GroupOptimizer, ParamsT, check_lr, check_not_negative, scalar

__all__ = ["Adagrad", "adagrad"]


@documented_like(GroupOptimizer)
class Adagrad(GroupOptimizer):
    """Divides gradients by the root of the sum of all their squares so far.

    In step `t`, with `grad = grad + weight_decay * param`: `total = total + grad**2` and
    `param = param - lr / (1 + (t - 1) * lr_decay) * grad / (sqrt(total) + eps)`.

    See "Adaptive Subgradient Methods", https://jmlr.org/papers/v12/duchi11a.html.

    Args:
        lr (float or Tensor): the learning rate: the factor of every update. Default: `0.01`.
        lr_decay (float): how much the learning rate shrinks with each step: `lr / (1 + step * lr_decay)`. Default:
            `0`.
        initial_accumulator_value (float): where the sum of squares begins. Default: `0`.
        eps (float): a small number that is added to the denominator, so that it is never zero. Default: `1e-10`.

    Example:
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = torch.optim.Adagrad([weight], lr=1.0)
        >>> (weight**2).sum().backward()
        >>> optimizer.step()
        >>> weight                          # the first step has the length of the learning rate
        tensor([3.], requires_grad=True)
    """

    _can_prepare_step = True

    _ADDED_OPTIONS = added("foreach maximize differentiable fused")
    _TAKES_SPARSE = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        defaults = chosen(
            locals(),
            "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused",
        )
        super().__init__(params, defaults)
        self._allow_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param].update(self._initial_state(param, group))

    def _initial_state(self, param: Any, group: Group) -> dict[str, Any]:
        from .. import full_like  # what users call: parameters that wait for a shape refuse it

        start = group["initial_accumulator_value"]
        if param.is_complex():
            start = complex(start, start)
        return {"step": scalar(0.0, param, group), "sum": full_like(param, start)}

    def share_memory(self) -> None:
        """Put the sums into memory that other processes can see."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _update(self, group: Group) -> None:
        params, grads, states = self._gather(group)
        run_on(
            adagrad,
            group,
            params,
            grads,
            *kept(states, "sum", "step"),
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
        )


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adagrad` for each parameter."""
    check_foreach(foreach, differentiable)
    skip = skipped(grads, state_steps, fused, grad_scale, found_inf)
    if skip is True:
        return
    lr = as_scalar(lr)
    if fused and any(each.is_sparse for each in grads):
        raise RuntimeError("`fused` does not support sparse grad or complex param: use fused=False")

    def rule(step: float, param: Any, grad: Any, total: Any) -> None:
        if maximize:
            grad = -grad
        if grad.is_sparse:
            _change_named(param, grad, total, weight_decay, eps, -(lr / (1 + (step - 1) * lr_decay)))
            return
        if weight_decay != 0:
            grad = with_decay(grad, param, weight_decay)
        total.addcmul_(grad, grad)
        add_quotient(param, grad, total.sqrt().add(eps), -(lr / (1 + (step - 1) * lr_decay)))

    update_with_steps_unless(skip, rule, state_steps, params, grads, state_sums)


def _change_named(param: Any, grad: Any, total: Any, weight_decay: float, eps: float, factor: Any) -> None:
    """Adagrad's update for a sparse gradient: only the elements that it names are read and changed."""
    if weight_decay != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    grad = grad.coalesce()
    values = grad._values()
    if grad._nnz() == 0:
        return
    where = tuple(grad._indices())
    squares = total[where].addcmul_(values, values)
    total[where] = squares
    param[where] = param[where].addcdiv_(values, squares.sqrt().add_(eps), value=number(factor))
