"""The folders of checkpoints."""

from __future__ import annotations

import enum
import os
from pathlib import Path
from typing import Any

from .._world import ProcessGroup
from ._folder import Staged, read, stage, write

__all__ = ["FileSystemReader", "FileSystemWriter", "SerializationFormat"]


class SerializationFormat(enum.Enum):
    """How the tensors of a checkpoint are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemWriter:
    """A folder that a checkpoint is written into: as safetensors, whatever format is asked for.

    Args:
        path (str or PathLike): the folder.
        single_file_per_rank (bool): not used. Default: `True`.
        sync_files (bool): whether files are flushed to the disk. Default: `True`.
        thread_count (int): not used. Default: `1`.
        per_thread_copy_ahead (int): not used. Default: `10000000`.
        cache_staged_state_dict (bool): not used. Default: `False`.
        overwrite (bool): whether a checkpoint in the folder may be replaced. Default: `True`.
        serialization_format (SerializationFormat): the format of the files. Default: `SerializationFormat.TORCH_SAVE`.

    Example:
        >>> import tempfile
        >>> writer = dist.checkpoint.FileSystemWriter(tempfile.mkdtemp())
        >>> dist.checkpoint.save({"x": torch.ones(2)}, storage_writer=writer, no_dist=True)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        self.path = Path(path)

    def _staged(self, state: dict[str, Any], group: ProcessGroup | None) -> Staged:
        """What this process is to write of a state."""
        return stage(state, group)

    def _write(self, folder: Path, staged: Staged, group: ProcessGroup | None) -> None:
        """Write it."""
        write(folder, staged, group)


class FileSystemReader:
    """A folder that a checkpoint is read from.

    Args:
        path (str or PathLike): the folder.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> dist.checkpoint.save({"x": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
        >>> state = {"x": torch.zeros(2)}
        >>> dist.checkpoint.load(state, storage_reader=dist.checkpoint.FileSystemReader(folder), no_dist=True)
        >>> state
        {'x': tensor([1., 1.])}
    """

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        self.path = Path(path)

    def _read(self, folder: Path, state: dict[str, Any], allow_missing: bool) -> None:
        """Fill a state."""
        read(folder, state, allow_missing)
