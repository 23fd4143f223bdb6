"""The functions of linear algebra under their compiled module's names: `linalg_` before each."""

from __future__ import annotations

from typing import Any

from flambeau import linalg


def __getattr__(name: str) -> Any:
    found = getattr(linalg, name.removeprefix("linalg_"), None) if name.startswith("linalg_") else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
