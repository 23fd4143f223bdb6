"""What a process is doing, in 32 bits: each message says it, so that a peer that does something else notices."""

from __future__ import annotations

from typing import Any

import numpy as np

KINDS = (
    "send", "all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all",
    "barrier", "monitored_barrier",
)  # fmt: skip
_TYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
_TYPE_NUMBERS = {name: number for number, name in enumerate(_TYPES)}
_OTHER = 255
_SHARED = 128
"""In the number of a kind: the message says where the elements are, in memory that the processes share."""
_FREE = {"all_to_all", "barrier", "monitored_barrier"}
"""What has no length in common."""


def signature(kind: str, array_type: np.dtype[Any] | None = None, reduction: int = 0, root: int = 0) -> int:
    """The bits of a call."""
    element = _OTHER if array_type is None else _TYPE_NUMBERS.get(array_type.name, _OTHER)
    return KINDS.index(kind) | element << 8 | (reduction & 15) << 16 | (root & 0xFFF) << 20


def through_shared_memory(bits: int) -> int:
    """The bits of messages that say only where the elements are."""
    return bits | _SHARED


def describe(bits: int, length: int) -> str:
    """A call in words."""
    kind_number, element = bits & 127, bits >> 8 & 255
    kind = KINDS[kind_number] if kind_number < len(KINDS) else "something unknown"
    if element >= len(_TYPES):
        return kind if kind in _FREE else f"{kind} of {length} bytes"
    name = _TYPES[element]
    size = 2 if name == "bfloat16" else np.dtype(name).itemsize
    root = f" with root {bits >> 20}" if kind in ("reduce", "broadcast", "gather", "scatter") else ""
    count = "many" if bits & _SHARED else length // size
    return f"{kind}{root} (messages of {count} {name})"
