"""Shared libraries without tables that no program reads: names for debuggers, and how to unwind the stack.

What else a system loads of a library (ELF's segments, the table of exported names among them) stays as it is to the
byte, and at its addresses.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_HEADER_SIZE = 64
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NAME, _KIND, _FLAGS, _, _OFFSET, _SIZE, _LINK = range(7)
_SEGMENT = struct.Struct("<IIQQQQQQ")
_START, _VIRTUAL, _PHYSICAL, _LENGTH, _IN_MEMORY, _ALIGNMENT = range(2, 8)
_UNUSED, _SYMBOLS, _WITHOUT_CONTENT, _LOADED = 0, 2, 8, 2
_LOADED_SEGMENT, _UNWINDING_SEGMENT = 1, 0x6474E550


class _Parts:
    """Where the parts of a file are: its segments, which a system loads, and its sections, which linkers read."""

    def __init__(self, data: bytes) -> None:
        self.segments_at, self.sections_at = struct.unpack_from("<QQ", data, 32)
        _, segment_size, segments, section_size, sections, self.names = struct.unpack_from("<6H", data, 52)
        self.segments_end = self.segments_at + segments * segment_size
        sections_end = self.sections_at + sections * section_size
        self.is_whole = (segment_size, section_size) == (_SEGMENT.size, _SECTION.size) and (
            max(self.segments_end, sections_end) <= len(data)
        )
        if self.is_whole:
            self.segments = [list(each) for each in _SEGMENT.iter_unpack(data[self.segments_at : self.segments_end])]
            self.sections = [list(each) for each in _SECTION.iter_unpack(data[self.sections_at : sections_end])]
            # Addresses and places in the file have to agree but for multiples of this.
            self.alignment = max([1, *[each[_ALIGNMENT] for each in self.segments]])

    def named(self, data: bytes) -> dict[bytes, list[int]]:
        """The sections by their names."""
        if self.names >= len(self.sections):
            return {}
        table = data[self.sections[self.names][_OFFSET] : _end(self.sections[self.names])]
        return {table[each[_NAME] :].partition(b"\0")[0]: each for each in self.sections}

    def write(self, result: bytearray) -> None:
        """Write the tables of segments and sections."""
        segments = b"".join(_SEGMENT.pack(*each) for each in self.segments)
        result[self.segments_at : self.segments_at + len(segments)] = segments
        sections = b"".join(_SECTION.pack(*each) for each in self.sections)
        result[self.sections_at : self.sections_at + len(sections)] = sections
        struct.pack_into("<QQ", result, 32, self.segments_at, self.sections_at)


def _parts(data: bytes) -> _Parts | None:
    """The parts of a 64-bit ELF file that is whole."""
    if data[:6] != b"\x7fELF\x02\x01" or len(data) < _HEADER_SIZE:
        return None
    found = _Parts(data)
    return found if found.is_whole else None


def without_symbols(data: bytes) -> bytes | None:
    """The file of a library without names for debuggers; None if it is no such file, or has nothing to leave out."""
    parts = _parts(data)
    if parts is None:
        return None
    segments, sections = parts.segments, parts.sections
    dropped = _of_symbols(sections)
    if not dropped or parts.names in dropped:
        return None

    # What is loaded before and behind the tables; between them lies nothing but what is not loaded.
    first = min(sections[number][_OFFSET] for number in dropped)
    loaded = [(each[_START], each[_START] + each[_LENGTH]) for each in segments if each[_LENGTH]]
    loaded += [(0, _HEADER_SIZE), (parts.segments_at, parts.segments_end)]
    before_end = max(end for start, end in loaded if start <= first)
    behind = [each for each in loaded if each[0] > first]
    behind_start = min((start for start, _ in behind), default=len(data))
    behind_end = max((end for _, end in behind), default=len(data))
    if before_end > first or any(_end(sections[number]) > behind_start for number in dropped):
        return None

    moved = (behind_start - before_end) // parts.alignment * parts.alignment if behind else 0
    result = bytearray(data[:before_end])
    if behind:
        result += bytes(behind_start - moved - before_end) + data[behind_start:behind_end]
    for number, section in enumerate(sections):
        if number in dropped:
            _forget(section)
        elif section[_FLAGS] & _LOADED:
            section[_OFFSET] -= moved if section[_OFFSET] >= behind_start else 0
        elif section[_OFFSET] >= before_end and section[_KIND] not in (_UNUSED, _WITHOUT_CONTENT):
            content = data[section[_OFFSET] : _end(section)]
            section[_OFFSET] = _aligned(result)
            result += content
    for segment in segments:
        segment[_START] -= moved if segment[_START] >= behind_start else 0
    parts.segments_at -= moved if parts.segments_at >= behind_start else 0
    parts.sections_at = _aligned(result)
    parts.write(result)
    return bytes(result) if len(result) < len(data) else None


def without_unwinding(data: bytes, catches_nothing: bool = False) -> bytes | None:
    """The file of a library without the tables by which exceptions and debuggers go up the stack through it.

    None if it is no such file, has none, or may catch an exception: it has a table of handlers, and `catches_nothing`
    is not said of it. The segment that held the tables becomes two, with a gap of whole pages between them.
    """
    parts = _parts(data)
    if parts is None:
        return None
    sections = parts.named(data)
    header, frames = sections.get(b".eh_frame_hdr"), sections.get(b".eh_frame")
    listed = [each for each in parts.segments if each[0] == _UNWINDING_SEGMENT]
    if header is None or frames is None or len(listed) != 1 or listed[0][_START] != header[_OFFSET]:
        return None
    if b".gcc_except_table" in sections and not catches_nothing:
        return None
    start, end = min(header[_OFFSET], frames[_OFFSET]), max(_end(header), _end(frames))
    if any(
        each[_OFFSET] < end and start < _end(each)
        for each in parts.sections
        if each is not header and each is not frames and each[_KIND] not in (_UNUSED, _WITHOUT_CONTENT)
    ):
        return None
    held = [
        each
        for each in parts.segments
        if each[0] == _LOADED_SEGMENT and each[_START] <= start and end <= each[_START] + each[_LENGTH]
    ]
    gap = -(-start // parts.alignment) * parts.alignment
    behind = end // parts.alignment * parts.alignment
    if len(held) != 1 or held[0][_LENGTH] != held[0][_IN_MEMORY] or behind <= gap or parts.segments_at >= gap:
        return None

    segment, moved = held[0], behind - gap
    rest, skipped = segment.copy(), behind - segment[_START]
    segment[_LENGTH] = segment[_IN_MEMORY] = gap - segment[_START]
    for place in (_START, _VIRTUAL, _PHYSICAL):
        rest[place] += skipped
    for size in (_LENGTH, _IN_MEMORY):
        rest[size] -= skipped
    parts.segments.remove(listed[0])  # its entry is free for the second half
    parts.segments.insert(parts.segments.index(segment) + 1, rest)
    _forget(header)
    _forget(frames)
    for entry, place in [*((each, _START) for each in parts.segments), *((each, _OFFSET) for each in parts.sections)]:
        entry[place] -= moved if entry[place] >= behind else 0
    parts.sections_at -= moved if parts.sections_at >= behind else 0
    result = bytearray(data[:gap] + data[behind:])
    parts.write(result)
    return bytes(result)


def _of_symbols(sections: list[list[int]]) -> set[int]:
    """The numbers of the symbol tables that are not loaded, and of the tables of their names."""
    found = set()
    for number, each in enumerate(sections):
        if each[_KIND] == _SYMBOLS and not each[_FLAGS] & _LOADED and each[_LINK] < len(sections):
            found |= {number, each[_LINK]}
    return found


def _forget(section: list[int]) -> None:
    """Make an entry an unused one: the numbers of the others stay."""
    section[1:] = [_UNUSED, *[0] * 8]


def _end(section: list[int]) -> int:
    return section[_OFFSET] + section[_SIZE]


def _aligned(result: bytearray) -> int:
    """The next place in a file where a table may stand."""
    result += bytes(-len(result) % 8)
    return len(result)


def make_smaller(library: Path, without: Callable[[bytes], bytes | None]) -> int:
    """Replace a library by one without some tables, if a new process can load that; the bytes that this frees.

    The file is replaced at once and never written into: processes that have it loaded keep the old one, and so does a
    package manager that shares its files between environments by links.
    """
    data = library.read_bytes()
    smaller = without(data)
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
