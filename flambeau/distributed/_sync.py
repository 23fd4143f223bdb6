"""One state on all processes: shapes compared, values taken from one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._core.tensor import Tensor
from ..autograd.grad_mode import no_grad
from . import _calls, _objects
from ._world import ProcessGroup


def check_same_shapes(names: Sequence[str], tensors: Sequence[Tensor], group: ProcessGroup) -> None:
    """Refuse a model that is not the same on all processes, and say where it differs."""
    own = [(name, tuple(each.shape), str(each.dtype)) for name, each in zip(names, tensors, strict=True)]
    all_of_them: list[Any] = [None] * group.size()
    _objects.all_gather_object(all_of_them, own, group)
    for rank, other in enumerate(all_of_them):
        if [tuple(each) for each in other] == own:
            continue
        if len(other) != len(own):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {group.rank()} has {len(own)} params, while rank "
                f"{rank} has inconsistent {len(other)} params."
            )
        here, there = next((a, tuple(b)) for a, b in zip(own, other, strict=True) if a != tuple(b))
        raise RuntimeError(
            f"[{group.rank()}]: params in this process with sizes {here[1]} appears not to match sizes {there[1]} of "
            f"the same param in process {rank}: {here[0]} ({here[2]}) here, {there[0]} ({there[2]}) there"
        )


def broadcast_coalesced(tensors: Iterable[Tensor], group: ProcessGroup, source: int = 0) -> None:
    """The values of one process, on all of them; those of a dtype travel as one."""
    from .._ops.shape.join import cat

    by_kind: dict[Any, list[Tensor]] = {}
    for each in tensors:
        by_kind.setdefault((each.dtype, each.device), []).append(each.detach())
    with no_grad():
        for alike in by_kind.values():
            if len(alike) == 1:
                _calls.broadcast(alike[0], group=group, group_src=source)
                continue
            flat = cat([each.reshape(-1) for each in alike])
            _calls.broadcast(flat, group=group, group_src=source)
            start = 0
            for each in alike:
                each.copy_(flat[start : start + each.numel()].view(each.shape))
                start += each.numel()
