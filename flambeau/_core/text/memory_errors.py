"""Memory that runs out: the error, and what it says about who holds the memory.

Nothing is noted beforehand. When an allocation has failed, the tensors and graphs that are alive are found through
Python's garbage collector.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..names.error_classes import OutOfMemoryError
from ..node import Node, SavedTensor, recorded_at
from ..process.caller import describe_place
from ..process.collector import living_objects
from ..storage import owner_of
from ..tensor import Tensor
from .memory_owners import (
    GRADIENTS,
    OTHERS,
    PARAMETERS,
    SAVED,
    STATES,
    Modules,
    Owner,
    owners,
    told_apart,
    user_variables,
)

_SHOWN = 5


def out_of_memory(error: BaseException | None = None, wanted: int | None = None) -> OutOfMemoryError:
    """The error to raise: how much was asked for, the largest tensors that are alive, and what would help."""
    if wanted is None:
        wanted = _wanted(error)
    asked = "" if wanted is None else f": you tried to allocate {wanted} bytes ({_size(wanted)})"
    try:
        held = _report()
    except Exception:  # not even enough to look around, or a program is being changed by another thread meanwhile
        held = ""
    return OutOfMemoryError(f"DefaultCPUAllocator: can't allocate memory{asked}: not enough memory.{held}")


@contextmanager
def memory_reported() -> Iterator[None]:
    """A context which the error leaves that users expect, where memory runs out in it."""
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(error) from None


class DeviceState(NamedTuple):
    """The memory of a GPU when a request failed; `limit`: what the process may have of it, None if all."""

    ordinal: int
    free: int
    total: int
    allocated: int
    reserved: int
    limit: int | None


def out_of_device_memory(wanted: int, state: DeviceState, array_class: type) -> OutOfMemoryError:
    """The error for a GPU whose arrays are of `array_class`."""
    idle = state.reserved - state.allocated
    limit = "" if state.limit is None else (
        f" {_size(state.limit)} allowed (torch.cuda.set_per_process_memory_fraction);"
    )  # fmt: skip
    text = (
        f"CUDA out of memory. Tried to allocate {_size(wanted)}. GPU {state.ordinal} has a total capacity of "
        f"{_size(state.total)} of which {_size(state.free)} is free.{limit} Tensors hold {_size(state.allocated)}, and "
        f"{_size(idle)} is reserved but unallocated (torch.cuda.empty_cache())."
    )
    helps = []
    if state.limit is not None and wanted <= state.free:
        helps.append("let the process have more of the device")
    if wanted <= idle:
        helps.append(
            "no free piece of the reserved memory is large enough: set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 "
            "to avoid fragmentation"
        )
    try:
        held, uses = _live_tensors(array_class, state.ordinal)
    except Exception:  # whatever state the program is in, the request itself is reported
        held, uses = "", {}
    return OutOfMemoryError(text + held + _help(uses, helps))


def _help(uses: dict[str, int], helps: list[str]) -> str:
    """What would help, by what the memory is used for."""
    total = sum(uses.values())
    if total and uses.get(SAVED, 0) * 4 >= total:
        helps.append(
            "much is saved for backward: a smaller batch, torch.utils.checkpoint.checkpoint or torch.autocast need "
            "less, and evaluation under torch.no_grad() needs none"
        )
    if total and uses.get(STATES, 0) * 4 >= total:
        helps.append("much is state of an optimizer: torch.optim.SGD or Adafactor keep less than Adam")
    helps.append("delete tensors that are not needed, or ask for less at a time")
    return f"\n  What would help: {'; '.join(helps)}."


def _wanted(error: BaseException | None) -> int | None:
    """The bytes that an array would have needed."""
    shape, array_type = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is not None and array_type is not None:
        return int(math.prod(shape) * array_type.itemsize)
    found = re.search(r"(\d+) bytes", str(error))
    return None if found is None or found[1] == "0" else int(found[1])


def _size(count: float) -> str:
    units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.4g} {units[0]}"


def _live_tensors(array_class: type, ordinal: int | None = None) -> tuple[str, dict[str, int]]:
    """The largest pieces of memory that arrays of a class hold, on one GPU, and the bytes by what they are for."""
    pieces: dict[int, _Piece] = {}
    objects = told_apart(living_objects(), Tensor, Node)
    modules = Modules(objects)
    owned = owners(objects, modules)
    variables = _variables()
    for found in objects:
        kind = type(found)
        if issubclass(kind, Tensor):
            try:
                array = found._array
            except AttributeError:  # not finished
                continue
            if type(array) is array_class and not found._kind.dataless and _is_on(array, ordinal):
                owner = owned.get(id(found))
                where = owner.text if owner is not None else ""
                _note(pieces, array, where + _maker(found, variables, modules), found._kind.dtype, owner)
        elif issubclass(kind, Node):
            for name in getattr(found, "saved_names", ()):
                saved = getattr(found, name, None)
                if type(saved) is SavedTensor and type(saved.tensor) is tuple:
                    array, saved_kind, _ = saved.tensor
                    if type(array) is array_class and _is_on(array, ordinal):
                        where = f", saved for {found.name()} at {_place(recorded_at(found), modules)}"
                        _note(pieces, array, where, saved_kind.dtype, Owner(SAVED, where))
    del objects
    largest = sorted(pieces.values(), key=lambda each: -each.nbytes)
    uses: dict[str, int] = {}
    for each in largest:
        uses[each.use] = uses.get(each.use, 0) + each.nbytes
    lines = [
        f"\n    {_size(each.nbytes)}: {each.dtype}, shape {list(each.array.shape)}{each.where}"
        for each in largest[:_SHOWN]
    ]
    if not lines:
        return "", uses
    shares = ", ".join([f"{use} {_size(count)}" for use, count in sorted(uses.items(), key=lambda each: -each[1])])
    total = sum(uses.values())
    return f"\n  {len(largest)} live tensors hold {_size(total)} ({shares}); the largest:{''.join(lines)}", uses


def _is_on(array: Any, ordinal: int | None) -> bool:
    return ordinal is None or getattr(getattr(array, "memory", None), "ordinal", ordinal) == ordinal


def _place(place: Any, modules: Modules) -> str:
    return describe_place(place) + ("" if place is None else modules.of_line(place[0]))


def _report() -> str:
    """The largest pieces of memory in use, what the pool keeps, and what would help."""
    text, uses = _live_tensors(np.ndarray)
    pool = sys.modules.get("flambeau._backends.cpu.memory.allocator")
    allocator = None if pool is None else pool.allocator()
    helps: list[str] = []
    if allocator is not None:
        idle = allocator["reserved"] - allocator["allocated"]
        text += f"\n  The pool of the CPU keeps {_size(idle)} that no tensor occupies (torch.cpu.empty_cache())."
    return text + _help(uses, helps)


class _Piece(NamedTuple):
    """A piece of memory, and what is known of it."""

    nbytes: int
    array: Any
    dtype: Any
    where: str
    use: str


def _note(pieces: dict[int, _Piece], array: Any, where: str, dtype: Any, owner: Owner | None) -> None:
    """Remember the memory under an array once, by whoever says most about it: a module or an optimizer first."""
    memory: Any = owner_of(array)
    before = pieces.get(id(memory))
    use = OTHERS if owner is None else owner.use
    count = int(getattr(memory, "nbytes", array.nbytes))
    if before is None or _RANKS[use] < _RANKS[before.use] or (where and not before.where):
        if before is not None and _RANKS[before.use] < _RANKS[use]:
            use = before.use
        pieces[id(memory)] = _Piece(count, array, dtype, where, use)


_RANKS = {PARAMETERS: 0, GRADIENTS: 1, STATES: 2, SAVED: 3, OTHERS: 4}


def _maker(tensor: Tensor, variables: dict[int, str], modules: Modules) -> str:
    """The line that made a tensor, as far as it is known, or the variable that holds it."""
    node = tensor._grad_fn
    if node is not None and node.code is not None:
        return f", made by {node.name()} at {_place(recorded_at(node), modules)}"
    if tensor._counter is not None and tensor._counter[1] is not None:
        return f", last changed at {describe_place(tensor._counter[1])}"
    return variables.get(id(tensor), "")


def _variables() -> dict[int, str]:
    """The variables of the running functions that hold tensors, with the places of these functions."""
    found: dict[int, str] = {}
    for name, value, frame in user_variables():
        if isinstance(value, Tensor):
            place = describe_place((frame.f_code, frame.f_lasti))
            found.setdefault(id(value), f", held as {name!r} by {place}")
    return found
