"""Scans with a function of one's own, under the names of `torch._higher_order_ops.associative_scan`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__).absent("scans with functions of one's own are not built yet", functions="associative_scan").parts()
)
