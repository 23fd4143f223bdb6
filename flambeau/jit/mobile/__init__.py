"""`torch.jit.mobile`: files of TorchScript for phones, which are not run."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "TorchScript's interpreter does not exist", functions="_load_for_lite_interpreter", classes="LiteScriptModule"
    )
    .parts()
)
