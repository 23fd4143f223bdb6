"""`torch.fx.experimental.proxy_tensor`: tracing by dispatch, not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent("graph capture (fx) is not built yet", functions="make_fx", classes="ProxyTorchDispatchMode")
    .returning(lambda: None, functions="get_proxy_mode get_innermost_proxy_mode")
    .parts()
)
