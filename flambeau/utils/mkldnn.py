"""Modules in the layout of one CPU library, under the names of `torch.utils.mkldnn`: kernels here choose themselves."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "kernels take ordinary tensors, and use that library where it helps",
        functions="to_mkldnn",
        classes="MkldnnBatchNorm MkldnnConv1d MkldnnConv2d MkldnnConv3d MkldnnLinear MkldnnPrelu",
    )
    .parts()
)
