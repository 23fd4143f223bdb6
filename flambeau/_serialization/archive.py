"""The zip container of files since PyTorch 1.6: records under one folder, data aligned to 64 bytes, CRC-32 of each."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

import numpy as np

from .._core.process.locks import new_lock
from .crc import crc32
from .limits import Budget

ALIGNMENT = 64
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_CENTRAL_HEADER = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR_64 = struct.Struct("<4sIQI")
_FLAGS = 0x0808  # sizes and CRC stand behind the data; names are UTF-8
_MARK_32 = 0xFFFFFFFF
"""Stands for a number that is in the record's extra field, where there are 64 bits for it."""
_LIMIT_32 = _MARK_32
_LARGEST_WRITE = 1 << 30
_LARGEST_DEFLATION = 1040
"""Deflate cannot make data more than this many times smaller."""
_WORTH_A_THREAD = 1 << 18
_PIECE = 1 << 20
_WORKERS = min(4, os.cpu_count() or 1)
_NEWEST_VERSION = 10


def write_all(file: Any, data: Any) -> None:
    """Write every byte of `data`, also to raw files, which may take less at a time."""
    view = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)
    while view.nbytes:
        written = file.write(view[:_LARGEST_WRITE])
        view = view[min(view.nbytes, _LARGEST_WRITE) if written is None else written :]


def submitted(pool: ThreadPoolExecutor, function: Callable[..., Any], *args: Any) -> Future[Any] | None:
    """Start a call in a thread; None while the interpreter ends, when pools take no more and one may still save."""
    try:
        return pool.submit(function, *args)
    except RuntimeError:
        return None


class ArchiveWriter:
    """Writes records one after another to a file that need not be seekable."""

    def __init__(self, file: Any, folder: str, *, crc32: bool = True, alignment: int = ALIGNMENT) -> None:
        self.file = file
        self.alignment = alignment
        self.folder = folder
        self.crc32 = crc32
        self.position = 0
        self.directory: list[bytes] = []
        self.pool: ThreadPoolExecutor | None = None

    def prepare(self, data: Any) -> Callable[[], int]:
        """Start on the CRC of a large record while others are being written; the result gives it."""
        if not self.crc32:
            return lambda: 0
        if memoryview(data).nbytes < _WORTH_A_THREAD:
            return lambda: crc32(data)
        if self.pool is None:
            self.pool = ThreadPoolExecutor(_WORKERS)
        future = submitted(self.pool, crc32, data)
        return (lambda: crc32(data)) if future is None else future.result

    def write(self, name: str, data: Any, crc: Callable[[], int] | None = None) -> None:
        """Add a record; `crc` is what `prepare` gave for it."""
        if crc is None:
            crc = self.prepare(data)
        encoded = f"{self.folder}/{name}".encode()
        start, size = self.position, memoryview(data).nbytes
        large = size >= _LIMIT_32
        extra = struct.pack("<2H2Q", 1, 16, size, size) if large else b""
        filled = start + _LOCAL_HEADER.size + len(encoded) + len(extra) + 4
        padding = -filled % self.alignment
        extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        told = _MARK_32 if large else 0
        self._put(
            _LOCAL_HEADER.pack(b"PK\3\4", 45, _FLAGS, 0, 0, 33, 0, told, told, len(encoded), len(extra))
            + encoded
            + extra
        )
        self._put(data)
        checked = crc()
        self._put(struct.pack("<4sI2Q" if large else "<4sI2I", b"PK\7\10", checked, size, size))
        self._enter(encoded, checked, size, start)

    def _enter(self, encoded: bytes, crc: int, size: int, start: int) -> None:
        wide = [each for each in (size, size, start) if each >= _LIMIT_32]
        extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
        told, offset = (_MARK_32 if each >= _LIMIT_32 else each for each in (size, start))
        self.directory.append(
            _CENTRAL_HEADER.pack(
                b"PK\1\2", 45, 45, _FLAGS, 0, 0, 33, crc, told, told, len(encoded), len(extra), 0, 0, 0, 0, offset
            )
            + encoded
            + extra
        )

    def finish(self) -> None:
        """Write the directory."""
        start, content, count = self.position, b"".join(self.directory), len(self.directory)
        self._put(content)
        if count >= 0xFFFF or start >= _LIMIT_32 or len(content) >= _LIMIT_32:
            end = self.position
            self._put(_END_64.pack(b"PK\6\6", 44, 45, 45, 0, 0, count, count, len(content), start))
            self._put(_LOCATOR_64.pack(b"PK\6\7", 0, end, 1))
        short = min(count, 0xFFFF)
        size, offset = (_MARK_32 if each >= _LIMIT_32 else each for each in (len(content), start))
        self._put(_END.pack(b"PK\5\6", 0, 0, short, short, size, offset, 0))

    def close(self) -> None:
        """Give back the threads."""
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)

    def _put(self, data: Any) -> None:
        write_all(self.file, data)
        self.position += memoryview(data).nbytes


class Source:
    """Bytes at any position of a file, for several threads at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.lock = new_lock()
        self.descriptor = file.fileno() if isinstance(file, (io.FileIO, io.BufferedReader)) else None
        if self.descriptor is None or not hasattr(os, "preadv"):
            self.descriptor = None
        file.seek(0, os.SEEK_END)
        self.size = file.tell()

    def fill(self, position: int, memory: Any) -> None:
        """Read as many bytes as `memory` holds."""
        view = memoryview(memory).cast("B")
        while view.nbytes:
            count = self._read(position, view[:_LARGEST_WRITE])
            if not count:
                raise RuntimeError("PytorchStreamReader failed reading file: it ends before its data does")
            position += count
            view = view[count:]

    def _read(self, position: int, view: memoryview) -> int:
        if self.descriptor is not None:
            return os.preadv(self.descriptor, [view], position)
        with self.lock:
            self.file.seek(position)
            data = self.file.read(view.nbytes)
        view[: len(data)] = data
        return len(data)


class _SourceFile(io.RawIOBase):
    """A source as the file that `zipfile` wants: it never makes room for more than there is to read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.position = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.source.size}[whence]
        if start + offset < 0:
            raise OSError("a position before the beginning of the file")
        self.position = start + offset
        return self.position

    def read(self, size: int | None = -1) -> bytes:
        left = max(self.source.size - self.position, 0)
        content = bytearray(left if size is None or size < 0 else min(size, left))
        self.source.fill(self.position, content)
        self.position += len(content)
        return bytes(content)


def _broken(reason: str) -> RuntimeError:
    return RuntimeError(
        f"PytorchStreamReader failed reading zip archive: {reason}. The file is corrupted, or was not written to its "
        "end: save it again or fetch it again."
    )


class ArchiveReader:
    """Finds and checks records."""

    def __init__(self, file: IO[bytes], *, crc32: bool = True) -> None:
        self.source = Source(file)
        self.crc32 = crc32
        self.pool: ThreadPoolExecutor | None = None
        self.ahead: dict[str, Future[Any]] = {}
        try:
            self.zip = zipfile.ZipFile(_SourceFile(self.source))
        except Exception as error:
            raise _broken(f"failed finding central directory ({error})") from error
        self.entries = self._entries()
        self.folder = next(iter(self.entries), "").partition("/")[0]
        version = self.read("version") if self.has("version") else b"0"
        if not version.strip().isdigit() or int(version) > _NEWEST_VERSION:
            raise _broken(f"its version {version[:20]!r} is not one from 0 to {_NEWEST_VERSION}")

    def _entries(self) -> dict[str, zipfile.ZipInfo]:
        entries: dict[str, zipfile.ZipInfo] = {}
        unpacked = Budget.for_input(self.source.size)
        end = 0
        for each in sorted(self.zip.infolist(), key=lambda each: each.header_offset):
            if each.filename in entries:
                raise _broken("two records have the same name")
            stored = each.compress_type == zipfile.ZIP_STORED
            if each.header_offset < end or each.header_offset + each.compress_size > self.source.size:
                raise _broken("a record is not where the directory says")
            if each.flag_bits & 1 or each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _broken("a record is encrypted or compressed in a way that PyTorch does not use")
            if each.file_size > (each.compress_size if stored else _LARGEST_DEFLATION * (each.compress_size + 1)):
                raise _broken("a record claims more data than it has")
            if not stored:
                unpacked.spend(each.file_size)
            end = each.header_offset + _LOCAL_HEADER.size + each.compress_size
            entries[each.filename] = each
        return {each.filename: each for each in self.zip.infolist()}

    def _entry(self, name: str) -> zipfile.ZipInfo:
        found = self.entries.get(f"{self.folder}/{name}")
        if found is None:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {name}: file not found. The archive is corrupted or was "
                "not written by torch.save."
            )
        return found

    def has(self, name: str) -> bool:
        """Whether there is such a record."""
        return f"{self.folder}/{name}" in self.entries

    def names(self, below: str = "") -> list[str]:
        """The records below a folder."""
        start = f"{self.folder}/{below}"
        return [each[len(self.folder) + 1 :] for each in self.entries if each.startswith(start)]

    def size(self, name: str) -> int:
        """The size of a record in bytes."""
        return self._entry(name).file_size

    def place(self, name: str) -> int | None:
        """Where the data of a record begins in the file; None if it is compressed."""
        entry = self._entry(name)
        if entry.compress_type != zipfile.ZIP_STORED:
            return None
        header = bytearray(_LOCAL_HEADER.size)
        self.source.fill(entry.header_offset, header)
        signature, *_, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        start: int = entry.header_offset + _LOCAL_HEADER.size + name_length + extra_length
        if signature != b"PK\3\4" or start + entry.file_size > self.source.size:
            raise _broken("invalid header or archive is corrupted")
        return start

    def read(self, name: str) -> bytes:
        """The content of a record that is no storage: one that is not far larger than the file, packed or not."""
        Budget.for_input(self.source.size).spend(self.size(name))
        content: bytes = self.array(name).tobytes()
        return content

    def array(self, name: str) -> Any:
        """The content of a record as an array of bytes."""
        waiting = self.ahead.pop(name, None)
        return self._load(name) if waiting is None else waiting.result()

    def read_ahead(self, below: str) -> None:
        """Start to read the larger records below a folder, but for compressed ones: their size may be a lie."""
        for name in self.names(below):
            entry = self._entry(name)
            if entry.compress_type == zipfile.ZIP_STORED and entry.file_size >= _WORTH_A_THREAD:
                if self.pool is None:
                    self.pool = ThreadPoolExecutor(_WORKERS)
                memory = np.empty(entry.file_size, np.uint8)  # here, since a thread's own arena is slow to grow
                future = submitted(self.pool, self._load, name, memory)
                if future is not None:
                    self.ahead[name] = future

    def _load(self, name: str, memory: Any = None) -> Any:
        entry = self._entry(name)
        start = self.place(name)
        if start is None:
            return self._inflate(entry)
        if memory is None:
            memory = np.empty(entry.file_size, np.uint8)
        self.source.fill(start, memory)
        if self.crc32 and entry.CRC and crc32(memory) != entry.CRC:  # zero: written without
            raise _broken(f"the CRC-32 of {entry.filename} does not match its data")
        return memory

    def _inflate(self, entry: zipfile.ZipInfo) -> Any:
        memory: Any = np.empty(entry.file_size, np.uint8)
        view = memoryview(memory)
        try:
            with self.zip.open(entry) as stream:
                while view.nbytes:
                    content = stream.read(min(view.nbytes, _PIECE))
                    view[: len(content)] = content
                    view = view[len(content) :]
                    if not content:
                        raise EOFError("it is shorter than the directory says")
                if stream.read(1):
                    raise EOFError("it is longer than the directory says")
        except Exception as error:
            raise _broken(f"{entry.filename} cannot be decompressed ({error})") from error
        return memory

    def byteorder(self, default: str = sys.byteorder) -> str:
        """The byte order of the numbers in the archive."""
        if not self.has("byteorder"):
            return default
        order = self.read("byteorder")
        if order not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {order[:20]!r}")
        return order.decode()

    def close(self) -> None:
        """Give back the threads; the file is the caller's."""
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)
        with contextlib.suppress(Exception):
            self.zip.close()
