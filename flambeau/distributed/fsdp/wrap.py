"""Which modules are spread by themselves: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="always_wrap_policy enable_wrap lambda_auto_wrap_policy size_based_auto_wrap_policy "
        "transformer_auto_wrap_policy wrap _or_policy",
        classes="CustomPolicy ModuleWrapPolicy",
    )
    .parts()
)
