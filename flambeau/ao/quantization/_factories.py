"""`with_args`: classes with some of their arguments already given."""

from __future__ import annotations

import functools
from typing import Any


class _PartialWrapper:
    """Makes instances of a class with given arguments, and with others that are made anew for each instance."""

    def __init__(self, p: Any) -> None:
        self.p = p
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        made = {name: make() for name, make in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **made)

    def __repr__(self) -> str:
        return f"{self.p!r}{self.callable_args!r}"

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """A factory with further arguments given."""
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Any) -> _PartialWrapper:
        """A factory with further arguments that are made for each instance."""
        made = _PartialWrapper(self.p)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(cls_or_self: Any, /, **kwargs: Any) -> _PartialWrapper:
    """What makes instances with these arguments."""
    return _PartialWrapper(functools.partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self: Any, /, **kwargs: Any) -> _PartialWrapper:
    """What makes instances with arguments that these functions give each time."""
    return _PartialWrapper(functools.partial(cls_or_self)).with_callable_args(**kwargs)
