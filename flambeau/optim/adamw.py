"""Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._options import chosen, with_option
from .adam import Adam, adam
from .optimizer import ParamsT

__all__ = ["AdamW", "adamw"]


@documented_like(Adam)
class AdamW(Adam):
    """`Adam` whose weight decay shrinks the parameters and does not enter the averages.

    In step `t`, with `param = param - lr * weight_decay * param`:
    `average = beta1 * average + (1 - beta1) * grad`, `square = beta2 * square + (1 - beta2) * grad**2` and
    `param = param - lr * average / (1 - beta1**t) / (sqrt(square / (1 - beta2**t)) + eps)`.

    See "Decoupled Weight Decay Regularization", https://arxiv.org/abs/1711.05101.

    Args:
        weight_decay (float): by what part of themselves, times the learning rate, parameters shrink at each step.
            Default: `0.01`.

    Example:
        >>> model = torch.nn.Linear(2, 1)
        >>> optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.01)
        >>> model(torch.ones(1, 2)).sum().backward()
        >>> optimizer.step()
        >>> sorted(optimizer.state[model.weight])
        ['exp_avg', 'exp_avg_sq', 'step']
    """

    _can_prepare_step = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        options = "lr betas eps weight_decay amsgrad foreach maximize capturable differentiable fused"
        super().__init__(params, **chosen(locals(), options), decoupled_weight_decay=True)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # checkpoints of former versions do not have it


adamw = with_option(adam, "adamw", "One step of `AdamW` for each parameter.", decoupled_weight_decay=True)
