"""Casts of weights that programs without a backward pass keep from call to call, as under autocast.

A cast is made again when the memory of the weight has changed, by whichever tensor (`_core/version.py`). Where changes
may go unseen, because somebody has the address of that memory, it is made in every call. All programs share the casts:
they take memory as long as a program uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from ..._core.backend import LARGE
from ..._core.tensor import Tensor
from ..._core.version import memory_version
from ..._ops.tensor.convert import _to_copy
from ..program.items import Call, Item, Outside, Program, Value
from ..program.lower import lowered
from .memory import Memory


class KeptCast:
    """The cast of one weight."""

    __slots__ = ("__weakref__", "_latest", "_run", "tensor")

    def __init__(self, tensor: Tensor, run: Callable[[Any], Any]) -> None:
        self.tensor, self._run = tensor, run
        self._latest: tuple[Any, Any, Any] = None, None, None
        """The weight's array, the version of its memory, and the cast of that: one object, for threads."""

    def __call__(self, tensor: Tensor) -> Any:
        array, version = tensor._array, memory_version(tensor._counter)
        known, of_version, kept = self._latest
        if array is known and version == of_version and tensor is self.tensor:
            return kept
        made = self._run(array)
        if tensor is self.tensor and version is not None and array.base is None:  # a window's memory is others', too
            self._latest = array, version, made
        return made


_CASTS: WeakValueDictionary[tuple[Any, ...], KeptCast] = WeakValueDictionary()


def kept_cast(call: Call, tensor: Tensor) -> KeptCast:
    """What gives the cast of a weight that a call makes."""
    key = id(tensor), *call.args[1:]
    found = _CASTS.get(key)
    if found is None or found.tensor is not tensor:
        run, further = lowered(call), call.args[1:]
        found = _CASTS[key] = KeptCast(tensor, lambda array: run(array, *further))
    return found


def weights_in(program: Program) -> dict[int, Tensor]:
    """The weights that a program is given whose casts are worth keeping, by the numbers of their values."""
    return {
        number: tensor
        for number, tensor in program.inputs.items()
        if type(tensor) is not Tensor and tensor._kind.is_cpu and tensor._array.size >= LARGE
    }


def casts_in(items: Sequence[Item], wanted: Sequence[Value], weights: Mapping[int, Tensor]) -> dict[int, Tensor]:
    """The items that cast weights which nothing in the program changes, by position; and the weights."""
    casts = [(at, each) for at, each in enumerate(items) if type(each) is Call and each.op is _to_copy]
    found = {at: weights[number] for at, each in casts if (number := each.args[0].number) in weights}
    if not found or any(isinstance(each, Outside) for each in items):
        return {}
    memory = Memory(items, wanted)
    return {at: tensor for at, tensor in found.items() if _stays(items[at], at, memory)}


def _stays(call: Any, at: int, memory: Memory) -> bool:
    source, made = call.args[0].number, call.results.number
    if memory.changes_after(source, -1) or memory.changes_after(made, at):
        return False
    return not any(map(memory.is_handed_out, memory.beside(made)))
