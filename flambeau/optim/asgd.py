"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from .._dispatch.changes.history import end_change
from .._dispatch.changes.storing import store_number
from ._options import added, chosen
from ._update import advance, as_scalar, check_modes, descent, number, update_all
from .optimizer import Group, GroupOptimizer, ParamsT, check_lr, check_not_negative, scalar, zeros_of

__all__ = ["ASGD", "asgd"]


@documented_like(GroupOptimizer)
class ASGD(GroupOptimizer):
    """Gradient descent that keeps, as state "ax", the average of the parameters since step `t0`.

    See Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992.

    Args:
        lr (float or Tensor): the learning rate: the factor of every update. Default: `0.01`.
        lambd (float): how fast the learning rate decays. Default: `0.0001`.
        alpha (float): the power of the decay. Default: `0.75`.
        t0 (float): the step from which on the parameters are averaged. Default: `1000000.0`.

    Example:
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = torch.optim.ASGD([weight], lr=0.1, t0=1)
        >>> for _ in range(4):
        ...     optimizer.zero_grad()
        ...     (weight**2).sum().backward()
        ...     optimizer.step()
        >>> weight, optimizer.state[weight]["ax"]       # the last point, and the average of the path
        (tensor([1.6383], requires_grad=True), tensor([1.8431]))
    """

    _ADDED_OPTIONS = added("foreach maximize differentiable capturable")
    _STATE = ("ax", "mu", "eta", "step")
    _NUMBERS = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(weight_decay=weight_decay)
        defaults = chosen(locals(), "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable")
        super().__init__(params, defaults)

    def _initial_state(self, param: Tensor, group: Group) -> dict[str, Any]:
        return {
            "step": scalar(0.0, param, group),
            "eta": scalar(float(as_scalar(group["lr"])), param, group),
            "mu": scalar(1.0, param, group),
            "ax": zeros_of(param),
        }

    def _update(self, group: Group) -> None:
        self._run(asgd, group)


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of `ASGD` for each parameter."""
    check_modes(foreach, differentiable, capturable, params)

    def rule(numbers: tuple[float, float], param: Any, grad: Any, average: Any) -> None:
        eta, weight = numbers
        grad = descent(grad, param, maximize, weight_decay)
        param.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
        if weight == 1:
            average.copy_(param)
        else:
            average.add_((param - average) * weight)

    numbers = [(float(eta._array), float(mu._array)) for eta, mu in zip(etas, mus, strict=True)]
    steps = advance(state_steps)
    update_all(rule, numbers, params, grads, axs)
    rate = as_scalar(lr)
    for step, eta, mu in zip(steps, etas, mus, strict=True):
        _store(eta, number(rate / (1 + lambd * rate * step) ** alpha))
        _store(mu, 1 / max(1, step - t0))


def _store(scalar: Tensor, value: float) -> None:
    store_number(scalar, value)
    end_change(scalar)
