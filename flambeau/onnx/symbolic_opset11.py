"""PyTorch's rules for opset 11, which its older exporter uses: here every op has a converter in their place."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "the rules of PyTorch's older exporter have no use here: a rule of your own calls g.op(...)",
        functions="add squeeze unsqueeze select",
    )
    .parts()
)
