"""`torch.fx.experimental`: symbolic shapes and tracing by dispatch, not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("proxy_tensor symbolic_shapes").parts()
