"""Which functions and classes promise to stay as they are, under the names of `torch.fx._compatibility`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Marked = TypeVar("Marked")

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[Marked], Marked]:
    """Note whether what is decorated promises to stay as it is."""

    def mark(each: Marked) -> Marked:
        _MARKED_WITH_COMPATIBILITY.setdefault(each)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(each)
        return each

    return mark
