"""Hooks: ordered, removable callbacks of tensors and nodes."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import Any

_next_id = count().__next__


class RemovableHandle:
    """Takes a hook off again: `handle.remove()`, or leave the `with` block."""

    def __init__(self, hooks: OrderedDict[int, Any], hook: Any, *, prepend: bool = False, extra: Any = ()) -> None:
        self.id = _next_id()
        self.hooks_ref: Any = weakref.ref(hooks)
        self.extra_refs = tuple(weakref.ref(each) for each in extra)
        hooks[self.id] = hook
        if prepend:
            hooks.move_to_end(self.id, last=False)

    def remove(self) -> None:
        """Take the hook off; a second call does nothing."""
        for reference in (self.hooks_ref, *self.extra_refs):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.hooks_ref(), self.id)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id = state
        self.hooks_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_refs = ()


class HookDict(OrderedDict[int, Callable[..., Any]]):
    """An ordered dictionary of hooks; a class of its own so that weak references can point at it."""


class NodeHooks:
    """All hooks of one node.

    `tensor` holds, for each output number, the hooks of the tensor that this output is; `retain` what stores the
    gradient in that tensor's `.grad`.
    """

    __slots__ = ("post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.pre = HookDict()
        self.post = HookDict()
        self.tensor: dict[int, HookDict] = {}
        self.retain: dict[int, Any] = {}
