"""Tensors of unequal lengths, under the names of `torch.nested`: not built yet."""

from __future__ import annotations

from ._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "nested tensors are not built yet",
        functions="to_padded_tensor as_nested_tensor nested_tensor nested_tensor_from_jagged narrow masked_select",
    )
    .parts()
)
