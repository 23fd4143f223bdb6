"""Indices that stay tensors: they are wrappers, are followed, or run operators by themselves."""

from __future__ import annotations

from typing import Any

from ..._core.dtype import bool_, int64, uint8
from ..._core.modes import THREAD
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..create.constants import tensor as positions
from ..shape.parts import _select, _slice
from ..shape.view import _unsqueeze


def runs_operators(*values: Any) -> bool:
    """Whether the class of one of the tensors has a `__torch_dispatch__`: its array has none of its elements."""
    for each in values:
        if type(each) in (tuple, list):
            if runs_operators(*each):
                return True
        elif isinstance(each, Tensor) and type(each) not in PLAIN_TYPES and hasattr(type(each), "__torch_dispatch__"):
            return True
    return False


def operator_entries(tensor: Tensor, index: Any) -> tuple[Tensor, list[Tensor | None]]:
    """A view of `tensor`, and for each of its dimensions a tensor of positions, a mask of some dimensions, or None:
    what PyTorch's operator `index` takes.
    """
    items = [_as_item(each, tensor) for each in (index if type(index) is tuple else (index,))]
    taken = sum([_dimensions(each) for each in items])
    if taken > tensor._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {tensor._array.ndim} (got {taken})")
    found: dict[int, Tensor] = {}
    inside: set[int] = set()  # dimensions that a mask has taken, but for the first
    part, dim = tensor, 0
    for item in items:
        if item is ...:
            dim += tensor._array.ndim - taken
        elif item is None or isinstance(item, bool):
            part = _unsqueeze(part, dim)
            part = _slice(part, dim, 0, 0, 1) if item is False else part
            dim += 1
        elif isinstance(item, Tensor):
            found[dim] = item
            inside.update(range(dim + 1, dim + _dimensions(item)))
            dim += _dimensions(item)
        elif isinstance(item, int):
            size = part._array.shape[dim]
            if not -size <= item < size:
                raise IndexError(f"index {item} is out of bounds for dimension {dim} with size {size}")
            part = _select(part, dim, item % size)
        else:
            part = basic_part(part, (*[slice(None)] * dim, item), False)
            dim += 1
    return part, [found.get(each) for each in range(max(found, default=-1) + 1) if each not in inside]


def _as_item(item: Any, tensor: Tensor) -> Any:
    if isinstance(item, Tensor):
        if item._array.ndim:
            return item
        return bool(item) if item._kind.dtype is bool_ else int(item)
    if item is None or item is ... or isinstance(item, (bool, slice)):
        return item
    if hasattr(item, "__index__"):
        return int(item)
    return positions(item, device=tensor.device)


def _dimensions(item: Any) -> int:
    if isinstance(item, Tensor) and item._kind.dtype in (bool_, uint8):
        dimensions: int = item._array.ndim
        return dimensions
    return int(item is not None and item is not ... and not isinstance(item, bool))


def stays_tensors(index: Any) -> bool:
    """Whether an index has a wrapper, or a tensor whose positions an interpreter follows: nobody looks at them here."""
    items = index if type(index) is tuple else (index,)
    tensors = [each for each in items if isinstance(each, Tensor)]
    for each in tensors:
        if each._is_wrapper:
            return True
    interpreters = THREAD.modes.interpreters
    if not tensors or not interpreters or not interpreters[-1].follows_positions:
        return False
    others = [each for each in items if not isinstance(each, (Tensor, slice)) and type(each) is not int]
    return all(each is None or each is ... for each in others) and all(map(_is_followed, tensors))


def stays_mask(index: Any) -> bool:
    """Whether a mask among the indices is written down as it is: how many elements it selects is nobody's concern."""
    interpreters = THREAD.modes.interpreters
    if not interpreters or not (interpreters[-1].follows_positions and interpreters[-1].writes_operators_whole):
        return False
    items = index if type(index) in (tuple, list) else (index,)
    tensors = [each for each in items if isinstance(each, Tensor)]
    others = [each for each in items if not isinstance(each, (Tensor, slice)) and type(each) is not int]
    return (
        any(each._kind.dtype is bool_ and each._array.ndim > 0 for each in tensors)
        and all(type(each) in PLAIN_TYPES or each._kind.dataless for each in tensors)
        and all(each is None or each is ... for each in others)
    )


def _is_followed(index: Tensor) -> bool:
    return index._kind.dtype not in (bool_, uint8) or bool(index._array.ndim)


def part_and_entries(tensor: Tensor, index: Any) -> tuple[Tensor, list[Tensor | None]]:
    """A view of `tensor`, and for each of its dimensions a tensor of positions or None: without a look at them."""
    items: list[Any] = []
    for each in index if type(index) is tuple else (index,):
        if isinstance(each, Tensor) and each._kind.dtype in (bool_, uint8):
            items += each.nonzero(as_tuple=True)
        elif isinstance(each, Tensor):
            items.append(each if each._kind.dtype is int64 else each.long())
        else:
            items.append(each)
    taken = sum(each is not None and each is not ... for each in items)
    if taken > tensor._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {tensor._array.ndim} (got {taken})")
    rest: list[Any] = [slice(None)] * (tensor._array.ndim - taken)
    at = next((number for number, each in enumerate(items) if each is ...), len(items))
    items = [*items[:at], *rest, *items[at + 1 :]]
    entries: list[Tensor | None] = []
    part = tensor
    for item in items:
        dim = len(entries)
        if isinstance(item, Tensor):
            entries.append(item)
        elif isinstance(item, int):
            part = _select(part, dim, item % part._array.shape[dim])
        else:
            part = basic_part(part, (*[slice(None)] * dim, item), False)
            entries.append(None)
    return part, entries


def basic_part(tensor: Tensor, basic: tuple[Any, ...], keep_full_slice: bool) -> Tensor:
    """`tensor[basic]` by one view op for each item that changes something; `tensor` itself if none does."""
    part = tensor
    dim = 0
    for item in basic:
        if item is None:
            part = _unsqueeze(part, dim)
            dim += 1
        elif type(item) is int:
            part = _select(part, dim, item % part._array.shape[dim])
        elif type(item) is slice:
            start, stop, step = item.indices(part._array.shape[dim])
            if keep_full_slice or start != 0 or step != 1 or stop != part._array.shape[dim]:
                part = _slice(part, dim, start, max(start, stop), step)
            dim += 1
    return part
