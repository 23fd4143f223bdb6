"""Between rows of unequal lengths and rows that are filled up to the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau as torch

from ..._core.tensor import Tensor
from .nested_tensor import NestedTensor


def padded(nested: NestedTensor, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
    """Dimension 0 are the rows, the ragged one is as long as the longest, with `padding` behind what is shorter."""
    values = nested._inner
    place = nested._ragged_idx - 1
    lengths, begin = nested.row_lengths(), nested._offsets[:-1]
    longest = nested._get_max_seqlen() if len(nested) else 0
    steps = torch.arange(longest, device=values.device)
    inside = steps < lengths[:, None]
    first = values.movedim(place, 0)
    filler = first.new_full((1, *first.shape[1:]), padding)
    index = torch.where(inside, begin[:, None] + steps, first.size(0))
    result = torch.cat([first, filler])[index].movedim(1, place + 1)
    return result if output_size is None else _grown(result, padding, output_size)


def _grown(tensor: Tensor, padding: float, sizes: Sequence[int]) -> Tensor:
    if any(wanted < size for wanted, size in zip(sizes, tensor.shape, strict=True)):
        raise RuntimeError(
            f"Value in output_size is less than NestedTensor padded size: {list(sizes)} below {list(tensor.shape)}"
        )
    widths = [each for wanted, size in zip(sizes, tensor.shape, strict=True) for each in (wanted - size, 0)]
    return torch.nn.functional.pad(tensor, widths[::-1], value=padding)


def unpadded(tensor: Tensor, like: NestedTensor, ragged: int) -> NestedTensor:
    """The rows of a tensor without what fills them up: as long as those of `like`, along `ragged`."""
    lengths = like.row_lengths()
    inside = torch.arange(tensor.size(ragged), device=tensor.device) < lengths[:, None]
    values = tensor.movedim(ragged, 1)[inside].movedim(0, ragged - 1)
    if like._lengths is None:
        return like.like(values, ragged)
    return NestedTensor(values, _bounds(lengths), ragged=ragged)


def _bounds(lengths: Tensor) -> Tensor:
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def for_each_element(dense: Any, nested: NestedTensor, name: str) -> Any:
    """An ordinary operand of an elementwise op as one of the values: broadcast along the rows."""
    place, dims = nested._ragged_idx, nested.dim()
    missing = dims - dense.dim()
    along_ragged = place - missing
    refused = RuntimeError(
        f"cannot call binary pointwise function {name} with inputs of shapes {nested.shape} and {dense.shape}"
    )
    if missing < 0 or (along_ragged >= 0 and dense.size(along_ragged) != 1):
        raise refused
    if missing > 0:
        return dense
    if dense.size(0) not in (1, len(nested)):
        raise refused
    rows = dense.squeeze(place)  # its dimension 0 are the rows, as many as the nested tensor's or one
    if rows.size(0) == 1:
        return rows.squeeze(0).unsqueeze(place - 1)
    if nested._lengths is not None:
        raise refused
    return rows.movedim(0, place - 1).repeat_interleave(nested.row_lengths(), place - 1)
