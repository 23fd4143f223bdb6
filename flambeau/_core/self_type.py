"""`Self` for annotations, from Python 3.10 on, that can also be looked up while a program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

__all__ = ["Self"]

if TYPE_CHECKING:
    from typing_extensions import Self
else:  # only type checkers need the package of extensions
    Self = TypeVar("Self")
