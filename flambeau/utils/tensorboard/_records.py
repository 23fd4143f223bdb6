"""The file format of events: records, each with its length and two checksums."""

from __future__ import annotations

import struct
from typing import IO

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def crc32c(content: bytes) -> int:
    """The CRC-32 with Castagnoli's polynomial."""
    table, crc = _TABLE, 0xFFFFFFFF
    for byte in content:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked_crc(content: bytes) -> int:
    """The checksum as records have it: rotated and shifted, so that a checksum of checksums is no weak spot."""
    crc = crc32c(content)
    return (crc >> 15 | crc << 17) + _MASK & 0xFFFFFFFF


def write_record(file: IO[bytes], content: bytes) -> None:
    """Append a record with its checksums to the file."""
    length = struct.pack("<Q", len(content))
    checks = [struct.pack("<I", masked_crc(each)) for each in (length, content)]
    file.write(length + checks[0] + content + checks[1])
