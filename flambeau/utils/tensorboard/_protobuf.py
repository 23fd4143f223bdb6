"""The few forms of protobuf's wire format that event files need."""

from __future__ import annotations

import struct
from collections.abc import Iterable

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """A whole number, seven bits to the byte; negative ones as 64 bits."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _key(number: int, form: int) -> bytes:
    return varint(number << 3 | form)


def integer(number: int, value: int) -> bytes:
    """A field that is a whole number, a truth value or a member of an enumeration."""
    return _key(number, _VARINT) + varint(int(value))


def double(number: int, value: float) -> bytes:
    """A field of 64 bits."""
    return _key(number, _EIGHT_BYTES) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    """A field of 32 bits."""
    return _key(number, _FOUR_BYTES) + struct.pack("<f", value)


def data(number: int, content: bytes | str) -> bytes:
    """A field that is a string, bytes, or packed numbers."""
    encoded = content.encode() if isinstance(content, str) else content
    return _key(number, _LENGTH) + varint(len(encoded)) + encoded


def message(number: int, *fields: bytes) -> bytes:
    """A field that is a message of its own."""
    return data(number, b"".join(fields))


def integers(number: int, values: Iterable[int]) -> bytes:
    """A field of many whole numbers."""
    return data(number, b"".join(map(varint, values)))
