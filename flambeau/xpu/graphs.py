"""Recorded work of Intel's GPUs: there are none."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .raising(
        RuntimeError,
        "torch.xpu.{name} needs an Intel GPU, and this installation of Flambeau has none",
        functions="graph_pool_handle is_current_stream_capturing make_graphed_callables",
        classes="XPUGraph graph",
    )
    .parts()
)
