"""The operators, one file for each family.

A family is imported when one of its functions or methods is first used: `catalogue.py`, which `tools/stubs.py`
generates, says which family has which name. `registry.load_all()` imports them all.
"""

from __future__ import annotations

import importlib

from .._core.names.absent import Table
from .._core.process.collector import collector_paused

__getattr__, __dir__ = (
    Table(__name__).elsewhere("HigherOrderOperator OpOverload OpOverloadPacket ops", "_operators").parts()
)
"""Programs know classes of operators under the names of `torch._ops`."""


def load(family: str) -> None:
    """Import one file of ops."""
    with collector_paused():
        importlib.import_module(f"{__name__}.{family}")
