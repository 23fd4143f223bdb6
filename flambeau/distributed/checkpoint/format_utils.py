"""Checkpoints of several processes made of one file, and one file made of such a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...serialization import load as load_file
from ...serialization import save as save_file
from ._folder import read_whole, stage, write

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write what a checkpoint of several processes holds into one file, as `torch.save` does."""
    save_file(read_whole(Path(dcp_checkpoint_dir)), torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Write what a file of `torch.save` holds as a checkpoint that several processes can read."""
    state: dict[str, Any] = load_file(torch_save_path, weights_only=True)
    write(Path(dcp_checkpoint_dir), stage(state, None), None)
