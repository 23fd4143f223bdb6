"""Shared libraries without their symbol tables: names for debuggers, which no program needs.

What a system loads of a library (ELF's segments, the table of exported names among them) stays as it is to the byte,
and at its addresses.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

_HEADER_SIZE = 64
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NAME, _KIND, _FLAGS, _OFFSET, _SIZE, _LINK = 0, 1, 2, 4, 5, 6
_SEGMENT = struct.Struct("<IIQQQQQQ")
_START, _LENGTH, _ALIGNMENT = 2, 5, 7
_UNUSED, _SYMBOLS, _WITHOUT_CONTENT, _LOADED = 0, 2, 8, 2


def without_symbols(data: bytes) -> bytes | None:
    """The file of a library without the tables; None if it is no 64-bit ELF file, or has nothing to leave out."""
    if data[:6] != b"\x7fELF\x02\x01" or len(data) < _HEADER_SIZE:
        return None
    segments_at, sections_at = struct.unpack_from("<QQ", data, 32)
    _, segment_size, segment_count, section_size, section_count, names = struct.unpack_from("<6H", data, 52)
    if (segment_size, section_size) != (_SEGMENT.size, _SECTION.size):
        return None
    segments_end, sections_end = segments_at + segment_count * segment_size, sections_at + section_count * section_size
    if max(segments_end, sections_end) > len(data):
        return None
    segments = [list(each) for each in _SEGMENT.iter_unpack(data[segments_at:segments_end])]
    sections = [list(each) for each in _SECTION.iter_unpack(data[sections_at:sections_end])]
    dropped = _of_symbols(sections)
    if not dropped or names in dropped:
        return None

    # What is loaded before and behind the tables; between them lies nothing but what is not loaded.
    first = min(sections[number][_OFFSET] for number in dropped)
    loaded = [(each[_START], each[_START] + each[_LENGTH]) for each in segments if each[_LENGTH]]
    loaded += [(0, _HEADER_SIZE), (segments_at, segments_end)]
    before_end = max(end for start, end in loaded if start <= first)
    behind = [each for each in loaded if each[0] > first]
    behind_start = min((start for start, _ in behind), default=len(data))
    behind_end = max((end for _, end in behind), default=len(data))
    if before_end > first or any(_end(sections[number]) > behind_start for number in dropped):
        return None

    # Addresses and places in the file have to agree but for multiples of the alignment.
    alignment = max([1, *[each[_ALIGNMENT] for each in segments]])
    moved = (behind_start - before_end) // alignment * alignment if behind else 0
    result = bytearray(data[:before_end])
    if behind:
        result += bytes(behind_start - moved - before_end) + data[behind_start:behind_end]
    for number, section in enumerate(sections):
        if number in dropped:  # an unused entry: the numbers of the others stay
            sections[number] = [section[_NAME], _UNUSED, *[0] * 8]
        elif section[_FLAGS] & _LOADED:
            section[_OFFSET] -= moved if section[_OFFSET] >= behind_start else 0
        elif section[_OFFSET] >= before_end and section[_KIND] not in (_UNUSED, _WITHOUT_CONTENT):
            content = data[section[_OFFSET] : _end(section)]
            section[_OFFSET] = _aligned(result)
            result += content
    for segment in segments:
        segment[_START] -= moved if segment[_START] >= behind_start else 0
    segments_at -= moved if segments_at >= behind_start else 0
    result[segments_at : segments_at + segment_count * segment_size] = b"".join(_SEGMENT.pack(*e) for e in segments)
    struct.pack_into("<QQ", result, 32, segments_at, _aligned(result))
    result += b"".join(_SECTION.pack(*each) for each in sections)
    return bytes(result) if len(result) < len(data) else None


def _of_symbols(sections: list[list[int]]) -> set[int]:
    """The numbers of the symbol tables that are not loaded, and of the tables of their names."""
    found = set()
    for number, each in enumerate(sections):
        if each[_KIND] == _SYMBOLS and not each[_FLAGS] & _LOADED and each[_LINK] < len(sections):
            found |= {number, each[_LINK]}
    return found


def _end(section: list[int]) -> int:
    return section[_OFFSET] + section[_SIZE]


def _aligned(result: bytearray) -> int:
    """The next place in a file where a table may stand."""
    result += bytes(-len(result) % 8)
    return len(result)


def remove_symbols(library: Path) -> int:
    """Replace a library by one without the tables, if a new process can load that; the bytes that this frees.

    The file is replaced at once and never written into: processes that have it loaded keep the old one, and so does a
    package manager that shares its files between environments by links.
    """
    data = library.read_bytes()
    smaller = without_symbols(data)
    if smaller is None:
        return 0
    written = library.with_name(f"{library.name}.{os.getpid()}")
    try:
        written.write_bytes(smaller)
        written.chmod(library.stat().st_mode)
        if not _loads(written):
            return 0
        os.replace(written, library)
    finally:
        written.unlink(missing_ok=True)
    return len(data) - len(smaller)


def _loads(library: Path) -> bool:
    command = [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(library)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
