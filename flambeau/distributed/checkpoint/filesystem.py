"""The folders of checkpoints."""

from __future__ import annotations

import enum
import os
from pathlib import Path
from typing import Any

__all__ = ["FileSystemReader", "FileSystemWriter", "SerializationFormat"]


class SerializationFormat(enum.Enum):
    """How the tensors of a checkpoint are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemWriter:
    """A folder that a checkpoint is written into."""

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
        if serialization_format is not SerializationFormat.TORCH_SAVE:
            raise NotImplementedError(f"checkpoints are not written in the format {serialization_format.value}")
        self.path = Path(path)


class FileSystemReader:
    """A folder that a checkpoint is read from."""

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        self.path = Path(path)
