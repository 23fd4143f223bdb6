"""Saving by all processes together."""

from __future__ import annotations

import enum
import os
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from ..._core.text.inherited_docs import documented_like
from .._world import ProcessGroup, group_of, is_initialized, new_group
from .filesystem import FileSystemReader, FileSystemWriter
from .stateful import Stateful

__all__ = ["AsyncCheckpointerType", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(enum.Enum):
    """Who writes a checkpoint while training goes on."""

    THREAD = "thread"
    PROCESS = "process"


def plain_state(state_dict: dict[str, Any]) -> dict[str, Any]:
    """A state in which objects that have one of their own are replaced by it."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


Storage = TypeVar("Storage", FileSystemWriter, FileSystemReader)


def storage_of(checkpoint_id: Any, storage: Storage | None, kind: type[Storage]) -> tuple[Path, Storage]:
    """Where a checkpoint is, and what writes or reads it."""
    if storage is None and checkpoint_id is None:
        raise ValueError("a checkpoint needs a folder: give checkpoint_id, or a FileSystemWriter or FileSystemReader")
    found = kind(checkpoint_id) if storage is None else storage
    return found.path if checkpoint_id is None else Path(os.fspath(checkpoint_id)), found


def _taking_part(process_group: Any, no_dist: bool) -> ProcessGroup | None:
    return group_of(process_group) if is_initialized() and not no_dist else None


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> None:
    """Write a state, the same on all processes, into a folder: each process writes a part of the tensors.

    Args:
        state_dict (dict): the state: tensors, values, and objects with `state_dict`.
        checkpoint_id: the folder.
        storage_writer (FileSystemWriter, optional): what writes the folder; None means a `FileSystemWriter`.
        planner: chooses what is written or read; None means all.
        process_group (ProcessGroup, optional): the processes; None means all.
        no_dist (bool): whether this process works alone. Default: `False`.
        use_collectives (bool): not used. Default: `True`.

    Example:
        >>> import tempfile
        >>> dist.checkpoint.save({"x": torch.ones(2)}, checkpoint_id=tempfile.mkdtemp(), no_dist=True)
    """
    folder, writer = storage_of(checkpoint_id, storage_writer, FileSystemWriter)
    group = _taking_part(process_group, no_dist)
    writer._write(folder, writer._staged(plain_state(state_dict), group), group)


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: FileSystemWriter,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> None:
    """The older name of `save`.

    Args:
        state_dict (dict): the state: tensors, values, and objects with `state_dict`.
        storage_writer (FileSystemWriter): what writes the folder; None means a `FileSystemWriter`.
        process_group (ProcessGroup, optional): the processes; None means all.
        coordinator_rank (int): not used. Default: `0`.
        no_dist (bool): whether this process works alone. Default: `False`.
        planner: chooses what is written or read; None means all.
    """
    warnings.warn("`save_state_dict` is deprecated and will be removed in future versions. Please use `save` instead.", FutureWarning, stacklevel=2)  # noqa: E501  # fmt: skip
    save(state_dict, storage_writer=storage_writer, planner=planner, process_group=process_group, no_dist=no_dist)


@documented_like(save)
def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[None]:
    """`save` in another thread, of what is copied before this returns: training may go on.

    Args:
        async_checkpointer_type (AsyncCheckpointerType): only `THREAD`. Default: `AsyncCheckpointerType.THREAD`.
        async_stager: not used.

    Returns:
        ends when the folder is written.

    Example:
        >>> import tempfile
        >>> future = dist.checkpoint.async_save({"x": torch.ones(2)}, checkpoint_id=tempfile.mkdtemp(), no_dist=True)
        >>> future.result()
    """
    from .._world import World, world

    if async_checkpointer_type is not AsyncCheckpointerType.THREAD:
        raise NotImplementedError("a checkpoint is written by a thread of this process, not by another process")
    folder, writer = storage_of(checkpoint_id, storage_writer, FileSystemWriter)
    group = _taking_part(process_group, no_dist)
    staged = writer._staged(plain_state(state_dict), group)
    # A group of its own: its collectives are not mixed up with those of training.
    own = None if group is None else new_group(group._ranks, group._timeout)
    here: World = world()

    def run() -> None:
        here.enter()
        try:
            writer._write(folder, staged, own)
        finally:
            World.leave()

    executor = ThreadPoolExecutor(1, "flambeau checkpoint")
    future = executor.submit(run)
    executor.shutdown(wait=False)
    return future
