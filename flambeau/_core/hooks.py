"""Hooks: ordered, removable callbacks of tensors and nodes."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class RemovableHandle:
    """Takes a hook off again: `handle.remove()`, or leave the `with` block."""

    next_id: int = 0

    def __init__(self, hooks_dict: Any, hook: Any = None, *, prepend: bool = False, extra_dict: Any = None) -> None:
        """Take an id that is free in `hooks_dict`, and put `hook` there.

        `extra_dict` is one further dictionary, or a list of them, from which the id goes too when the hook does.
        """
        self.id = RemovableHandle.next_id
        while self.id in hooks_dict:  # an unpickled module brings hooks whose ids were given elsewhere
            self.id += 1
        RemovableHandle.next_id = self.id + 1
        self.hooks_ref: Any = weakref.ref(hooks_dict)
        extras = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.extra_refs = tuple([weakref.ref(each) for each in extras])
        if hook is not None:
            hooks_dict[self.id] = hook
        if prepend:
            hooks_dict.move_to_end(self.id, last=False)

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
        return self.hooks_ref(), self.id, tuple([reference() for reference in self.extra_refs])

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, *extras = state
        # A reference to a dictionary that nobody else keeps is dead at once, as it should be.
        self.hooks_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_refs = tuple([weakref.ref(OrderedDict() if each is None else each) for each in (extras or [()])[0]])


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
