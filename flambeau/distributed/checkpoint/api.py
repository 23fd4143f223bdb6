"""What goes wrong with checkpoints, under the names of `torch.distributed.checkpoint.api`."""

from __future__ import annotations

from ._folder import CheckpointException

__all__ = ["CheckpointException"]
