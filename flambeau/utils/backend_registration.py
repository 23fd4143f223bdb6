"""Devices of one's own, under the names of `torch.utils.backend_registration`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "devices of other packages cannot be added yet",
        functions="generate_methods_for_privateuse1_backend rename_privateuse1_backend",
    )
    .parts()
)
