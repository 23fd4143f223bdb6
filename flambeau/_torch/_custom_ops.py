"""The older names of what is in `torch.library`, under those of `torch._custom_ops`."""

from __future__ import annotations

from flambeau._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "its successor torch.library.custom_op works",
        functions="custom_op impl impl_abstract impl_backward impl_save_for_backward get_ctx",
    )
    .parts()
)
