"""Helpers of `torch.distributed.utils`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed: this part is not built",
        functions="_sync_module_states _sync_params_and_buffers _verify_param_shape_across_processes",
    )
    .parts()
)
