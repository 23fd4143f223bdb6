"""Queues of Intel's GPUs: there are none."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .raising(
        RuntimeError,
        "torch.xpu.{name} needs an Intel GPU, and this installation of Flambeau has none",
        classes="Event Stream",
    )
    .parts()
)
