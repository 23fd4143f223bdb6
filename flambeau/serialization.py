"""Saving and loading: files that PyTorch reads, and PyTorch's files of every year.

`load` executes nothing from a file unless told to with `weights_only=False`. It knows tensors, storages, parameters,
plain containers, the state of optimizers, NumPy arrays and scalars, and the classes and functions that
`add_safe_globals` allows. `save` writes a file whole or not at all.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ._core.device import LAYOUTS, layout
from ._core.names.absent import Table
from ._core.process.caller import warn_user
from ._core.process.tracebacks import leave_out_library
from ._serialization import globals as known_globals
from ._serialization import reading, scanning, writing
from ._serialization.atomic import replacing
from ._serialization.globals import Allowed
from ._serialization.legacy import SourceChangeWarning
from ._serialization.locations import (
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
)
from ._serialization.settings import (
    SWITCHES,
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from ._serialization.storage_types import StorageType

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "async_save",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "validate_cuda_device",
]

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere(
        "INT_SIZE LONG_SIZE SHORT_SIZE STORAGE_KEY_SEPARATOR _check_seekable _cpu_deserialize _cpu_tag "
        "_get_restore_location _is_compressed_file _is_zipfile _legacy_save _load _maybe_decode_ascii "
        "_meta_deserialize _meta_tag _open_file_like _open_zipfile_reader _open_zipfile_writer _package_registry _save "
        "_should_read_directly",
        "_serialization.helpers",
    )
    .elsewhere("MAGIC_NUMBER PROTOCOL_VERSION", "_serialization.legacy")
    .parts()
)

MAP_LOCATION = Callable[[Any, str], Any] | str | dict[str, str] | None
"""What `load` may be told about devices."""

DEFAULT_PROTOCOL = 2
_writer: ThreadPoolExecutor | None = None


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write `obj` to a file, given as a path or as an object with `write`, so that Flambeau and PyTorch can load it.

    A path is replaced in one step once all is on the disk: a crash leaves the old file or the new one. Tensors that
    share memory share it again when loaded.

    >>> import io
    >>> file = io.BytesIO()
    >>> flambeau.save({"weight": flambeau.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> flambeau.load(file)
    {'weight': tensor([1., 1.])}

    Args:
        obj (object): the object: usually a state dict.
        f: a path, or a file object with `write`.
        pickle_module: the module that pickles what is no tensor.
        pickle_protocol (int): the pickle protocol. Default: `2`.
    """
    _check_target(f)
    snapshot = writing.Snapshot(obj, pickle_protocol, pickle_module, stacked=not _use_new_zipfile_serialization)
    _write(snapshot, f, say_order=not _disable_byteorder_record)


def async_save(
    obj: object, f: Any, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL
) -> Future[None]:
    """Like `save`, but only copies the data before it returns; a thread writes it. Saves are written in their order.

    The result tells when the file is complete: `result()` waits for it and raises what went wrong. The interpreter
    does not end before.

    Args:
        obj (object): the object.
        f: a path, or a file object with `write`.
        pickle_module: the module that pickles what is no tensor.
        pickle_protocol (int): the pickle protocol. Default: `2`.

    Returns:
        ends when the file is written; `result()` raises what went wrong.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.serialization.async_save({"step": 1}, file).result()
        >>> _ = file.seek(0)
        >>> torch.load(file)
        {'step': 1}
    """
    global _writer
    _check_target(f)
    snapshot = writing.Snapshot(obj, pickle_protocol, pickle_module, stacked=False, copied=True)
    if _writer is None:
        _writer = ThreadPoolExecutor(1, thread_name_prefix="flambeau-save")
    return _writer.submit(_write, snapshot, f)


def _check_target(f: Any) -> None:
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, not {type(f).__name__}"
        )


def _write(snapshot: writing.Snapshot, f: Any, say_order: bool = True) -> None:
    folder = writing.archive_folder(f)
    if not isinstance(f, (str, os.PathLike)):
        snapshot.write(f, folder, say_order=say_order)
        if hasattr(f, "flush"):
            f.flush()  # whoever opens the file by its name finds all of it
        return
    with replacing(f, snapshot.nbytes) as file:
        snapshot.write(file, folder, say_order=say_order)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """The object that `save` or PyTorch's `torch.save` wrote to `f`, a path or a seekable file object.

    Args:
        map_location: where tensors go instead of the device that they were saved from: a device or its name, a dict of
            names, or a function of a storage and its location that gives the storage to use, or None for the default.
        weights_only: True, the default, builds data only and refuses all other classes and functions by name. False
            lets the file run any code: only for files from a source that you trust.
        mmap: leave the data in the file until it is used. Needs a path.
        pickle_module, pickle_load_args: for `weights_only=False`, what unpickles instead of `pickle`, and how.
        f: a path, or a file object with `read`, `seek` and `tell`.

    Returns:
        the object.

    Raises:
        pickle.UnpicklingError: the file names a class that is not allowed.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.ones(2)}, file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        {'weight': tensor([1., 1.])}
    """
    if weights_only is None:
        weights_only = _safe_by_default(pickle_module)
    elif weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if pickle_load_args and weights_only:
        warn_user("pickle_load_args only works if `weights_only=False`: nothing is unpickled by `pickle` otherwise.")
    if mmap is None:
        mmap = SWITCHES.mmap
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    options = reading.Options(map_location, weights_only, pickle_module, pickle_load_args)
    try:
        with reading.opened(f) as file:
            return reading.load_file(file, options, mmap=bool(mmap), path=f)
    except Exception as error:
        leave_out_library(error)
        raise


def _safe_by_default(pickle_module: Any) -> bool:
    """Whether a load that does not say is safe: yes, but for PyTorch's two environment variables and old programs."""
    yes = ("1", "y", "yes", "true")
    if os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0") in yes:
        return True
    if os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0") in yes:
        return False
    return pickle_module is None


def add_safe_globals(safe_globals: list[Allowed]) -> None:
    """Allow more classes and functions in files loaded with `weights_only=True`.

    An entry is the class or function itself, or a tuple of it and the full name by which files call it.

    Args:
        safe_globals (list of Alloweds): classes and functions, or pairs of one and the name that files have for it.

    Example:
        >>> class Version:
        ...     "What a checkpoint says about itself."
        >>> torch.serialization.add_safe_globals([Version])
        >>> torch.serialization.clear_safe_globals()
    """
    known_globals.add_allowed(safe_globals)


def get_safe_globals() -> list[Allowed]:
    """What `add_safe_globals` allowed.

    Returns:
        the classes and functions.

    Example:
        >>> torch.serialization.get_safe_globals()
        []
    """
    return known_globals.allowed_by_user()


def clear_safe_globals() -> None:
    """Take back all that `add_safe_globals` allowed.

    Example:
        >>> torch.serialization.clear_safe_globals()
        >>> torch.serialization.get_safe_globals()
        []
    """
    known_globals.remove_allowed(known_globals.allowed_by_user())


class safe_globals:
    """Allow more classes and functions in files loaded in a `with` block.

    Args:
        safe_globals (list of Alloweds): classes and functions, or pairs of one and the name that files have for it.

    Example:
        >>> from fractions import Fraction
        >>> with torch.serialization.safe_globals([Fraction]):
        ...     torch.serialization.get_safe_globals() == [Fraction]
        True
    """

    def __init__(self, safe_globals: list[Allowed]) -> None:
        self.entries = safe_globals
        self.added: list[Allowed] = []

    def __enter__(self) -> None:
        self.added = known_globals.add_allowed(self.entries)

    def __exit__(self, *exception: object) -> None:
        known_globals.remove_allowed(self.added)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that `weights_only=True` would refuse, without loading it.

    Args:
        f: a path, or a file object.

    Returns:
        full names.

    Example:
        >>> import io
        >>> from fractions import Fraction
        >>> file = io.BytesIO()
        >>> torch.save(Fraction(1, 2), file)
        >>> _ = file.seek(0)
        >>> torch.serialization.get_unsafe_globals_in_checkpoint(file)
        ['fractions.Fraction']
    """
    with reading.opened(f) as file:
        return scanning.unsafe_globals(file)


def mkdtemp() -> contextlib.AbstractContextManager[str]:
    """A folder that is there for a `with` block."""
    return tempfile.TemporaryDirectory()


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's version is at least the one that is asked for; one that cannot be read is an error, or is."""
    try:
        found = tuple(int(part) for part in module.__version__.split(".")[: len(req_version_tuple)])
    except ValueError as error:
        message = f"'{module.__name__}' module version string is malformed '{module.__version__}': {error}"
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True
    return found >= tuple(req_version_tuple)


def normalize_storage_type(storage_type: type) -> type:
    """The class of storages that a class of the package is called by."""
    found: type = getattr(importlib.import_module("flambeau"), storage_type.__name__)
    return found


def validate_hpu_device(location: str) -> int:
    """Refused, as where PyTorch has no such device."""
    raise RuntimeError(
        "The HPU device module is not registered. If you are running on a CPU-only machine, please use torch.load with "
        "map_location=torch.device('cpu') to map your storages to the CPU."
    )


def _get_layout(name: str) -> layout:
    """The layout of a name such as `torch.strided`."""
    return LAYOUTS[name.removeprefix("torch.")]


def _legacy_load(f: Any, map_location: Any, pickle_module: Any, **pickle_load_args: Any) -> Any:
    """What PyTorch wrote before 1.6, or `save` with `_use_new_zipfile_serialization=False`."""
    return load(f, map_location, pickle_module, weights_only=False, **pickle_load_args)


def storage_to_tensor_type(storage: Any) -> Any:
    """The class of tensors over a storage: PyTorch's own function looks for a class that does not exist."""
    raise AttributeError("module 'torch.storage' has no attribute 'TypedTensor'")
