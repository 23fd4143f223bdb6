"""Several devices at work on one batch."""

from __future__ import annotations

from ..._core.names.absent import Table
from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]

__getattr__, __dir__ = (
    Table(__name__).elsewhere("DistributedDataParallel", "nn.parallel.distributed").submodules("distributed").parts()
)
