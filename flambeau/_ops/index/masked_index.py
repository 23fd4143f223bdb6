"""Indexing with a mask: what it hides is neither read nor written, and its positions may be out of range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.backend import as_array
from ..._core.tensor import Tensor
from ..._dispatch.arguments.scalar import fitting
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public
from .indexing import advanced_get, advanced_put

Indices = Sequence[Any]


def _clamped(shape: tuple[int, ...], indices: list[Array]) -> tuple[Array, ...]:
    return tuple(np.clip(each, -size, size - 1) for each, size in zip(indices, shape, strict=False))


def _hidden(mask: Array, ndim: int) -> Array:
    return ~mask.reshape(mask.shape + (1,) * (ndim - mask.ndim))


def _index_gradient(grad: Tensor, self_sym_sizes: tuple[int, ...], mask: Tensor, indices: Indices) -> Tensor:
    return _put(grad.new_zeros(self_sym_sizes), mask, list(indices), grad)


@primitive("UnsafeMaskedIndexBackward0", op_name="unsafe_masked_index", self=_index_gradient)
def _pick(self: Array, mask: Array, indices: list[Array], fill: Any) -> Array:
    found = as_array(advanced_get(self, _clamped(self.shape, indices)))
    found[np.broadcast_to(_hidden(mask, found.ndim), found.shape)] = fill
    return found


def _values_gradient(grad: Tensor, mask: Tensor, indices: Indices) -> Tensor:
    return _pick(grad, mask, list(indices), 0)


@primitive(
    "UnsafeMaskedIndexPutAccumulateBackward0",
    op_name="unsafe_masked_index_put_accumulate",
    self=lambda grad: grad,
    values=_values_gradient,
)
def _put(self: Array, mask: Array, indices: list[Array], values: Array) -> Array:
    result = self.copy()
    added = np.where(_hidden(mask, values.ndim), values.dtype.type(0), values)
    advanced_put(result, _clamped(self.shape, indices), added, accumulate=True)
    return result


@public(method=False)
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Any, fill: Any) -> Tensor:
    """`input[indices]` where the mask holds, elsewhere `fill`; positions are moved into range."""
    return _pick(input, mask, list(indices), fitting(fill, input.dtype))


@public(method=False)
def _unsafe_masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: Any, values: Tensor) -> Tensor:
    """`input` with `values` added at the positions `indices` where the mask holds; positions are moved into range."""
    return _put(input, mask, list(indices), values)
