"""Whether something came out of an archive."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .._mangling import is_mangled


def is_from_package(obj: Any) -> bool:
    """Whether a module, or the class of an object, came out of an archive.

    Args:
        obj: a module or an object.

    Returns:
        bool: whether it did.

    Example:
        >>> torch.package.is_from_package(torch)
        False
    """
    return is_mangled(obj.__name__ if isinstance(obj, ModuleType) else type(obj).__module__)
