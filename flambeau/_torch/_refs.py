"""The ops under the names of `torch._refs`, where PyTorch has them written in Python: here all of them are."""

from __future__ import annotations

from typing import Any

import flambeau


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(flambeau, name)
