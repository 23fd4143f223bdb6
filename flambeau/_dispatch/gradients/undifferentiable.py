"""What PyTorch does not differentiate: derivatives that are not implemented, arguments that have none."""

from __future__ import annotations

from typing import Any

from ..._core.dtype import COMPLEX
from ..._core.modes import THREAD
from ..._core.tensor import Tensor


def no_derivative(name: str) -> Any:
    """The formula of an op whose derivative PyTorch does not implement."""

    def refuse(grad: Tensor) -> Tensor:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return refuse


def refuse_gradients(function: str, **arguments: Any) -> None:
    """Refuse arguments that need a gradient and for which `function` has none."""
    if not THREAD.modes.grad:
        return
    for name, each in arguments.items():
        if each is not None and each.requires_grad:
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument '{name}'. "
                "This input cannot have requires_grad True."
            )


def refuse_complex_gradients(function: str, input: Tensor) -> None:
    """Refuse a complex tensor that needs a gradient, which `function` has for real ones alone."""
    if input._kind.dtype.category == COMPLEX and THREAD.modes.grad and input.requires_grad:
        raise RuntimeError(f"{function} does not support automatic differentiation for outputs with complex dtype.")
