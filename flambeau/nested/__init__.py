"""Tensors of unequal lengths, under the names of `torch.nested`.

In the layout `torch.jagged` rows differ in one dimension: they stand end to end in one ordinary tensor, the values, and
the offsets say where each begins. Ops run on the values (`_internal/rules.py`), and autograd follows them. In the
layout `torch.strided`, the default, rows may differ in all dimensions, and fewer functions take them
(`_internal/strided_rules.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau as torch

from .._core.device import LAYOUTS
from .._core.tensor import Tensor
from .._dispatch.public.namespaces import bound_to
from ._internal.nested_tensor import NestedTensor, from_rows
from ._internal.padding import padded
from ._internal.strided import StridedNestedTensor, packed

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

_JAGGED, _STRIDED = LAYOUTS["jagged"], LAYOUTS["strided"]


def _is_strided(layout: Any) -> bool:
    if layout is not None and layout not in (_STRIDED, _JAGGED):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout is not _JAGGED


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor | StridedNestedTensor:
    """A nested tensor with copies of tensors, or of lists of numbers, which differ in their sizes.

    >>> rows = [flambeau.ones(2, 3), flambeau.zeros(1, 3)]
    >>> nt = flambeau.nested.nested_tensor(rows, layout=flambeau.jagged)
    >>> nt.offsets()
    tensor([0, 2, 3])
    >>> nt.sum(1)
    tensor([[2., 2., 2.],
            [0., 0., 0.]])

    Args:
        tensor_list: tensors or lists of numbers with the same number of dimensions; in the layout `torch.jagged` they
            differ in one size alone.
        dtype: the dtype; None keeps that of the parts.
        layout: `torch.strided` or `torch.jagged`; None means `torch.strided`.
        device: the device; None keeps that of the parts.
        requires_grad (bool): whether autograd records operations on it. Default: `False`.
        pin_memory (bool): whether the memory is page-locked. Default: `False`.

    Returns:
        NestedTensor or StridedNestedTensor: the nested tensor.
    """
    with torch.no_grad():
        rows = [torch.as_tensor(each, dtype=dtype, device=device) for each in tensor_list]
        if _is_strided(layout):
            return packed(rows, dtype).requires_grad_(requires_grad)
        made = from_rows(rows)
    return NestedTensor(made._inner.detach().requires_grad_(requires_grad), made._offsets, ragged=made._ragged_idx)


def as_nested_tensor(
    ts: Any, dtype: Any = None, device: Any = None, layout: Any = None
) -> NestedTensor | StridedNestedTensor:
    """A nested tensor of tensors, or of the rows of one; gradients flow back to them.

    Args:
        ts: a list of tensors, or one tensor whose rows are taken.
        dtype: the dtype; None keeps that of the parts.
        device: the device; None keeps that of the parts.
        layout: `torch.strided` or `torch.jagged`; None means `torch.strided`.

    Returns:
        NestedTensor or StridedNestedTensor: the nested tensor.

    Example:
        >>> torch.nested.as_nested_tensor([torch.ones(1), torch.ones(3)], layout=torch.jagged).shape[0]
        2
    """
    if isinstance(ts, (NestedTensor, StridedNestedTensor)):
        return ts if dtype is None and device is None else ts.like(ts._inner.to(device=device, dtype=dtype))
    rows = [torch.as_tensor(each, dtype=dtype, device=device) for each in ts]
    return packed(rows, dtype) if _is_strided(layout) else from_rows(rows)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """A nested tensor around values: rows begin at `offsets`, and are as long as `lengths` or to the next one.

    Args:
        values (Tensor): the rows, joined along one dimension.
        offsets (Tensor, optional): where each row begins, and where the last one ends.
        lengths (Tensor, optional): how long each row is; None means up to the next one.
        jagged_dim (int, optional): the dimension that differs; None means 1.
        min_seqlen (int, optional): the length of the shortest row, if it is known.
        max_seqlen (int, optional): the length of the longest row, if it is known.

    Returns:
        NestedTensor: the nested tensor.

    Example:
        >>> rows = torch.nested.nested_tensor_from_jagged(torch.arange(4), offsets=torch.tensor([0, 1, 4]))
        >>> rows.unbind()
        (tensor([0]), tensor([1, 2, 3]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        lengths = None
    return NestedTensor(values, offsets, lengths, ragged=1 if jagged_dim is None else jagged_dim)


def narrow(
    tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: Any = _STRIDED
) -> NestedTensor | StridedNestedTensor:
    """`length` elements of each row of a tensor along `dim`, from `start` on: a window on the tensor's memory.

    Args:
        tensor (Tensor): the tensor; its first dimension counts the rows.
        dim (int): the dimension to shorten: 1 with the layout `torch.jagged`, 0 with `torch.strided`.
        start (int or Tensor): where each row's part begins.
        length (int or Tensor): how long each row's part is.
        layout: `torch.strided` or `torch.jagged`. Default: `torch.strided`.

    Returns:
        NestedTensor or StridedNestedTensor: the nested tensor.

    Example:
        >>> x = torch.arange(6).view(2, 3)
        >>> parts = torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([1, 2]), layout=torch.jagged)
        >>> parts.unbind()
        (tensor([0]), tensor([4, 5]))
    """
    if _is_strided(layout):
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        found: Any = packed(list(tensor.unbind())).narrow(dim, start, length)
        part: StridedNestedTensor = found
        return part
    if dim != 1:
        raise RuntimeError("Narrow with jagged layout is supported along dimension 1 alone")
    number, longest = tensor.size(0), tensor.size(1)
    begin = torch.as_tensor(start).expand(number)
    lengths = torch.as_tensor(length).expand(number)
    offsets = torch.arange(number) * longest + begin
    end = offsets[-1:] + lengths[-1:]
    return NestedTensor(tensor.flatten(0, 1), torch.cat([offsets, end]), lengths.clone())


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements that a mask selects in each row.

    Args:
        tensor (Tensor): the tensor.
        mask (Tensor): True for the elements to take.

    Returns:
        NestedTensor: the elements, row by row.

    Example:
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> torch.nested.masked_select(x, x != 3).unbind()
        (tensor([1, 2]), tensor([4]))
    """
    if mask.dim() < 2:
        raise RuntimeError("masked_select(): the mask needs a dimension of rows and one of elements")
    chosen = mask.expand(tensor.shape) if mask.dim() == tensor.dim() else mask
    lengths = chosen.flatten(1).sum(1)
    return NestedTensor(tensor[chosen], torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]))


@bound_to("nested")
def to_padded_tensor(
    namespace: Any, /, input: Tensor, padding: float, output_size: Sequence[int] | None = None, out: Any = None
) -> Tensor:
    """The rows one above the other in an ordinary tensor, with `padding` where they end.

    Args:
        input (Tensor): the nested tensor.
        padding (float): what stands where rows end.
        output_size (sequence of ints, optional): the shape of the result; None means as large as needed.
        out: not used.

    Returns:
        Tensor: an ordinary tensor.

    Example:
        >>> rows = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)
        >>> torch.nested.to_padded_tensor(rows, 0.0)
        tensor([[1., 0.],
                [1., 1.]])
    """
    if isinstance(input, StridedNestedTensor):
        return input.to_padded_tensor(padding, output_size)
    if not isinstance(input, NestedTensor):
        raise TypeError(f"to_padded_tensor(): expected a nested tensor, got {type(input).__name__}")
    return padded(input, padding, output_size)
