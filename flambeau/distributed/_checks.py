"""What collectives ask of their arguments, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.tensor import Tensor
from ._world import ProcessGroup, get_group_rank, world


def check_tensor(value: Any, name: str) -> None:
    """Refuse what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def check_tensors(values: Any, name: str) -> None:
    """Refuse what is no list of tensors."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(each, Tensor) for each in values):
        kinds = [type(each) for each in values] if isinstance(values, (list, tuple)) else None
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} with elements of type {kinds}."
        )


def check_same_dtype(*tensors: Any) -> None:
    """Refuse tensors of several dtypes."""
    flat = [each for entry in tensors for each in (entry if isinstance(entry, (list, tuple)) else [entry])]
    for tensor in flat[1:]:
        if tensor.dtype != flat[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypes: found {flat[0].dtype} and {tensor.dtype}"
            )


def check_list(call: str, tensors: Sequence[Tensor], size: int, like: Tensor, which: str) -> None:
    """Refuse a list that has not one tensor of the right size for each process."""
    if len(tensors) != size:
        raise RuntimeError(
            f"ProcessGroupGloo::{call}: invalid {which} tensor list at index 0 (expected length {size}, got "
            f"{len(tensors)})"
        )
    for index, tensor in enumerate(tensors):
        if tensor.shape != like.shape:
            raise RuntimeError(
                f"ProcessGroupGloo::{call}: invalid tensor size at index {index} (expected {tuple(like.shape)}, got "
                f"{tuple(tensor.shape)})"
            )


def member(group: ProcessGroup, rank: int | None, group_rank: int | None, name: str) -> int:
    """The rank in the group, from that among all processes or from that in the group, of which one is given."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_{name} and {name}")
    if group_rank is None:
        if rank is None:
            raise ValueError(f"Must specify {name} or group_{name}")
        group_rank = get_group_rank(group, rank)
    if not 0 <= group_rank < group.size():
        what = "root" if group is world().default else "group"
        raise RuntimeError(f"invalid root rank: {group_rank} is no {what} rank, the group has {group.size()} processes")
    return group_rank
