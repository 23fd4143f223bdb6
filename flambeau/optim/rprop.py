"""Rprop."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._options import added, chosen
from ._update import advance, as_scalar, check_modes, update_all
from .optimizer import Group, GroupOptimizer, ParamsT, check_lr, scalar, zeros_of

__all__ = ["Rprop", "rprop"]


@documented_like(GroupOptimizer)
class Rprop(GroupOptimizer):
    """Resilient propagation: looks at the signs of gradients only.

    Each element has a step size, which grows while the sign stays and shrinks when it changes; then that step is left
    out.

    Args:
        lr (float or Tensor): the learning rate: the factor of every update. Default: `0.01`.
        etas (tuple[float, float]): the factors of a parameter's step: the first where the gradient's sign has changed,
            the second where it has not. Default: `(0.5, 1.2)`.
        step_sizes (tuple[float, float]): the smallest and the largest step. Default: `(1e-06, 50)`.

    Example:
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = torch.optim.Rprop([weight], lr=1.0)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (weight**2).sum().backward()
        ...     optimizer.step()
        >>> weight                          # steps of 1.0 and, because the sign stays, of 1.2
        tensor([1.8000], requires_grad=True)
    """

    _ADDED_OPTIONS = added("foreach maximize differentiable capturable")
    _STATE = ("prev", "step_size", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(
                f"Invalid eta values: {etas[0]}, {etas[1]}. The first must be between 0 and 1, the second above 1"
            )
        defaults = chosen(locals(), "lr etas step_sizes foreach maximize differentiable capturable")
        super().__init__(params, defaults)

    def _initial_state(self, param: Any, group: Group) -> dict[str, Any]:
        from .._ops.create.like import full_like

        lr = float(as_scalar(group["lr"]))
        size = full_like(param.grad, complex(lr, lr) if param.is_complex() else lr)
        return {"step": scalar(0.0, param, group), "prev": zeros_of(param), "step_size": size}

    def _update(self, group: Group) -> None:
        self._run(rprop, group)


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of `Rprop` for each parameter."""
    check_modes(foreach, differentiable, capturable, params)

    def rule(_: Any, param: Any, grad: Any, previous: Any, size: Any) -> None:
        if maximize:
            grad = -grad
        agreement = grad.detach() * previous.detach()
        turned = agreement < 0
        factors = (
            agreement.new_ones(agreement.shape).masked_fill_(agreement > 0, etaplus).masked_fill_(turned, etaminus)
        )
        size.copy_((size * factors).clamp(step_size_min, step_size_max))
        grad = grad.masked_fill(turned, 0)
        param.addcmul_(grad.sign(), size.clone() if differentiable else size, value=-1)
        previous.copy_(grad)

    advance(state_steps)
    update_all(rule, None, params, grads, prevs, step_sizes)
