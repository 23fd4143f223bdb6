"""A setting of deterministic algorithms: `fill_uninitialized_memory`, whether memory of `empty` has known content."""

from __future__ import annotations

import sys
import types

from .._core.process.determinism import DETERMINISM


class _Deterministic(types.ModuleType):
    """This module, with a property."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether memory that nobody wrote is filled while deterministic algorithms are asked for."""
        return DETERMINISM.fill_wanted

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        DETERMINISM.set(DETERMINISM.asked, DETERMINISM.warn_only, mode)


sys.modules[__name__].__class__ = _Deterministic
