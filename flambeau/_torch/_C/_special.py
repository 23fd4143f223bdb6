"""The functions of special functions under their compiled module's names: `special_` before each."""

from __future__ import annotations

from typing import Any

from flambeau import special


def __getattr__(name: str) -> Any:
    found = getattr(special, name.removeprefix("special_"), None) if name.startswith("special_") else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
