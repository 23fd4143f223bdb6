"""The functions of layers under their compiled module's name."""

from __future__ import annotations

from typing import Any

import flambeau


def __getattr__(name: str) -> Any:
    for space in (flambeau.nn.functional, flambeau):
        found = getattr(space, name, None)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
