"""Adafactor."""

from __future__ import annotations

from typing import Any, ClassVar

from .._core.dtype import finfo
from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._options import chosen, kept, run_on
from ._update import advance, as_scalar, number, update_alike
from .optimizer import Group, GroupOptimizer, ParamsT, check_lr, scalar

__all__ = ["Adafactor", "adafactor"]


@documented_like(GroupOptimizer)
class Adafactor(GroupOptimizer):
    """Divides gradients by the root of an average of their squares, of which it keeps row and column means only.

    See "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", https://arxiv.org/abs/1804.04235.

    Args:
        lr (float or Tensor): the learning rate: the factor of every update. Default: `0.01`.
        beta2_decay (float): the power of the step's number by which the average of squares forgets less and less.
            Default: `-0.8`.
        eps (tuple[float | None, float]): the smallest mean square of a gradient (None takes the dtype's), and the
            smallest size of a parameter that scales its step. Default: `(None, 0.001)`.
        d (float): the largest root mean square of an update; larger ones are scaled down. Default: `1.0`.
        weight_decay (float): the factor of the L2 penalty: `weight_decay * parameter` is added to the gradient.
            Default: `0.0`.

    Example:
        >>> weight = torch.ones(2, 2, requires_grad=True)
        >>> optimizer = torch.optim.Adafactor([weight], lr=0.1)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> sorted(optimizer.state[weight])
        ['col_var', 'row_var', 'step']
    """

    _ADDED_OPTIONS: ClassVar[dict[str, Any]] = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = chosen(locals(), "lr beta2_decay eps d weight_decay foreach maximize")
        super().__init__(params, defaults)

    def _initial_state(self, param: Any, group: Group) -> dict[str, Any]:
        from .._ops.create.like import zeros_like

        state: dict[str, Any] = {"step": scalar(0.0, param, group)}
        shape = list(param.grad.shape)
        if len(shape) > 1:
            state["row_var"] = param.grad.new_zeros([*shape[:-1], 1])
            state["col_var"] = param.grad.new_zeros([*shape[:-2], 1, shape[-1]])
        else:
            state["variance"] = zeros_like(param.grad)
        return state

    def _update(self, group: Group) -> None:
        params, grads, states = self._gather(group)
        if any(each.is_complex() for each in params):
            raise RuntimeError("Adafactor does not support complex parameters")
        eps1, eps2 = group["eps"]
        run_on(
            adafactor,
            group,
            params,
            grads,
            [each.get("row_var") for each in states],
            [each.get("col_var") for each in states],
            [each.get("variance") for each in states],
            *kept(states, "step"),
            eps1=eps1,
            eps2=eps2,
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
        )


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of `Adafactor` for each parameter."""
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Grad scaling should occur outside of optimizer.step()")
    lr = as_scalar(lr)

    def rule(step: float, params: Any, grads: Any, *averages: Any) -> None:
        floor = finfo(params.dtype).eps if eps1 is None else eps1
        if maximize:
            grads = -grads
        weight = step**beta2_decay
        rate = number(min(lr, 1 / step**0.5))
        sizes = _root_mean_square(params).clamp_(min=eps2) * rate
        if weight_decay != 0:
            params.mul_(1 - lr * weight_decay)
        if len(averages) == 2:
            rows, columns = averages
            rows.lerp_(_mean_square(grads, -1), weight)
            columns.lerp_(_mean_square(grads, -2), weight)
            estimate = (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=floor))
        else:
            estimate = averages[0].lerp_(grads * grads, weight).clone()
        updates = estimate.clamp_(min=floor * floor).rsqrt_().mul_(grads)
        excess = (_root_mean_square(updates) / d).clamp_(min=1.0)
        params.sub_(updates * (sizes / excess))

    update_alike(rule, advance(state_steps), params, grads, row_vars, col_vars, variances)


def _mean_square(matrices: Any, dim: int) -> Any:
    return matrices.norm(dim=dim, keepdim=True).square_().div_(matrices.shape[dim])


def _root_mean_square(tensors: Any) -> Any:
    """The typical size of the elements of each tensor of a stack."""
    dims = list(range(1, tensors.ndim))
    sizes = tensors.norm(2, dims, keepdim=True) if dims else tensors.abs()
    return sizes.div_((tensors.numel() / tensors.shape[0]) ** 0.5)
