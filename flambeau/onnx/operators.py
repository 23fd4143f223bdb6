"""Functions that stay what they are when a model is exported."""

from __future__ import annotations

from collections.abc import Sequence

from .._core.dtype import int64
from .._core.tensor import Tensor
from .._ops.create.constants import tensor


def _shape_as_tensor(x: Tensor) -> Tensor:
    """The shape of a tensor as a tensor of integers."""
    return tensor(list(x.shape), dtype=int64)


def shape_as_tensor(x: Tensor) -> Tensor:
    """The shape of a tensor as a tensor of integers."""
    return _shape_as_tensor(x)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor | Sequence[int]) -> Tensor:
    """A tensor in the shape that another tensor holds."""
    return x.reshape([int(each) for each in shape])
