"""`torch.fx.graph`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("Graph CodeGen", "fx")
    .absent("graph capture (fx) is not built yet", classes="PythonCode")
    .parts()
)
