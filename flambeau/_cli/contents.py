"""What a checkpoint contains, found out without loading its tensors and without executing anything."""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._core.storage import UntypedStorage
from .._core.tensor import Tensor
from .._core.typed_storage import TypedStorage
from .._serialization.archive import ArchiveReader
from .._serialization.legacy import MAGIC_NUMBER
from .._serialization.limits import Budget
from .._serialization.names import canonical_name
from .._serialization.reading import ZIP_START, load_file
from .._serialization.safetensors import SafetensorError, parse_header
from .._serialization.scanning import globals_in
from .opaque import DescribingOptions, UnknownClass, UnknownObject
from .terminal import CommandError, printable, readable_size

_DEEPEST = 100
_LONGEST_VALUE = 60
_PARTS_OF_MODULES = ("_parameters", "_buffers", "_modules")
_FREE_PICKLE = 1 << 20
"""A pickle of so many bytes is read from any archive, and a longer one if that is not much longer than when packed."""
_MAGIC_NUMBERS = MAGIC_NUMBER.to_bytes(10, "little"), str(MAGIC_NUMBER).encode()
_FORMATS = {
    "zip": "PyTorch zip archive",
    "tar": "PyTorch tar archive (before 0.1.10)",
    "stacked": "PyTorch stacked pickles (0.1.10 to 1.5)",
    "pickle": "plain pickle, not written by torch.save",
}
_WORDS_OF_DAMAGE = ("corrupt", "malicious", "no checkpoint", "truncated")
_ATOMS = (str, int, float, complex, bool, bytes, bytearray, type(None))


@dataclass
class TensorRow:
    """One tensor of a file; `storage` numbers the memory that it is on."""

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    storage: int | None = None


@dataclass
class Contents:
    """All that can be said of a file."""

    format: str
    size: int
    tensors: list[TensorRow] = field(default_factory=list)
    values: list[tuple[str, str, str]] = field(default_factory=list)
    storages: list[int] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def file_format(path: Path) -> str:
    """'zip', 'npz', 'tar', 'safetensors', 'stacked', 'onnx' or 'pickle', by the content of the file."""
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith(ZIP_START):
        with contextlib.suppress(zipfile.BadZipFile, ValueError), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if names and all(name.endswith(".npy") for name in names):
                return "npz"
        return "zip"
    if path.suffix.lower() == ".onnx" and head[:1] == b"\x08":  # the message begins with its version
        return "onnx"
    if head[257:262] == b"ustar":
        return "tar"
    if path.suffix.lower() == ".safetensors" or (len(head) > 8 and head[8:9] == b"{" and head[:1] != b"\x80"):
        return "safetensors"
    return "stacked" if any(mark in head[:40] for mark in _MAGIC_NUMBERS) else "pickle"


def read_contents(path: Path) -> Contents:
    """Look at a file of any format."""
    kind = file_format(path)
    with naming(path, kind):
        if kind == "safetensors":
            return _safetensors(path)
        if kind == "npz":
            return _npz(path)
        if kind == "onnx":
            return _onnx(path)
        return _pickled(path, kind)


@contextlib.contextmanager
def naming(path: Path, kind: str) -> Iterator[None]:
    """Let what goes wrong with a file's content name the file, and say that it is damaged where it is."""
    try:
        yield
    except pickle.UnpicklingError as error:
        within = error.__cause__  # the error without advice about files that one trusts
        reason = str(within if isinstance(within, pickle.UnpicklingError) else error)
        if not any(word in reason for word in _WORDS_OF_DAMAGE):  # what it names is not allowed
            raise CommandError(f"{path}: {error}") from error
        raise _damaged(path, kind, reason) from error
    except (EOFError, RuntimeError, ValueError, SafetensorError, struct.error, zlib.error, zipfile.BadZipFile) as error:
        raise _damaged(path, kind, str(error)) from error


def _damaged(path: Path, kind: str, reason: str) -> CommandError:
    what = "damaged, or no checkpoint" if kind == "pickle" else "damaged"
    return CommandError(f"{path} is {what}: {reason or 'it cannot be read'}")


def _safetensors(path: Path) -> Contents:
    size = path.stat().st_size
    with path.open("rb") as file:

        def read(position: int, count: int) -> bytes:
            file.seek(position)
            return file.read(count)

        header = parse_header(read, size)
    contents = Contents("safetensors", size)
    for name, entry in sorted(header.entries.items(), key=lambda each: each[1].begin):
        nbytes = entry.end - entry.begin
        contents.tensors.append(
            TensorRow(name, "tensor", entry.shape, entry.dtype.name, nbytes, len(contents.storages))
        )
        contents.storages.append(nbytes)
    contents.values = [(f"metadata {key}", "str", value) for key, value in (header.metadata or {}).items()]
    return contents


def _npz(path: Path) -> Contents:
    contents = Contents("NumPy archive", path.stat().st_size)
    unknown: dict[str, None] = {}
    with zipfile.ZipFile(path) as archive:
        check_unpacked_size(archive, path)
        for name in archive.namelist():
            try:
                with archive.open(name) as file:
                    shape, array_type = npy_header(file)
                    nbytes = _checked_size(shape, array_type, archive.getinfo(name).file_size - file.tell())
                    if array_type.hasobject:
                        unknown.update(dict.fromkeys(_globals_of_pickle(_pickle_of(archive.getinfo(name), file))))
            except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, OSError) as error:
                raise ValueError(f"{printable(name)} is no array: {printable(str(error))}") from error
            storage = len(contents.storages)
            contents.tensors.append(
                TensorRow(name.removesuffix(".npy"), "array", shape, str(array_type), nbytes, storage)
            )
            contents.storages.append(nbytes)
            if array_type.hasobject:
                contents.notes.append(f"{printable(name)} holds pickled objects, which `convert` does not read")
    contents.unknown = list(unknown)
    return contents


def _onnx(path: Path) -> Contents:
    from ..onnx._reading.files import weights_of

    contents = Contents("ONNX model", path.stat().st_size)
    for name, tensor in weights_of(path).items():
        row = TensorRow(name, "tensor", tuple(tensor.shape), str(tensor.dtype), tensor.nbytes, len(contents.storages))
        contents.tensors.append(row)
        contents.storages.append(tensor.nbytes)
    return contents


def check_unpacked_size(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse an archive that would become far larger than it is, before anything of it is unpacked."""
    packed = (each for each in archive.infolist() if each.compress_type != zipfile.ZIP_STORED)
    Budget.for_input(path.stat().st_size).spend(sum(each.file_size for each in packed))


def _pickle_of(entry: zipfile.ZipInfo, file: Any) -> bytes:
    if entry.file_size > _FREE_PICKLE + 4 * entry.compress_size:
        raise ValueError("its pickle is far longer than when packed: the file is corrupt or malicious")
    content: bytes = file.read()
    return content


def npy_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of the array in a .npy file."""
    version = np.lib.format.read_magic(file)
    read: Any = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, array_type = read(file)
    return tuple(shape), array_type


def _checked_size(shape: tuple[int, ...], array_type: np.dtype[Any], held: int) -> int:
    """How many bytes the elements take; an error if the `held` bytes behind the header cannot be them."""
    nbytes = math.prod(shape) * array_type.itemsize
    if min(shape, default=0) < 0 or (nbytes > held and not array_type.hasobject):
        raise ValueError(f"its shape {printable(str(shape))} is not that of {held} bytes")
    return nbytes


def _globals_of_pickle(data: bytes) -> Iterator[str]:
    for module, name in globals_in(data):
        if module.partition(".")[0] != "numpy":
            yield canonical_name(module, name)


def _pickled(path: Path, kind: str) -> Contents:
    sizes = None
    contents = Contents(_FORMATS[kind], path.stat().st_size)
    with path.open("rb") as file:
        if kind == "zip":
            with contextlib.closing(ArchiveReader(file)) as archive:
                sizes = {name[len("data/") :]: archive.size(name) for name in archive.names("data/")}
                if archive.has("constants.pkl"):
                    contents.format = "TorchScript archive"
                    contents.notes.append("it has code too, which Flambeau leaves alone")
                elif archive.has("byteorder"):
                    contents.format += f", {archive.byteorder()}-endian"
            file.seek(0)
        # A tensor without data costs nothing. The tar format needs its storages to make tensors at all.
        options = DescribingOptions(None if kind == "tar" else "meta", sizes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a TorchScript archive's code is left alone
            loaded = options.machine(file.read(), None).load() if kind == "pickle" else load_file(file, options)
    contents.unknown = list(options.known.unknown)
    _Walk(contents, options).through(loaded)
    return contents


class _Walk:
    """Through an object from a file: rows for its tensors and values. Shared and cyclic containers are shown once."""

    def __init__(self, contents: Contents, options: DescribingOptions) -> None:
        self.contents = contents
        self.options = options
        self.seen: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.kept: list[Any] = []

    def through(self, root: Any) -> None:
        waiting: list[tuple[tuple[str, ...], Any]] = [((), root)]
        while waiting:
            path, value = waiting.pop()
            name = ".".join(path) or "(the object itself)"
            children = self._children(value)
            if children is None:
                self._leaf(name, value)
            elif id(value) not in self.seen:
                self.seen[id(value)] = value
                if len(path) >= _DEEPEST:
                    self.contents.notes.append(f"{printable(name)} is nested deeper than {_DEEPEST} levels")
                    continue
                waiting += [((*path, key) if key else path, child) for key, child in reversed(children)]

    def _children(self, value: Any) -> list[tuple[str, Any]] | None:
        """The parts of a container; None for a leaf, such as a list of plain numbers."""
        if isinstance(value, dict):
            return [(_key(key), child) for key, child in value.items()] or None
        if isinstance(value, (list, tuple, set, frozenset)):
            if all(type(each) in _ATOMS for each in value):
                return None
            return [(str(index), child) for index, child in enumerate(value)]
        return _parts(value) if isinstance(value, UnknownObject) else None

    def _leaf(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            kind = "parameter" if type(value) is not Tensor else "tensor"
            shape = tuple(value.shape)
            nbytes = math.prod(shape) * value.dtype.itemsize
            known = self.options.known.storages.get(id(value))
            storage = known[1] if known else None if value.is_meta else value.untyped_storage()
            number = None if storage is None else self._number(storage)
            self.contents.tensors.append(TensorRow(name, kind, shape, value.dtype.name, nbytes, number))
        elif isinstance(value, (TypedStorage, UntypedStorage)):
            typed = isinstance(value, TypedStorage)
            memory = value._untyped() if isinstance(value, TypedStorage) else value
            element = value.dtype.name if isinstance(value, TypedStorage) else "uint8"
            length = memory.nbytes() // (value.element_size() if typed else 1)
            row = TensorRow(name, "storage", (length,), element, memory.nbytes(), self._number(memory))
            self.contents.tensors.append(row)
        elif isinstance(value, np.ndarray):
            self.contents.tensors.append(TensorRow(name, "array", value.shape, str(value.dtype), value.nbytes))
        elif isinstance(value, (UnknownObject, UnknownClass)):
            self.contents.values.append((name, value.name, ""))
        else:
            self.contents.values.append((name, type(value).__name__, _text(value)))

    def _number(self, storage: UntypedStorage) -> int:
        if id(storage) not in self.numbers:
            self.numbers[id(storage)] = len(self.contents.storages)
            self.kept.append(storage)  # so that no other storage can have its id
            self.contents.storages.append(storage.nbytes())
        return self.numbers[id(storage)]


def _parts(value: UnknownObject) -> list[tuple[str, Any]] | None:
    """What an unknown object holds; of a module, what `state_dict` would show."""
    state = value.state if isinstance(value.state, dict) else {}
    if "_parameters" in state and "_modules" in state:
        own = {key: state[key] for key in _PARTS_OF_MODULES if isinstance(state.get(key), dict)}
        return [(_key(key), child) for part in own.values() for key, child in part.items() if child is not None] or None
    parts = [(_key(key), child) for key, child in state.items()]
    parts += [(_key(key), child) for key, child in value.entries]
    parts += [(str(index), child) for index, child in enumerate(value.items)]
    parts += [(f"argument {index}", child) for index, child in enumerate(value.arguments)]
    if value.state is not None and not state:
        parts.append(("state", value.state))
    return parts or None


def _key(key: Any) -> str:
    return key if type(key) is str and key else _text(key)


def _text(value: Any) -> str:
    """A plain value, short; never the repr of something large."""
    if isinstance(value, (list, tuple, set, frozenset)):
        inner = ", ".join(_text(each) for each in list(value)[:8]) + (", ..." if len(value) > 8 else "")
        return printable(f"{type(value).__name__} of {len(value)}: {inner}" if value else "empty", _LONGEST_VALUE)
    if isinstance(value, (str, bytes, bytearray)):
        return printable(repr(value[:_LONGEST_VALUE]), _LONGEST_VALUE)
    if isinstance(value, int) and value.bit_length() > 1024:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, dict):
        return "empty"
    if isinstance(value, Tensor):
        return f"a tensor of shape {list(value.shape)}"
    return printable(str(value) if type(value).__module__ in ("builtins", "numpy") else repr(value), _LONGEST_VALUE)


def total_size(contents: Contents) -> str:
    """How much memory the tensors take, each storage counted once."""
    apart = sum(row.nbytes for row in contents.tensors if row.storage is None)
    return readable_size(sum(contents.storages) + apart)


def shared(contents: Contents) -> dict[int, list[str]]:
    """The names on each storage that has more than one."""
    names: dict[int, list[str]] = {}
    for row in contents.tensors:
        if row.storage is not None:
            names.setdefault(row.storage, []).append(row.name)
    return {storage: each for storage, each in names.items() if len(each) > 1}


def existing_file(name: str) -> Path:
    """The path of a file that is there."""
    path = Path(name)
    if not path.exists():
        raise CommandError(f"{name}: no such file")
    if not path.is_file():
        raise CommandError(f"{name} is not a file" + (": a folder" if os.path.isdir(name) else ""))
    return path
