"""Python's cyclic collector, and where it had better wait."""

from __future__ import annotations

import gc
from typing import Any

from .interrupts import Restoring


class collector_paused(Restoring):
    """Let no cycles be looked for meanwhile, as while modules are imported.

    Those make thousands of objects, all of which stay: the collector looks at them time and again, finds nothing, and
    comes to look at everything there is in the midst of a program's first step.
    """

    __slots__ = ("_was_enabled",)

    def __init__(self) -> None:
        self._was_enabled = gc.isenabled()

    def change(self) -> None:
        gc.disable()

    def restore(self) -> None:
        if self._was_enabled:
            gc.enable()


def living_objects() -> list[Any]:
    """Everything that the collector knows of.

    Objects that were frozen (`gc.freeze`) it does not name: they are let free, which costs it time and changes nothing
    else. To freeze them again would freeze what is garbage later, too.
    """
    gc.unfreeze()
    return gc.get_objects()
