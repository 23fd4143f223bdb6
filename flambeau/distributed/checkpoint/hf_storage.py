"""Checkpoints as Hugging Face's files, under the names of `torch.distributed.checkpoint.hf_storage`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "checkpoints of several processes are folders of their own format",
        classes="HuggingFaceStorageReader HuggingFaceStorageWriter",
    )
    .parts()
)
