"""The safetensors format: eight bytes of length, a JSON header, and the tensors one after another.

Everything in the header is checked before any tensor is made. The data must be covered by the tensors exactly, without
gaps and overlaps, so that a file has one reading only.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._core.arrays.byte_order import swap_bytes
from .._core.dtype import NAMES, dtype

LARGEST_HEADER = 100_000_000
METADATA = "__metadata__"
_ALIGNMENT = 8
_DTYPES: dict[str, dtype] = {
    tag: NAMES[name]
    for tag, name in {
        "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
        "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
        "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E4M3FNUZ": "float8_e4m3fnuz",
        "F8_E5M2FNUZ": "float8_e5m2fnuz", "C64": "complex64",
    }.items()
}  # fmt: skip
_TAGS = {element: tag for tag, element in _DTYPES.items()}


class SafetensorError(Exception):
    """A file is not what the safetensors format allows."""


class Entry:
    """What the header says of one tensor; begin and end count from the start of the data."""

    __slots__ = ("begin", "dtype", "end", "shape")

    def __init__(self, element: dtype, shape: tuple[int, ...], begin: int, end: int) -> None:
        self.dtype = element
        self.shape = shape
        self.begin = begin
        self.end = end


class Header:
    """The parsed and checked header of a file."""

    def __init__(self, entries: dict[str, Entry], metadata: dict[str, str] | None, start: int) -> None:
        self.entries = entries
        self.metadata = metadata
        self.start = start


def _refuse(reason: str) -> NoReturn:
    raise SafetensorError(f"Error while deserializing header: {reason}")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        _refuse(f"invalid JSON in header: duplicate key {max(names, key=names.count)[:100]!r}")
    return found


def _no_constants(text: str) -> NoReturn:
    _refuse(f"invalid JSON in header: {text}")


def parse_header(read: Callable[[int, int], bytes], size: int) -> Header:
    """The header of a file of `size` bytes, of which `read(position, count)` gives parts."""
    if size < 8:
        _refuse("header too small: a file has at least eight bytes")
    (length,) = struct.unpack("<Q", read(0, 8))
    if length > LARGEST_HEADER:
        _refuse(f"header too large: {length} bytes, at most {LARGEST_HEADER} are allowed")
    if 8 + length > size:
        _refuse(f"invalid header length: {length} bytes in a file of {size}")
    text = read(8, length)
    if not text.startswith(b"{"):
        _refuse("invalid header start: it must be a JSON object")
    try:
        parsed = json.loads(text.decode(), object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    except (ValueError, RecursionError) as error:
        raise SafetensorError(
            f"Error while deserializing header: invalid JSON in header: {str(error)[:200]}"
        ) from error
    return _checked(parsed, 8 + length, size)


def _checked(parsed: dict[str, Any], start: int, size: int) -> Header:
    metadata = parsed.pop(METADATA, None)
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    ):
        _refuse(f"{METADATA} must map strings to strings")
    entries = {name: _entry(name, each) for name, each in parsed.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda each: (each[1].begin, each[1].end)):
        if entry.begin != end:
            _refuse(
                f"invalid offset for tensor {name[:100]!r}: it begins at {entry.begin}, the one before ends at {end}"
            )
        end = entry.end
    if start + end != size:
        _refuse(f"incomplete metadata, file not fully covered: tensors end at byte {start + end}, the file at {size}")
    return Header(entries, metadata, start)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _entry(name: str, told: Any) -> Entry:
    if not isinstance(told, dict) or told.keys() != {"dtype", "shape", "data_offsets"}:
        _refuse(f"tensor {name[:100]!r} must have dtype, shape and data_offsets")
    element, shape, offsets = _DTYPES.get(str(told["dtype"])), told["shape"], told["data_offsets"]
    if element is None:
        _refuse(f"tensor {name[:100]!r} has an unknown dtype {str(told['dtype'])[:40]!r}")
    if not isinstance(shape, list) or len(shape) > 64 or not all(map(_is_count, shape)):
        _refuse(f"tensor {name[:100]!r} has an invalid shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        _refuse(f"tensor {name[:100]!r} has invalid data_offsets")
    begin, end = offsets
    needed = math.prod(shape) * element.itemsize
    if end - begin != needed:
        _refuse(
            f"tensor {name[:100]!r} has invalid data_offsets: its shape and dtype need {needed} bytes, they give "
            f"{end - begin}"
        )
    return Entry(element, tuple(shape), begin, end)


def to_native(memory: Any, element: dtype) -> Any:
    """Bytes of a file in this machine's order; the format is little-endian."""
    if sys.byteorder == "big":
        memory = memory.copy()
        swap_bytes(memory, element)
    return memory


def make_header(tensors: dict[str, Any], metadata: dict[str, str] | None) -> tuple[bytes, list[str]]:
    """The start of a file, and the names of the tensors in the order of their data: widest elements first."""
    header: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(each, str) for pair in metadata.items() for each in pair):
            raise SafetensorError("metadata must map strings to strings")
        header[METADATA] = metadata
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    position = 0
    for name in order:
        tensor = tensors[name]
        tag = _TAGS.get(tensor.dtype)
        if tag is None:
            raise SafetensorError(f"safetensors has no dtype for {tensor.dtype}, which {name!r} has")
        header[name] = {
            "dtype": tag,
            "shape": list(tensor.shape),
            "data_offsets": [position, position + tensor.nbytes],
        }
        position += tensor.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return struct.pack("<Q", len(text)) + text, order


def content_of(array: Any, element: dtype) -> Any:
    """The bytes of a contiguous array as the file has them."""
    memory = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return to_native(memory, element)
