"""Whether something came out of an archive."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .._mangling import is_mangled


def is_from_package(obj: Any) -> bool:
    """Whether a module, or the class of an object, came out of an archive."""
    return is_mangled(obj.__name__ if isinstance(obj, ModuleType) else type(obj).__module__)
