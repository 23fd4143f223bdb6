"""Python's `multiprocessing` under the names of `torch.multiprocessing`.

Tensors that go to another process are copied. Memory that `share_memory_` made is common to processes started by fork;
sending such a tensor to a process is refused, since it would arrive as a copy.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403
from multiprocessing.reduction import ForkingPickler
from typing import Any

from .._core.names.absent import refusal
from .._core.pickling import reduce_tensor
from .._core.tensor import Tensor
from .spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, start_processes
from .spawn import spawn as spawn

_sharing_strategy = "file_system"


def get_all_sharing_strategies() -> set[str]:
    """The ways in which memory is shared."""
    return {"file_system"}


def get_sharing_strategy() -> str:
    """The way in which memory is shared."""
    return _sharing_strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way in which memory is shared; there is one."""
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}: there is 'file_system'")


def _reduced(tensor: Tensor) -> Any:
    if tensor.untyped_storage().is_shared():
        raise refusal(
            "sending a tensor in shared memory to another process", "it would arrive as a copy; start by fork"
        )
    return reduce_tensor(tensor)


def __getattr__(name: str) -> Any:
    return getattr(multiprocessing, name)


ForkingPickler.register(Tensor, _reduced)
