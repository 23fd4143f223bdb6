"""`torch.fx.proxy`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("Proxy", "fx")
    .absent(
        "graph capture (fx) is not built yet",
        classes="Attribute GraphAppendingTracer MetaProxy ParameterProxy Scope ScopeContextManager TraceError "
        "TracerBase",
    )
    .parts()
)
