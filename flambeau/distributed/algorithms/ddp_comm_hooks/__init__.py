"""Hooks of gradients that are exchanged: not built yet."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("post_localSGD_hook default_hooks")
    .absent(
        "distributed is not built yet",
        functions="register_ddp_comm_hook",
        classes="DDPCommHookType",
    )
    .parts()
)
