"""Operators of one's own, under the names of `torch.library`: not built yet."""

from __future__ import annotations

from ._core.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "custom operators are not built yet",
        functions="impl define fallthrough_kernel impl_abstract register_autocast register_autograd register_fake "
        "register_kernel register_torch_dispatch register_vmap get_ctx get_kernel custom_op triton_op wrap_triton "
        "infer_schema opcheck",
        classes="Library",
    )
    .parts()
)
