"""The functions of tensors under their compiled module's name."""

from __future__ import annotations

from typing import Any

import flambeau


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(flambeau, name)
