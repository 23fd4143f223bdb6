"""Loading: which format a file has, and what `load` needs from each."""

from __future__ import annotations

import codecs
import contextlib
import io
import mmap as mmap_module
import os
import pickle
import sys
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from . import settings
from .archive import ArchiveReader
from .globals import SafeGlobals
from .limits import Budget
from .storages import Storages
from .trusted import TrustedMachine
from .unpickler import Machine

ZIP_START = b"PK\3\4"
_TAR_MARK = b"ustar"
_ALIGNED = 16
_TEXTS = {
    "version https://git-lfs": "a text file, a Git LFS pointer: `git lfs pull` fetches the file itself",
    "<": "a text file, a web page or XML: perhaps a download was answered with a page",
    "{": "a text file, perhaps JSON: read that with json.load",
    "": "a text file: pass the file that torch.save wrote; torch.from_numpy(numpy.loadtxt(path)) makes a tensor of "
    "numbers in a text",
}
"""What a text is, by how it begins."""


class Options:
    """What the caller of `load` asked for."""

    def __init__(
        self, map_location: Any, weights_only: bool, pickle_module: Any, pickle_arguments: dict[str, Any]
    ) -> None:
        self.map_location = map_location
        self.weights_only = weights_only
        self.pickle_module = pickle if pickle_module is None else pickle_module
        self.pickle_arguments = {"encoding": "utf-8", **pickle_arguments}

    def machine(self, data: Any, persistent_load: Any, *, position: int = 0, budget: Budget | None = None) -> Any:
        """Something that loads pickles from `data`: the safe machine unless the user trusts the file."""
        if not self.weights_only:
            return TrustedMachine(
                data, persistent_load, position=position, pickle_module=self.pickle_module, **self.pickle_arguments
            )
        unknown = self.pickle_arguments.keys() - {"encoding", "fix_imports", "errors"}
        if unknown:
            raise TypeError(f"load() got an unexpected keyword argument {min(unknown)!r}")
        encoding = self.pickle_arguments["encoding"]
        return Machine(data, SafeGlobals(), persistent_load, position=position, encoding=encoding, budget=budget)


@contextlib.contextmanager
def opened(f: Any) -> Iterator[IO[bytes]]:
    """The file behind a path, or the file object that the user gave, which must be seekable."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
        return
    for method in ("seek", "tell", "read"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    yield f


@contextlib.contextmanager
def safe_errors(weights_only: bool) -> Iterator[None]:
    """Say what a refused load means and what to do about it."""
    try:
        yield
    except pickle.UnpicklingError as error:
        if not weights_only:
            raise
        raise pickle.UnpicklingError(
            f"Weights only load failed. {error}\n"
            "Nothing of the file was executed. If you trust it, either allow what it names, as above, or load it with "
            "`weights_only=False`, which lets the file run any code."
        ) from error


@contextlib.contextmanager
def _text_named(head: bytes | bytearray, weights_only: bool) -> Iterator[None]:
    """Say of a file that could not be read that it is a text, if it begins like one: old pickles may be texts, too."""
    try:
        yield
    except (pickle.UnpicklingError, RuntimeError, EOFError):
        text = _as_text(head)
        if text is None:
            raise
        kind = next((words for start, words in _TEXTS.items() if text.startswith(start)))
        raise pickle.UnpicklingError(
            f"{'Weights only load failed. ' * weights_only}The file is no checkpoint but {kind}. It begins with "
            f"{text[:40]!r}."
        ) from None


def _as_text(head: bytes | bytearray) -> str | None:
    """The beginning of a text; None if these bytes are none."""
    with contextlib.suppress(UnicodeDecodeError):
        text = codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut
        if all(each.isprintable() or each in "\n\r\t" for each in text):
            return text.lstrip("\ufeff")
    return None


def load_file(file: Any, options: Options, *, mmap: bool = False, path: Any = None) -> Any:
    """The object in a file of any format, from the file's current position on."""
    start = file.tell()
    head = file.read(512)
    file.seek(start)
    if not isinstance(head, (bytes, bytearray)):
        raise AssertionError(f"Expected bytes, got {type(head).__name__}: open the file in binary mode, as with 'rb'")
    if not head:
        raise EOFError("Ran out of input: the file is empty")
    if head.startswith(ZIP_START):
        with safe_errors(options.weights_only):
            return _load_archive(file if start == 0 else io.BytesIO(file.read()), options, mmap=mmap)
    if mmap:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True)`, which is "
            f"the default; {path!r} has an older format. Load it without mmap, or save it again."
        )
    with _text_named(head, options.weights_only), safe_errors(options.weights_only), _buffer(file) as data:
        if head[257:262] == _TAR_MARK:
            from .tar import load_tar

            return load_tar(data, options)
        from .legacy import load_stacked

        result, end = load_stacked(data, options)
    file.seek(start + end)
    return result


@contextlib.contextmanager
def _buffer(file: Any) -> Iterator[Any]:
    """The rest of a file as one buffer; of a real file without reading it."""
    start = file.tell()
    if start or not isinstance(file, (io.BufferedReader, io.FileIO)):
        yield file.read()
        return
    # Not closed here but with its last user: an error's traceback may still hold an array over it.
    yield mmap_module.mmap(file.fileno(), 0, access=mmap_module.ACCESS_READ)


def _load_archive(file: Any, options: Options, *, mmap: bool) -> Any:
    archive = ArchiveReader(file, crc32=settings.get_crc32_options())
    with contextlib.closing(archive):
        return load_records(archive, options, mapped=_map(file) if mmap else None)


def load_records(archive: ArchiveReader, options: Options, *, mapped: Any = None, pickle_file: str = "data.pkl") -> Any:
    """The object in an archive; `mapped` is its file in memory."""
    order = archive.byteorder(settings.assumed_byteorder())

    def fetch(key: str, nbytes: int) -> Any:
        name = f"data/{key}"
        if archive.size(name) != nbytes:
            raise RuntimeError(
                f"storage {key!r} has {archive.size(name)} bytes in the archive, but the file says that it has "
                f"{nbytes}: the file is corrupt or malicious"
            )
        if settings.skips_data():
            return np.empty(nbytes, np.uint8)
        if mapped is not None:
            start = archive.place(name)
            swapped_shared = order != sys.byteorder and settings.mmap_flags() != settings.MAP_PRIVATE
            if nbytes and start is not None and start % _ALIGNED == 0 and not swapped_shared:
                return np.frombuffer(mapped, np.uint8, nbytes, start)
        return archive.array(name)

    storages = Storages(fetch, options.map_location, order=order, skip=settings.skips_data())
    budget = Budget.for_input(archive.source.size)
    if archive.has("constants.pkl"):
        from .torchscript import load_weights

        return load_weights(archive, storages, options, budget)
    content = archive.read(pickle_file)
    if mapped is None and not settings.skips_data() and not _all_to_meta(options.map_location):
        archive.read_ahead("data/")
    return options.machine(content, storages.persistent_load, budget=budget).load()


def _all_to_meta(map_location: Any) -> bool:
    return map_location is not None and not callable(map_location) and str(map_location) == "meta"


def _map(file: Any) -> Any:
    if settings.mmap_flags() == settings.MAP_PRIVATE:
        return mmap_module.mmap(file.fileno(), 0, access=mmap_module.ACCESS_COPY)
    with open(file.name, "r+b") as writable:
        return mmap_module.mmap(writable.fileno(), 0, access=mmap_module.ACCESS_WRITE)
