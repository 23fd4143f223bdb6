"""Checkpoints as folders of Hugging Face's: tensors by name in safetensors files, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..._core.tensor import Tensor
from ...safetensors import safe_open, save_file
from .. import _calls
from .._world import ProcessGroup
from ._folder import INDEX, CheckpointException, Staged, fill, stage, together, write_index
from .filesystem import FileSystemReader, FileSystemWriter

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageWriter(FileSystemWriter):
    """A folder of numbered files that `from_pretrained` reads; values that are no tensors are left out.

    `fqn_to_index_mapping` says, for each name, in the how manieth file it is. Each file is written by one process, and
    tensors are whole, also with `save_distributed`: there is nothing left to consolidate.

    Args:
        path (str or PathLike): the folder.
        fqn_to_index_mapping (dict[str, int], optional): the number of the file of each tensor.
        thread_count (int): not used. Default: `1`.
        save_distributed (bool): whether each process writes files of its own. Default: `False`.
        enable_consolidation (bool): whether these are joined at the end. Default: `False`.
        thread_count_consolidation (int): not used. Default: `1`.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> writer = dist.checkpoint.HuggingFaceStorageWriter(folder)
        >>> dist.checkpoint.save({"x": torch.ones(2)}, storage_writer=writer, no_dist=True)
        >>> sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
        ['model-00001-of-00001.safetensors']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        super().__init__(path)
        self.fqn_to_index_mapping = fqn_to_index_mapping

    def _number(self, name: str) -> int:
        mapping = self.fqn_to_index_mapping
        if mapping is None:
            return 1
        if name not in mapping:
            raise CheckpointException(f"fqn_to_index_mapping does not say in which file {name!r} is")
        return mapping[name]

    def _staged(self, state: dict[str, Any], group: ProcessGroup | None) -> Staged:
        def by_file(tensors: dict[str, Tensor], size: int) -> list[list[str]]:
            shares: list[list[str]] = [[] for _ in range(size)]
            for name in tensors:
                shares[(self._number(name) - 1) % size].append(name)
            return shares

        return stage(state, group, by_file)

    def _write(self, folder: Path, staged: Staged, group: ProcessGroup | None) -> None:
        last = max((self.fqn_to_index_mapping or {}).values(), default=1)
        folder.mkdir(parents=True, exist_ok=True)

        def file_of(name: str) -> str:
            return f"model-{self._number(name):05d}-of-{last:05d}.safetensors"

        def write_own() -> None:
            for file in sorted({file_of(name) for name in staged.own}):
                tensors = {name: each for name, each in staged.own.items() if file_of(name) == file}
                save_file(tensors, folder / file, {"format": "pt"})

        together(write_own, group)
        if group is None or group.rank() == 0:
            weights = {name: file_of(name) for names in staged.shares for name in names}
            write_index(folder, {"total_size": staged.total_size}, weights)
        if group is not None:
            _calls.barrier(group)


class HuggingFaceStorageReader(FileSystemReader):
    """A folder of safetensors files, with an index or without one.

    Args:
        path (str or PathLike): the folder.
        thread_count (int): not used. Default: `1`.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> torch.safetensors.save_file({"x": torch.ones(2)}, folder + "/model.safetensors")
        >>> state = {"x": torch.zeros(2)}
        >>> reader = dist.checkpoint.HuggingFaceStorageReader(folder)
        >>> dist.checkpoint.load(state, storage_reader=reader, no_dist=True)
        >>> state
        {'x': tensor([1., 1.])}
    """

    def __init__(self, path: str | os.PathLike[str], thread_count: int = 1) -> None:
        super().__init__(path)

    def _read(self, folder: Path, state: dict[str, Any], allow_missing: bool) -> None:
        fill(folder, _files(folder), {}, state, allow_missing)


def _files(folder: Path) -> dict[str, str]:
    """The files of the tensors by their names."""
    index = folder / INDEX
    if index.exists():
        listed: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return listed
    found: dict[str, str] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file) as opened:
            found |= dict.fromkeys(opened.keys(), file.name)
    if not found:
        raise CheckpointException(f"{folder} has no safetensors files")
    return found
