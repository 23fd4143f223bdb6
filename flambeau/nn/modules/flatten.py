"""Several dimensions to one, and back."""

from __future__ import annotations

from typing import ClassVar

from ..._core.size import Size
from ..._core.tensor import Tensor
from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Makes one dimension of several neighbouring ones; by default the batch stays.

    Args:
        start_dim (int): the first dimension that is flattened. Default: `1`.
        end_dim (int): the last dimension that is flattened. Default: `-1`.

    Shape:
        input: any shape
        output: the shape with the sizes from `start_dim` to `end_dim` replaced by their product

    Example:
        >>> flambeau.nn.Flatten()(flambeau.ones(32, 1, 5, 5)).shape
        torch.Size([32, 25])
    """

    __constants__: ClassVar[list[str]] = ["start_dim", "end_dim"]

    start_dim: int
    end_dim: int

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one dimension into several.

    Args:
        dim (int or str): the dimension to split, by number or by name.
        unflattened_size (tuple of ints): the sizes that replace it; one may be -1. For a named dimension, pairs of name
            and size.

    Shape:
        input: any shape
        output: the shape with the size of `dim` replaced by `unflattened_size`

    Raises:
        RuntimeError: the sizes do not multiply to that of the dimension.

    Example:
        >>> flambeau.nn.Unflatten(1, (2, 5, 5))(flambeau.ones(32, 50)).shape
        torch.Size([32, 2, 5, 5])
    """

    __constants__: ClassVar[list[str]] = ["dim", "unflattened_size"]

    dim: int
    unflattened_size: Size | list[int] | tuple[int, ...]

    def __init__(self, dim: int, unflattened_size: Size | list[int] | tuple[int, ...]) -> None:
        super().__init__()
        self._require_tuple_int(unflattened_size)
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_tuple_int(self, input: Size | list[int] | tuple[int, ...]) -> None:
        if not isinstance(input, (tuple, list)):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(input).__name__}")
        for position, item in enumerate(input):
            if not isinstance(item, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, "
                    f"but found element of type {type(item).__name__} at pos {position}"
                )

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
