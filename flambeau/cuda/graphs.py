"""Work of CUDA devices that is captured once and replayed."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NEEDS_CUDA, where_present

__getattr__, __dir__ = where_present(
    "_graphs",
    Table(__name__).raising(
        RuntimeError,
        NEEDS_CUDA,
        functions="graph_pool_handle is_current_stream_capturing make_graphed_callables",
        classes="CUDAGraph graph",
    ),
)
