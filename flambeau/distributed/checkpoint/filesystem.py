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
    """A folder that a checkpoint is written into: as safetensors, whatever format is asked for."""

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
    """A folder that a checkpoint is read from."""

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        self.path = Path(path)

    def _read(self, folder: Path, state: dict[str, Any], allow_missing: bool) -> None:
        """Fill a state."""
        read(folder, state, allow_missing)
