"""Optimizers that step inside the backward pass: a gradient is used and forgotten as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...optim.optimizer import Optimizer

__all__: list[str] = []


def _apply_optimizer_in_backward(
    optimizer_class: type[Optimizer],
    params: Iterable[Parameter],
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Give each parameter an optimizer of its own, which steps when its gradient is there.

    Without `register_hook` the optimizers are only made, in the parameter's `_in_backward_optimizers`: somebody else
    lets them step.
    """
    for param in params:
        known = vars(param)
        optimizer = optimizer_class([param], **optimizer_kwargs)
        known.setdefault("_in_backward_optimizers", []).append(optimizer)
        known.setdefault("_optimizer_classes", []).append(optimizer_class)
        known.setdefault("_optimizer_kwargs", []).append(optimizer_kwargs)
        if register_hook and len(known["_in_backward_optimizers"]) == 1:
            param.register_post_accumulate_grad_hook(_step)


def _step(param: Any) -> None:
    for optimizer in vars(param)["_in_backward_optimizers"]:
        optimizer.step()
    param.grad = None


def _get_in_backward_optimizers(module: Module) -> list[Optimizer]:
    """The optimizers of a module's parameters."""
    return [each for param in module.parameters() for each in vars(param).get("_in_backward_optimizers", ())]
