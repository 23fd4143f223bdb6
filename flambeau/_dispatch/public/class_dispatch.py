"""`__torch_dispatch__` of classes: tensors that run the operators they are given to, as wrappers of other tensors do.

An interpreter at the bottom of the stack looks for them among the arguments of every op. It is there as long as such
tensors are alive, so that programs without them are as quick as ever.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._core.arrays.narrow import strided
from ..._core.dtype import dtype as DType
from ..._core.dtype import get_default_dtype
from ..._core.kind import kind_of
from ..._core.modes import THREAD, set_base_interpreter
from ..._core.process.defaults import device_for
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..interpreter import Interpreter
from ..op import Op
from .overloads import as_results, operator_call, overload_named
from .overrides import retype

_ALIVE: dict[int, weakref.ref[Tensor]] = {}
"""The tensors that dispatch themselves, by identity."""


def watch(tensor: Tensor) -> None:
    """Let the class of a tensor, which has a `__torch_dispatch__`, run the operators that the tensor is given to."""
    key = id(tensor)

    def forget(_: Any) -> None:
        _ALIVE.pop(key, None)
        if not _ALIVE:
            set_base_interpreter(None)

    _ALIVE[key] = weakref.ref(tensor, forget)
    set_base_interpreter(_CLASSES)


class _Classes(Interpreter):
    """Asks the classes of the arguments, subclasses first, then from left to right."""

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        tensors = list(_dispatching(args))
        if not tensors:
            return op(*args)
        func, positional, kwargs = operator_call(op, args)
        types = dispatching_types(args)
        modes = THREAD.modes
        try:
            modes.interpreters = (self,)  # what the class calls may be given such tensors again
            modes.refresh()
            for tensor in _subclasses_first(tensors):
                result = tensor.__torch_dispatch__(func, types, positional, kwargs)
                if result is not NotImplemented:
                    return as_results(result)
        finally:
            modes.interpreters = ()
            modes.refresh()
        raise TypeError(
            f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented: "
            f"{[each.__name__ for each in types]}"
        )


_CLASSES = _Classes()


def _dispatching(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if type(value) in (list, tuple):
            yield from _dispatching(value)
        elif isinstance(value, Tensor) and type(value) is not Tensor and hasattr(type(value), "__torch_dispatch__"):
            yield value


def dispatching_types(values: Iterable[Any]) -> tuple[type, ...]:
    """The classes among the arguments that dispatch themselves, each once."""
    return tuple(dict.fromkeys(type(each) for each in _dispatching(values)))


def _subclasses_first(tensors: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in tensors:
        if not any(type(value) is type(other) for other in found):
            position = next((i for i, other in enumerate(found) if issubclass(type(value), type(other))), len(found))
            found.insert(position, value)
    return found


def created_by_class(name: str, input: Any, args: tuple[Any, ...], dtype: Any, device: Any) -> Tensor | None:
    """What the class of `input` makes of an operator that takes only its properties; None if it leaves that to us."""
    if type(input) in PLAIN_TYPES or not hasattr(type(input), "__torch_dispatch__"):
        return None
    options = {key: value for key, value in (("dtype", dtype), ("device", device)) if value is not None}
    func = overload_named("aten", name, "default")
    created: Tensor | None = input.__torch_dispatch__(func, (type(input),), (input, *args), options)
    return created


def make_wrapper_subclass(
    cls: type, size: Sequence[int], strides: Sequence[int] | None = None, storage_offset: int | None = None,
    memory_format: Any = None, dtype: DType | None = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, **dispatch_options: Any,
) -> Any:  # fmt: skip
    """A tensor of the class `cls` that has a shape, a dtype and a device, but no data: its class runs its operators."""
    if not hasattr(cls, "__torch_dispatch__"):
        raise TypeError(
            f"{cls.__name__} must define __torch_dispatch__ to be a wrapper: its tensors have no data of their own"
        )
    kind = kind_of(dtype or get_default_dtype(), device_for(device))
    shape, array_type = tuple(size), kind.dtype.numpy
    # Memory that nobody touches: the system gives none for it, and a read by mistake finds zeros.
    if strides is None:
        array = np.zeros(shape, array_type)
    else:
        needed = 1 + sum((length - 1) * step for length, step in zip(shape, strides, strict=True) if length)
        array = strided(np.zeros(needed, array_type), shape, tuple([each * array_type.itemsize for each in strides]))
    wrapper = retype(Tensor._from_parts((array, kind, [0, None])), cls)
    wrapper._get_extra().has_no_memory = True
    if requires_grad:
        wrapper._requires_grad = True
    return wrapper
