"""What libraries call of `torch.serialization` beside its public functions."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import Any

from . import locations, reading, settings, writing
from .records import PyTorchFileReader, PyTorchFileWriter

STORAGE_KEY_SEPARATOR = ","
LONG_SIZE, INT_SIZE, SHORT_SIZE = 4, 4, 2
"""Bytes of C's integers, as older files have them, whatever the machine."""

_cpu_tag = locations._cpu_tag
_cpu_deserialize = locations._to_cpu
_meta_tag = locations._tag_of("meta")
_meta_deserialize = locations._to_meta
_get_restore_location = locations.restorer
_package_registry = locations._PACKAGES


def _is_zipfile(f: Any) -> bool:
    """Whether a file begins as archives do; it is left where it stood."""
    start = f.tell()
    try:
        return bool(f.read(4) == reading.ZIP_START)
    finally:
        f.seek(start)


def _is_compressed_file(f: Any) -> bool:
    """Whether a file is one of Python's compressed files, which have no content at a position."""
    return str(getattr(f, "__module__", "")).partition(".")[0] in ("gzip", "bz2", "lzma", "_compression")


def _should_read_directly(f: Any) -> bool:
    """Whether a file has a descriptor to read its content by."""
    try:
        return not _is_compressed_file(f) and f.fileno() >= 0
    except (AttributeError, io.UnsupportedOperation):
        return False


def _check_seekable(f: Any) -> bool:
    """True for a file that can be read from any position; an error for others."""
    with reading.opened(f) as file:
        file.seek(file.tell())
    return True


def _maybe_decode_ascii(bytes_str: bytes | str) -> str:
    """Text, which older files have as bytes."""
    return bytes_str.decode("ascii") if isinstance(bytes_str, bytes) else bytes_str


@contextlib.contextmanager
def _open_file_like(name_or_buffer: Any, mode: str) -> Iterator[Any]:
    """A file of a path, open in this block; a file that is open already stays so."""
    if not isinstance(name_or_buffer, (str, os.PathLike)):
        yield name_or_buffer
        return
    with open(name_or_buffer, mode) as file:
        yield file


@contextlib.contextmanager
def _open_zipfile_reader(name_or_buffer: Any) -> Iterator[PyTorchFileReader]:
    """The records of an archive."""
    yield PyTorchFileReader(name_or_buffer)


@contextlib.contextmanager
def _open_zipfile_writer(name_or_buffer: Any) -> Iterator[PyTorchFileWriter]:
    """An archive that is written in this block and finished at its end."""
    writer = PyTorchFileWriter(name_or_buffer, settings.get_crc32_options(), settings.SWITCHES.alignment)
    yield writer
    writer.write_end_of_file()


def _load(
    zip_file: PyTorchFileReader,
    map_location: Any,
    pickle_module: Any,
    pickle_file: str = "data.pkl",
    overall_storage: Any = None,
    **pickle_load_args: Any,
) -> Any:
    """The object in an archive that is open. It may run any code: only for files from a source that you trust."""
    options = reading.Options(map_location, False, pickle_module, pickle_load_args)
    return reading.load_records(zip_file._reader, options, pickle_file=pickle_file)


def _save(
    obj: object,
    zip_file: PyTorchFileWriter,
    pickle_module: Any,
    pickle_protocol: int,
    _disable_byteorder_record: bool,
) -> None:
    """Write the records of an object to an archive that is open."""
    snapshot = writing.Snapshot(obj, pickle_protocol, pickle_module, stacked=False)
    for name, content in snapshot.records(not _disable_byteorder_record):
        zip_file.write_record(name, bytes(content), memoryview(content).nbytes)


def _legacy_save(obj: object, f: Any, pickle_module: Any, pickle_protocol: int) -> None:
    """Write an object to an open file as PyTorch did before 1.6."""
    writing.Snapshot(obj, pickle_protocol, pickle_module, stacked=True).write(f, "archive")
