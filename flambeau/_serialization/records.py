"""Archives record by record, under the names of PyTorch's reader and writer."""

from __future__ import annotations

import hashlib
import io
import os
import sys
from pathlib import Path
from typing import Any

from .._core.backend import to_host
from .._core.device import CPU
from .._core.dtype import LEGACY_NAMES
from .._core.storage import UntypedStorage, window
from .._core.tensor import wrap
from .archive import _LOCAL_HEADER, ALIGNMENT, ArchiveReader, ArchiveWriter

_OLDEST_VERSION = 3
_VERSION_MOVED = 6
"""From this version on PyTorch keeps it in another record."""
_IDENTITY = ".data/serialization_id"


class PyTorchFileWriter:
    """Writes an archive to a path, or to anything with `write`.

    >>> import io
    >>> file = io.BytesIO()
    >>> writer = flambeau.PyTorchFileWriter(file)
    >>> writer.write_record("greeting", b"hello", 5)
    >>> writer.write_end_of_file()
    >>> flambeau.PyTorchFileReader(file).get_record("greeting")
    b'hello'
    """

    def __init__(self, file_name: Any, compute_crc32: bool = True, storage_alignment: int = ALIGNMENT) -> None:
        self._own = isinstance(file_name, (str, os.PathLike))
        if self._own and not Path(file_name).parent.is_dir():
            raise RuntimeError(f"Parent directory {Path(file_name).parent} does not exist.")
        self._file: Any = open(file_name, "wb") if self._own else file_name  # noqa: SIM115  (closed at the end)
        self._name = Path(file_name).stem if self._own else "archive"
        self._writer = ArchiveWriter(self._file, self._name, crc32=compute_crc32, alignment=storage_alignment)
        self._written: dict[str, bytes] = {}
        self._version = _OLDEST_VERSION
        self._identity = ""

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Add a record: text, bytes, or a storage, of which the first `size` bytes are taken."""
        if self._identity and _IDENTITY in self._written:
            raise RuntimeError(f"the archive is finished: the record {name!r} comes too late")
        if name in self._written:
            raise RuntimeError(f"Tried to serialize file twice: {name}")
        if isinstance(data, str):
            data = data.encode()
        if not isinstance(data, (bytes, UntypedStorage)):
            raise TypeError(
                "write_record(): incompatible function arguments: a record is made of a str, bytes or a storage, not "
                f"of a {type(data).__name__}"
            )
        content = bytes(to_host(data.bytes()) if isinstance(data, UntypedStorage) else data)[:size]
        self._writer.write(name, content)
        self._written[name] = hashlib.sha256(content).digest()

    def write_record_metadata(self, name: str, size: int) -> None:
        """Add a record of `size` zeros, to be filled later."""
        self.write_record(name, bytes(size), size)

    def set_min_version(self, version: int) -> None:
        """The archive needs readers of this version at least."""
        self._version = max(self._version, version)

    def archive_name(self) -> str:
        """The folder in the archive."""
        return self._name

    def serialization_id(self) -> str:
        """Forty digits that two archives share if their records are the same; empty before the end."""
        return self._identity

    def get_all_written_records(self) -> set[str]:
        """The names of the records."""
        return set(self._written)

    def write_end_of_file(self) -> None:
        """Write what readers look for: the version, the order of bytes, and the directory."""
        if self._identity:
            raise RuntimeError("the archive is finished already")
        digest = hashlib.sha256(b"".join(name.encode() + self._written[name] for name in sorted(self._written)))
        self._identity = f"{int.from_bytes(digest.digest(), 'big') % 10**40:040d}"
        version = "version" if self._version < _VERSION_MOVED else ".data/version"
        for name, text in (
            (version, f"{self._version}\n"),
            ("byteorder", sys.byteorder),
            (_IDENTITY, self._identity),
        ):
            if name not in self._written:
                self.write_record(name, text, len(text))
        self._writer.finish()
        self._writer.close()
        if self._own:
            self._file.close()


class PyTorchFileReader:
    """Reads an archive from a path, or from anything with `read` and `seek`."""

    def __init__(self, name_or_buffer: Any) -> None:
        if isinstance(name_or_buffer, (str, os.PathLike)):
            try:
                content = Path(name_or_buffer).read_bytes()
            except OSError as error:
                raise RuntimeError(
                    f"open file failed because of errno {error.errno} on fopen: {error.strerror}, file path: "
                    f"{os.fspath(name_or_buffer)}"
                ) from error
            name_or_buffer = io.BytesIO(content)
        self._reader = ArchiveReader(name_or_buffer)

    def get_record(self, key: str) -> bytes:
        """The content of a record."""
        return self._reader.read(key)

    def has_record(self, key: str) -> bool:
        """Whether there is such a record."""
        return self._reader.has(key)

    def get_all_records(self) -> list[str]:
        """The names of the records."""
        return self._reader.names()

    def get_record_size(self, key: str) -> int:
        """The size of a record in bytes."""
        return self._reader.size(key)

    def get_record_offset(self, key: str) -> int:
        """Where the content of a record begins in the file."""
        place = self._reader.place(key)
        if place is None:
            raise RuntimeError(f"the record {key!r} is compressed")
        return place

    def get_record_header_offset(self, key: str) -> int:
        """Where what the archive says of a record begins in the file."""
        return self._reader._entry(key).header_offset

    def get_record_offset_no_read(self, header_offset: int, name: str, size: int, alignment: int) -> int:
        """Where the content of a record would begin whose header stands there."""
        large = 20 if size >= 0xFFFFFFFF else 0
        filled = header_offset + _LOCAL_HEADER.size + len(f"{self._reader.folder}/{name}".encode()) + large + 4
        return filled + -filled % (alignment or ALIGNMENT)

    def get_storage_from_record(self, key: str, numel: int, dtype: Any) -> Any:
        """A tensor without elements on a storage with the content of a record: `numel` numbers of a dtype."""
        found, expected = self.get_record_size(key), numel * dtype.itemsize
        if found != expected:
            raise RuntimeError(
                f"record size ({found} bytes) does not match expected size ({expected} bytes = {numel} elements * "
                f"{dtype.itemsize} bytes/element) for dtype {LEGACY_NAMES[dtype]}"
            )
        memory = self._reader.array(key)
        return wrap(window(memory, (0,), dtype.numpy, 0, (dtype.itemsize,)), CPU)

    def serialization_id(self) -> str:
        """The digits that the writer gave the archive; empty if it gave none."""
        return self.get_record(_IDENTITY).decode() if self.has_record(_IDENTITY) else ""
