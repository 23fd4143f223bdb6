"""`torch.jit.mobile`: files of TorchScript for phones, which are not run."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "files for the lite interpreter are not run: torch.jit.load reads those of torch.jit.save",
        functions="_load_for_lite_interpreter",
        classes="LiteScriptModule",
    )
    .parts()
)
