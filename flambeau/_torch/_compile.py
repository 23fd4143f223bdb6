"""`torch._compile`: how functions of PyTorch itself say that they are not compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.compiler import disable

__all__ = ["_disable_dynamo"]


def _disable_dynamo(fn: Callable[..., Any] | None = None, recursive: bool = True) -> Any:
    """A function that `torch.compile` runs eagerly; without `fn` a decorator."""
    return disable(fn, recursive)
