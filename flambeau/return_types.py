"""The classes of named results, as in `torch.return_types.max`."""

from __future__ import annotations

from typing import Any

from ._dispatch.registry import load_all
from ._dispatch.return_types import RETURN_TYPES


def __getattr__(name: str) -> Any:
    load_all()  # the families define them
    if name not in RETURN_TYPES:
        raise AttributeError(f"module 'flambeau.return_types' has no attribute {name!r}")
    return RETURN_TYPES[name]
