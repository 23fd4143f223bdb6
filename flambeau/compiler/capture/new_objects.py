"""Objects that a call makes and returns: which these are, what they hold, and how a program makes them anew.

A program does not run constructors. It makes an object of the class as unpickling does, without `__init__`, and fills
in the attributes and items that the recorded call left in it.
"""

from __future__ import annotations

import enum
import functools
import gc
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from ..._dispatch.interpreter import RUN_OUTSIDE
from ..._dispatch.public.namespaces import is_unbound
from .value_kinds import OPAQUE, SINGLETONS, VALUES

_HEAP_TYPE = 1 << 9
_OF_COLLECTIONS = (OrderedDict, defaultdict, deque)
"""Built-in classes which some versions of Python make as if a program had defined them."""
_BASES = (object, dict, OrderedDict, list, tuple)
"""Built-in classes of which a subclass can be made anew: attributes and items are all that its objects have."""

_NAMED = (type, ModuleType, FunctionType, BuiltinFunctionType, enum.Enum)
"""What a call finds under a name and passes on: it is the same object in every call."""


class Made:
    """Tells, of the objects of a result, which ones the call has made.

    While Python's collector waits, everything that is new is in its youngest generation.
    """

    def __init__(self) -> None:
        # Held: nothing new may get the address of what was there. Tensors are known by their values, and not held: a
        # call that forgets gradients before it computes new ones must not have both in memory. Their types are asked:
        # `isinstance` asks a proxy for its owner's class, which may be gone.
        found = gc.get_objects(generation=0)
        tensors = {kind for kind in set(map(type, found)) if issubclass(kind, Tensor)}
        self._before = [each for each in found if type(each) not in tensors] if tensors else found
        self._new: set[int] = set()
        self.parts: set[int] = set()
        """The identities of the objects and containers of the result that the call has made."""

    def end(self, result: Any) -> None:
        """Find what the call has made, which returns `result`."""
        before = set(map(id, self._before))
        self._before.clear()
        self._new = {*map(id, gc.get_objects(generation=0))} - before
        waiting = [result]
        while waiting:
            value = waiting.pop()
            is_known = id(value) in self.parts or not (is_container(value) or is_remade(type(value)))
            if not is_known and (id(value) in self._new or not gc.is_tracked(value)):
                self.parts.add(id(value))
                waiting += parts_of(value)

    def is_constant(self, value: Any) -> bool:
        """Whether a program may give a value back as it is: nothing can change it, or it stood under a name before."""
        return is_immutable(value) or ((isinstance(value, _NAMED) or is_unbound(value)) and id(value) not in self._new)

    def tensors(self, result: Any) -> list[Tensor]:
        """The tensors of the result; into what the call has not made itself it does not look."""
        found: dict[int, Tensor] = {}
        done: set[int] = set()
        waiting = [result]
        while waiting:
            value = waiting.pop()
            if isinstance(value, Tensor):
                found.setdefault(id(value), value)
            elif id(value) in self.parts and id(value) not in done:
                done.add(id(value))
                waiting += parts_of(value)[::-1]
        return list(found.values())


def is_container(value: Any) -> bool:
    """Whether a value is a container of one of Python's own classes, or a tuple with names."""
    return type(value) in (list, dict, set, frozenset, OrderedDict, defaultdict, deque) or isinstance(value, tuple)


def is_immutable(value: Any) -> bool:
    """Whether nothing can change a value, and it holds nothing that something could change."""
    kind = type(value)
    return kind in SINGLETONS or kind in VALUES or isinstance(value, np.generic)


def base_of(kind: type) -> type:
    """The built-in class that objects of a class are made by."""
    return next(each for each in kind.__mro__ if each in _OF_COLLECTIONS or not each.__flags__ & _HEAP_TYPE)


def is_remade(kind: type) -> bool:
    """Whether objects of a class consist of attributes and items alone."""
    base = base_of(kind)
    return base is not kind and base in _BASES and not issubclass(kind, (Tensor, enum.Enum))


def is_known_by_parts(value: Any) -> bool:
    """Whether an object is nothing but what it holds: of a class that is not this package's, and can be made anew."""
    kind = type(value)
    if not is_remade(kind) or isinstance(value, (*OPAQUE, *RUN_OUTSIDE, functools.partial, type, ModuleType)):
        return False
    roots = {each.__module__.partition(".")[0] for each in kind.__mro__}
    return roots.isdisjoint((__name__.partition(".")[0], "torch"))


def items_of(value: Any) -> Any:
    """The items of an object of a class of containers, as a container of the built-in class."""
    base: Any = base_of(type(value))
    if base is OrderedDict:
        return OrderedDict(OrderedDict.items(value))
    return base(dict.items(value) if issubclass(base, dict) else base.__iter__(value))


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The attributes that an object has in its dictionary; None: it has no such one."""
    try:
        found: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found


def slots_of(value: Any) -> Iterator[tuple[MemberDescriptorType, Any]]:
    """The slots of an object that are filled, with what is in them."""
    for each in type(value).__mro__:
        for slot in each.__dict__.values():
            if isinstance(slot, MemberDescriptorType) and each.__flags__ & _HEAP_TYPE:
                try:
                    yield slot, slot.__get__(value)
                except AttributeError:
                    continue


def parts_of(value: Any) -> list[Any]:
    """What a container or an object holds."""
    held: list[Any] = []
    if isinstance(value, dict):
        held += [*dict.keys(value), *dict.values(value)]
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        base: Any = base_of(type(value))
        held += base.__iter__(value)
    if type(value).__flags__ & _HEAP_TYPE:
        held += [*(attributes_of(value) or {}).values(), *[content for _, content in slots_of(value)]]
    return held


def fill_attributes(value: Any, attributes: dict[str, Any]) -> None:
    """Give a new object its attributes, past what its class does when one is set."""
    object.__getattribute__(value, "__dict__").update(attributes)


def filler(kind: type) -> Callable[[Any, Any], None]:
    """What gives a new object of a class of dictionaries or lists its items, past the methods of the class."""
    base = base_of(kind)
    if base is OrderedDict:
        return _fill_in_order
    return dict.update if base is dict else list.extend


def _fill_in_order(value: Any, items: dict[Any, Any]) -> None:
    for key, each in items.items():
        OrderedDict.__setitem__(value, key, each)
