"""Loading on any number of processes."""

from __future__ import annotations

import warnings
from typing import Any

from .._world import ProcessGroup
from .default_planner import DefaultLoadPlanner
from .filesystem import FileSystemReader
from .state_dict_saver import plain_state, storage_of
from .stateful import Stateful

__all__ = ["load", "load_state_dict"]


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: FileSystemReader,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: DefaultLoadPlanner | None = None,
) -> None:
    """The older name of `load`.

    Args:
        state_dict (dict): the state: tensors, values, and objects with `state_dict`.
        storage_reader (FileSystemReader): what reads the folder; None means a `FileSystemReader`.
        process_group (ProcessGroup, optional): the processes; None means all.
        coordinator_rank (int): not used. Default: `0`.
        no_dist (bool): whether this process works alone. Default: `False`.
        planner (DefaultLoadPlanner, optional): chooses what is written or read; None means all.
    """
    warnings.warn("`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.", FutureWarning, stacklevel=2)  # noqa: E501  # fmt: skip
    load(state_dict, storage_reader=storage_reader, planner=planner, process_group=process_group, no_dist=no_dist)


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: FileSystemReader | None = None,
    planner: DefaultLoadPlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Fill a state from a folder: tensors in place, other values anew, objects by their `load_state_dict`.

    Args:
        state_dict (dict): the state: tensors, values, and objects with `state_dict`.
        checkpoint_id: the folder.
        storage_reader (FileSystemReader, optional): what reads the folder; None means a `FileSystemReader`.
        planner (DefaultLoadPlanner, optional): chooses what is written or read; None means all.
        process_group (ProcessGroup, optional): the processes; None means all.
        no_dist (bool): whether this process works alone. Default: `False`.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> dist.checkpoint.save({"x": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
        >>> state = {"x": torch.zeros(2)}
        >>> dist.checkpoint.load(state, checkpoint_id=folder, no_dist=True)
        >>> state
        {'x': tensor([1., 1.])}
    """
    state = plain_state(state_dict)
    folder, reader = storage_of(checkpoint_id, storage_reader, FileSystemReader)
    reader._read(folder, state, planner is not None and planner.allow_partial_load)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(state[key])
        else:
            state_dict[key] = state[key]
