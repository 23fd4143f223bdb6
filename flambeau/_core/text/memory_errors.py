"""Memory that runs out: the error, and what it says about who holds the memory.

Nothing is noted beforehand. When an allocation has failed, the tensors and graphs that are alive are found through
Python's garbage collector.
"""

from __future__ import annotations

import math
import re
import sys
from types import FrameType
from typing import Any

import numpy as np

from ..names.error_classes import OutOfMemoryError
from ..node import Node, SavedTensor
from ..process.caller import GENERATED, PACKAGE, describe_place
from ..process.collector import living_objects
from ..storage import owner_of
from ..tensor import Tensor

_SHOWN = 5


def out_of_memory(error: BaseException | None = None, wanted: int | None = None) -> OutOfMemoryError:
    """The error to raise: how much was asked for, and the largest tensors that are alive."""
    if wanted is None:
        wanted = _wanted(error)
    asked = "" if wanted is None else f": you tried to allocate {wanted} bytes ({_size(wanted)})"
    try:
        held = _report()
    except MemoryError:  # not even enough to look around
        held = ""
    return OutOfMemoryError(f"DefaultCPUAllocator: can't allocate memory{asked}: not enough memory.{held}")


def out_of_device_memory(
    wanted: int, free: int, total: int, allocated: int, reserved: int, ordinal: int, array_class: type,
    limit: int | None = None,
) -> OutOfMemoryError:  # fmt: skip
    """The error for the GPU of an ordinal, whose arrays are of `array_class`; `limit`: what the program allowed."""
    allowed = "" if limit is None else f" {_size(limit)} allowed (torch.cuda.set_per_process_memory_fraction);"
    return OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {_size(wanted)}. GPU {ordinal} has a total capacity of {_size(total)} "
        f"of which {_size(free)} is free.{allowed} Tensors hold {_size(allocated)}, and {_size(reserved - allocated)} "
        f"is reserved but unallocated (torch.cuda.empty_cache()).{_live_tensors(array_class)}"
    )


def _wanted(error: BaseException | None) -> int | None:
    """The bytes that an array would have needed."""
    shape, array_type = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is not None and array_type is not None:
        return int(math.prod(shape) * array_type.itemsize)
    found = re.search(r"(\d+) bytes", str(error))
    return None if found is None else int(found[1])


def _size(count: float) -> str:
    units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.4g} {units[0]}"


def _live_tensors(array_class: type) -> str:
    """The largest pieces of memory that arrays of a class hold."""
    pieces: dict[int, tuple[int, Any, str]] = {}
    names = _names_in_frames()
    for found in living_objects():
        kind = type(found)  # not isinstance: foreign objects may answer that with code of their own
        if issubclass(kind, Tensor):
            try:
                array = found._array
            except AttributeError:  # not finished
                continue
            if type(array) is array_class and not found._kind.dataless:
                _note(pieces, array, _maker(found, names), found._kind.dtype)
        elif issubclass(kind, Node):
            for name in getattr(found, "saved_names", ()):
                saved = getattr(found, name, None)
                if type(saved) is SavedTensor and type(saved.tensor) is tuple:
                    array, saved_kind, _ = saved.tensor
                    if type(array) is array_class:
                        where = f", saved for {found.name()} at {describe_place(found.place)}"
                        _note(pieces, array, where, saved_kind.dtype)
    largest = sorted(pieces.values(), key=lambda each: -each[0])
    lines = [
        f"\n    {_size(count)}: {dtype}, shape {list(array.shape)}{where}"
        for count, (array, dtype), where in largest[:_SHOWN]
    ]
    total = sum(each[0] for each in largest)
    return f"\n  {len(largest)} live tensors hold {_size(total)}; the largest:{''.join(lines)}" if lines else ""


def _report() -> str:
    """The largest pieces of memory in use, and what the pool keeps."""
    text = _live_tensors(np.ndarray)
    pool = sys.modules.get("flambeau._backends.cpu.memory.allocator")
    allocator = None if pool is None else pool.allocator()
    if allocator is not None:
        idle = allocator["reserved"] - allocator["allocated"]
        text += f"\n  The pool of the CPU keeps {_size(idle)} that no tensor occupies (torch.cpu.empty_cache())."
    return text


def _note(pieces: dict[int, tuple[int, Any, str]], array: Any, where: str, dtype: Any) -> None:
    """Remember the memory under an array once, by whoever says most about it."""
    owner: Any = owner_of(array)
    key = id(owner)
    count = int(getattr(owner, "nbytes", array.nbytes))
    if key not in pieces or (where and not pieces[key][2]):
        pieces[key] = count, (array, dtype), where


def _maker(tensor: Tensor, names: dict[int, str]) -> str:
    """The line that made a tensor, as far as it is known, or the variable that holds it."""
    node = tensor._grad_fn
    if node is not None and node.place is not None:
        return f", made by {node.name()} at {describe_place(node.place)}"
    if tensor._counter is not None and tensor._counter[1] is not None:
        return f", last changed at {describe_place(tensor._counter[1])}"
    return names.get(id(tensor), "")


def _names_in_frames() -> dict[int, str]:
    """The variables of the running functions that hold tensors, with the places of these functions."""
    names: dict[int, str] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((PACKAGE, GENERATED)):
            place = describe_place((frame.f_code, frame.f_lasti))
            for name, value in frame.f_locals.items():
                if isinstance(value, Tensor):
                    names.setdefault(id(value), f", held as {name!r} by {place}")
        frame = frame.f_back
    return names
