"""Copies and conversions: clone, copy_, to, contiguous, detach."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.tensor import Tensor
from .dispatch import Array, primitive
from .registry import public


@primitive("CloneBackward0", self=lambda grad: grad)
def _clone(self: Array, order: str) -> Array:
    return self.copy(order)


@public()
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with its own memory, connected in the graph."""
    return _clone(input, "K")  # type: ignore[no-any-return]


@primitive("ToCopyBackward0", self=lambda grad: grad)  # the engine converts it to the input's dtype
def _to_copy(self: Array, dtype: Any) -> Array:
    return self.astype(dtype.numpy)


@public(function=False)
def to(input: Tensor, dtype: Any) -> Tensor:
    return input if dtype is input.dtype else _to_copy(input, dtype)  # type: ignore[no-any-return]
